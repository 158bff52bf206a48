//go:build !amd64 && !arm64

package store

import "unsafe"

func prefetch(unsafe.Pointer) {}
