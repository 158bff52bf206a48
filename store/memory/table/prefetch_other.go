//go:build !amd64 && !arm64

package table

import "unsafe"

func prefetch(unsafe.Pointer) {}
