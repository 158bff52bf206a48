package remote

import (
	"testing"
	"testing/synctest"
	"time"

	"celld/cell"
)

// A denial is remembered for a second from the time of asking, for the same limit, and until something else is known of the key. What
// others give back counts after that time.
func TestDenialsAreRememberedForASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k known
		k.init(4)
		params := cell.Params{Count: 5}
		k.note("k", "f", params, 7, time.Now(), true)
		k.note("passed", "f", params, 7, time.Now(), false)
		denied := func(key, field string, p cell.Params) bool {
			tat, ok := k.denied(key, field, p)
			return ok && tat == 7
		}
		time.Sleep(time.Second - 1)
		if !denied("k", "f", params) {
			t.Error("it is forgotten before a second is over")
		}
		if denied("k", "other", params) || denied("k", "f", cell.Params{Count: 6}) || denied("other", "f", params) || denied("passed", "f", params) {
			t.Error("it is taken for another's")
		}
		time.Sleep(time.Nanosecond)
		if denied("k", "f", params) {
			t.Error("it is remembered for longer than a second")
		}
		k.note("k", "f", params, 7, time.Now(), true)
		if k.note("k", "f", params, 0, time.Now(), true); denied("k", "f", params) {
			t.Error("it is remembered where nothing is taken any more")
		}
		k.note("k", "f", params, 7, time.Now(), true)
		if k.forget("k"); denied("k", "f", params) {
			t.Error("it is remembered though it is to be forgotten")
		}
	})
}
