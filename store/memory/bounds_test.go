package memory_test

import (
	"testing"
	"time"

	"celld/cell"
	"celld/internal/celldtest"
	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
	"celld/store/policy"
)

// The first of several limits that deny alike binds, and the first of those that have the same share left.
func TestTheFirstOfEqualsBinds(t *testing.T) {
	s := memory.New(memory.Options{})
	list := func() []store.Call { return memtest.Calls(t, "a", "5/1h", "b", "5/1h", "c", "5/1h") }
	if taken := memtest.MustTake(t, s, 5, t0, list()); taken.Binding != 0 || taken.Limited {
		t.Errorf("%+v", taken)
	}
	if taken := memtest.MustTake(t, s, 1, t0, list()); taken.Binding != 0 || !taken.Limited || taken.RetryAfterNS != uint64(720*second) {
		t.Errorf("%+v", taken)
	}
}

// A store of up to 65,536 keys has one shard.
func TestHowManyShards(t *testing.T) {
	for keys, one := range map[int64]bool{1: true, 1 << 16: true, 1<<16 + 1: false, 0: false, -1: false} {
		if n := len(memory.New(memory.Options{MaxKeys: keys}).All); (n == 1) != one || n&(n-1) != 0 || n > 64 {
			t.Errorf("%d keys: %d shards", keys, n)
		}
	}
	for shards, want := range map[int]int{1: 1, 3: 4, 4: 4, 64: 64, 65: 64} {
		if n := len(memory.New(memory.Options{Shards: shards}).All); n != want {
			t.Errorf("%d shards, want %d", n, want)
		}
	}
}

// A lease that cost more than there is room for ends all the same, and takes no more.
func TestSettleInAFullStore(t *testing.T) {
	refused := 0
	for before := range int64(4) { // calls that the log has: sometimes it has room for one more
		s := memory.New(memory.Options{Shards: 1, NoEviction: true})
		const limit = "9/1h,algo=log"
		for i := range before {
			memtest.MustTake(t, s, 1, t0+i, memtest.Calls(t, "k", limit))
		}
		_, id := take(t, s, "k", limit, 1, store.Terms{LeaseNS: 60 * second}, t0+before)
		memtest.SetCapacityNow(&s.Capacity, 100, s.Stats(t0).Bytes, true)
		if !memtest.Did(s.Settle([]byte("k"), id, 5, memtest.At(t0+second))) ||
			memtest.Did(s.Settle([]byte("k"), id, 5, memtest.At(t0+second))) {
			t.Error("it is not settled once")
		}
		switch left(t, s, "k", limit, t0+second) {
		case 8 - before:
			refused++
		case 4 - before:
		default:
			t.Errorf("after %d calls %d are left", before, left(t, s, "k", limit, t0+second))
		}
		memtest.MustAudit(t, s)
	}
	if refused == 0 {
		t.Error("there is always room")
	}
}

// What a lease has cost beyond what was taken is taken from its limit, also when that has changed.
func TestSettleBeyondALease(t *testing.T) {
	for _, limit := range []string{"9/1h", "9/1h,algo=log", "9/1h,algo=window", "9/hour", "9/1h,algo=slide"} {
		for cost, want := range map[int64]int64{0: 8, 2: 6, 4: 4, 6: 2} {
			s := memory.New(memory.Options{})
			memtest.MustTake(t, s, 1, t0, memtest.Calls(t, "k", limit))
			_, id := take(t, s, "k", limit, 4, store.Terms{LeaseNS: 60 * second}, t0)
			if !memtest.Did(s.Settle([]byte("k"), id, cost, memtest.At(t0))) {
				t.Fatal("not settled")
			}
			if n := left(t, s, "k", limit, t0); n != want {
				t.Errorf("%s: of a cost of %d, %d are left, want %d", limit, cost, n, want)
			}
			memtest.MustAudit(t, s)
		}
	}
}

// A state that is carried over for one who waits takes the room that is counted.
func TestWhoWaitsCarriesOver(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memory.Store) {
		set := func(text string) *policy.Policy {
			if _, err := s.SetPolicy("p", []cell.Limit{memtest.MustParse(t, text)}, policy.Options{}); err != nil {
				t.Fatal(err)
			}
			return s.PolicyNamed("p")
		}
		for _, text := range []string{"5/1m,algo=slide,buckets=128", "5/1m,algo=slide,buckets=6", "4/1m,algo=slide"} {
			p := set("5/1m,algo=slide")
			memtest.MustTake(t, s, 5, clock(), []store.Call{store.CallOf([]byte("k"), p.Limits[0])})
			p = set(text)
			w := await(s, time.Hour, 1, store.CallOf([]byte("k"), p.Limits[0]))
			if !w.waits() {
				t.Errorf("%s: %+v", text, w.taken())
			}
			memtest.MustAudit(t, s)
			if celldtest.Pass(time.Hour); !w.granted() {
				t.Errorf("%s: it does not pass", text)
			}
			memtest.MustAudit(t, s)
			s.Delete([]byte("k"), clock())
		}
	})
}

// A denied call that drops what has ended of a key's limits tells it.
func TestWhatADeniedCallDropsIsTold(t *testing.T) {
	s := memory.New(memory.Options{Shards: 1, Journal: true})
	memtest.MustTake(t, s, 1, t0, memtest.Calls(t, "k", "1/1h", "k", "5/1s"))
	memtest.Drained(s)
	call := memtest.Calls(t, "k", "1/1h")
	for len(call) < store.MaxLimits {
		call = append(call, call[0])
	}
	now := t0 + 2*second
	if taken, err := s.Take(call, store.TakeOptions{Cost: 1}, memtest.At(now)); err != nil || !taken.Limited {
		t.Errorf("%+v, %v", taken, err)
	}
	if told := memtest.Drained(s); told == "" {
		t.Error("nothing is told")
	}
}
