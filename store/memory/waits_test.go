package memory_test

import (
	"testing"
	"testing/synctest"

	"celld/store/policy"
	"celld/store/storetest"
)

func TestWaits(t *testing.T) {
	storetest.RunWaits(t, func(*testing.T) (storetest.Waits, *policy.Set, func(), func()) {
		s := waitingStore()
		return s, s.Set, func() {}, synctest.Wait
	})
}
