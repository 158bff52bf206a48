//go:build amd64 || arm64

package table

import "unsafe"

// prefetch brings the cache line of p into the caches, and does not wait for it as a load would.
//
//go:noescape
func prefetch(p unsafe.Pointer)
