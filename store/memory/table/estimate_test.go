package table

import "testing"

// What the estimate says of a block is what the allocator gives for it.
func TestAllocated(t *testing.T) {
	for n := 1; n < 90_000; n += 1 + n/200 {
		if got, want := allocated(n), int64(cap(append([]byte(nil), make([]byte, n)...))); got != want {
			t.Errorf("a block for %d bytes counts as %d, and takes %d", n, got, want)
		}
	}
}
