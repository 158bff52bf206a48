package waits

import (
	"testing"

	"celld/store/policy"
	"celld/store/storetest"
)

// Those who wait for an engine's states are asked what those in memory are. A desk decides in the engine's place.
func TestWaits(t *testing.T) {
	storetest.RunWaits(t, func(t *testing.T) (storetest.Waits, *policy.Set, func(), func()) {
		d := newDesk(t)
		return d.s, d.s.policies, func() { d.s.waits.FreedAll(false) }, d.all
	})
}
