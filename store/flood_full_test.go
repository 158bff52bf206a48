//go:build !race

package store_test

import "testing"

// The full size takes some seconds, and minutes with the race detector.
func TestAFloodOfTenMillionKeysFreesNoLimitedKey(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	expectNoneFreed(t, 1_000_000, 16)
}
