package memory_test

import (
	"testing"
	"testing/synctest"

	"celld/store/storetest"
)

func TestWaits(t *testing.T) {
	storetest.RunWaits(t, func(*testing.T) (storetest.Waits, func()) { return waitingStore(), synctest.Wait })
}
