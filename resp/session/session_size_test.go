package session

import (
	"testing"
	"unsafe"
)

// An idle connection costs 1 KB: memory comes in sizes, and the next one after this is 64 bytes more.
func TestASessionIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(Session{}); size > 512 {
		t.Errorf("%d bytes", size)
	}
}
