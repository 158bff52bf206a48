package waits

import (
	"testing"

	"celld/store/storetest"
)

// Those who wait for an engine's states are asked what those in memory are. A desk decides in the engine's place.
func TestWaits(t *testing.T) {
	storetest.RunWaits(t, func(t *testing.T) (storetest.Waits, func()) {
		d := newDesk(t)
		return d.s, d.all
	})
}
