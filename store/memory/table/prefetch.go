//go:build amd64 || arm64

package table

import "unsafe"

// Prefetch brings the cache line of p into the caches, and does not wait for it as a load would.
//
//go:noescape
func Prefetch(p unsafe.Pointer)
