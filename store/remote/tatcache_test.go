package remote

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"celld/cell"
	"celld/internal/celldtest"
	"celld/store/remote/view"
)

// A denial is remembered for a second from the time of asking, for the same limit, and until something else is known of the key. What
// others give back counts after that time.
func TestDenialsAreRememberedForASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k tatCache
		k.init(4)
		params := cell.Params{Count: 5}
		k.note("k", cachedTAT{7, 0, "f", params, time.Now(), true, nil})
		k.note("passed", cachedTAT{7, 0, "f", params, time.Now(), false, nil})
		denied := func(key, field string, p cell.Params) bool {
			last, ok := k.denied(key, field, p, time.Second)
			return ok && last.tatNS == 7
		}
		celldtest.Pass(time.Second - 1)
		if !denied("k", "f", params) {
			t.Error("it is forgotten before a second is over")
		}
		if denied("k", "other", params) || denied("k", "f", cell.Params{Count: 6}) || denied("other", "f", params) ||
			denied("passed", "f", params) {
			t.Error("it is taken for another's")
		}
		celldtest.Pass(time.Nanosecond)
		if denied("k", "f", params) {
			t.Error("it is remembered for longer than a second")
		}
		k.note("k", cachedTAT{7, 0, "f", params, time.Now(), true, nil})
		if k.note("k", cachedTAT{0, 0, "f", params, time.Now(), true, nil}); denied("k", "f", params) {
			t.Error("it is remembered where nothing is taken any more")
		}
		k.note("k", cachedTAT{7, 0, "f", params, time.Now(), true, nil})
		if k.forget("k"); denied("k", "f", params) {
			t.Error("it is remembered though it is to be forgotten")
		}
	})
}

func TestTATCache(t *testing.T) {
	var k tatCache
	k.init(2)
	k.note("k", cachedTAT{tatNS: 7})
	k.note("f", cachedTAT{tatNS: 7, field: "field"})
	if k.tat("k") != 7 || k.tat("f") != 0 || k.tat("o") != 0 {
		t.Errorf("%d, %d, %d", k.tat("k"), k.tat("f"), k.tat("o"))
	}
	for now, inUse := range map[int64]bool{6 + int64(view.Linger): true, 7 + int64(view.Linger): false} {
		if k.inUse("k", now) != inUse || k.inUse("o", now) {
			t.Errorf("in use at %d: %v", now, !inUse)
		}
	}
}

func TestWhenTATsExpire(t *testing.T) {
	if got := expiryMs(uint64(in2100) + 5e9 + 1); got != strconv.FormatInt(in2100/1e6+5001+view.Linger.Milliseconds(), 10) {
		t.Error(got)
	}
}
