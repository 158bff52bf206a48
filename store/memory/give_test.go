package memory_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"celld/cell"
	"celld/cell/lease"
	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
	"celld/store/policy"
)

// What is given back is told, and the key ends sooner.
func TestGiveIsTold(t *testing.T) {
	s := memory.New(memory.Options{Shards: 1, Journal: true})
	memtest.MustTake(t, s, 10, t0, memtest.Calls(t, "k", "10/100s"))
	memtest.Drained(s)
	l := memtest.MustParse(t, "10/100s")
	if n, err := s.Give([]byte("k"), &l, nil, 8, memtest.At(t0)); n != 8 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if got := memtest.Drained(s); got != "k=20000000000" {
		t.Errorf("%q is told", got)
	}
	if n := memtest.Sweep(s, t0+25*second); n != 1 {
		t.Errorf("%d keys have ended", n)
	}
}

// A log that is given back to is told as a whole: it no longer begins with what was told.
func TestGiveToALog(t *testing.T) {
	s := memory.New(memory.Options{Journal: true})
	const log = "9/1h,algo=log"
	l := memtest.MustParse(t, log)
	give := func(n int64) {
		t.Helper()
		if given, err := s.Give([]byte("k"), &l, nil, n, memtest.At(t0)); given != n || err != nil {
			t.Errorf("%d, %v", given, err)
		}
	}
	for _, step := range []struct {
		name  string
		do    func()
		known bool
	}{
		{"new", func() { memtest.MustTake(t, s, 3, t0, memtest.Calls(t, "k", log)) }, false},
		{"a call more", func() { memtest.MustTake(t, s, 2, t0+1, memtest.Calls(t, "k", log)) }, true},
		{"part of a call is given back", func() { give(1) }, false},
		{"a call more", func() { memtest.MustTake(t, s, 1, t0+2, memtest.Calls(t, "k", log)) }, true},
		{"calls are given back", func() { give(3) }, false},
	} {
		step.do()
		told := 0
		memtest.Drain(s, func(c memory.Change) {
			if told++; (*c.State.Limits)[0].Told.Known() != step.known {
				t.Errorf("%s: it is told as known: %v", step.name, !step.known)
			}
		})
		if told != 1 {
			t.Errorf("%s: told %d times", step.name, told)
		}
	}
	before := s.Stats(t0)
	give(0)
	if st := s.Stats(t0); st != before {
		t.Errorf("%+v, want %+v", st, before)
	}
	give(2)
	_, _ = s.Give([]byte("none"), &l, nil, 1, memtest.At(t0))
	if st := s.Stats(t0); st.Hits != before.Hits+1 || st.Misses != before.Misses+1 {
		t.Errorf("%d hits and %d misses more, want one of each", st.Hits-before.Hits, st.Misses-before.Misses)
	}
}

// A limit whose sub-windows have changed may need more room when it is given back to, and other keys go for it where it may.
func TestGiveThatNeedsRoom(t *testing.T) {
	for _, noEviction := range []bool{false, true} {
		s := memory.New(memory.Options{Shards: 1, NoEviction: noEviction})
		set := func(limit string) *policy.Policy {
			if _, err := s.SetPolicy("p", []cell.Limit{memtest.MustParse(t, limit)}, policy.Options{}); err != nil {
				t.Fatal(err)
			}
			return s.PolicyNamed("p")
		}
		for other := range 9 {
			memtest.MustPut(t, s, fmt.Sprint(other), memtest.Live(t0, second), t0)
		}
		p := set("5/1h,algo=slide")
		memtest.MustTake(t, s, 3, t0, []store.Call{store.CallOf([]byte("k"), p.Limits[0])})
		memtest.SetCapacityNow(&s.Capacity, 100, s.Stats(t0).Bytes, noEviction)
		p = set("5/1h,algo=slide,buckets=6")
		n, err := s.Give([]byte("k"), &p.Limits[0].Limit, p.Limits[0], 1, memtest.At(t0))
		keys := s.Len(t0)
		if noEviction && (n != 0 || !errors.Is(err, store.ErrFull) || keys != 10) || !noEviction && (n != 1 || err != nil || keys == 10) {
			t.Errorf("no eviction %v: %d are given, %v, %d keys", noEviction, n, err, keys)
		}
		memtest.MustAudit(t, s)
	}
}

// What gives back and looks tells what is left then. A rule decides in its place, and nothing is given back.
func TestGiveAndLook(t *testing.T) {
	for _, limit := range []string{"10/100s", "10/100s,algo=window", "10/100s,algo=log"} {
		s := memory.New(memory.Options{Shards: 1})
		memtest.MustTake(t, s, 7, t0, memtest.Calls(t, "k", limit))
		give := func() store.TakeRequest {
			r := []store.TakeRequest{{Calls: memtest.Calls(t, "k", limit), TakeOptions: store.TakeOptions{Cost: -2, Look: true}}}
			s.TakeBatch(r, memtest.At(t0), nil)
			if r[0].Err != nil {
				t.Fatal(r[0].Err)
			}
			return r[0]
		}
		if r := give(); r.Taken.Granted != -2 || r.Calls[0].Decision.Remaining != 5 || r.Taken.Limited {
			t.Errorf("%s: %+v, %+v", limit, r.Taken, r.Calls[0].Decision)
		}
		for _, deny := range []bool{true, false} {
			rule := policy.Rule{Pattern: "k", Deny: deny}
			if _, err := s.PutRule(rule, t0); err != nil {
				t.Fatal(err)
			}
			if r := give(); r.Taken.Granted != 0 || r.Taken.Limited != deny {
				t.Errorf("%s, under a rule: %+v", limit, r.Taken)
			}
			s.DeleteRule(rule, t0)
		}
		if r := give(); r.Calls[0].Decision.Remaining != 7 {
			t.Errorf("%s: a rule has given back: %+v", limit, r.Calls[0].Decision)
		}
	}
}

// However many leases have to end for it, no more is given back than was asked for.
func TestGiveOfManyLeases(t *testing.T) {
	const limit = "5000/1h,algo=conc"
	s, l := memory.New(memory.Options{}), limitOf(t, "5000/1h,algo=conc")
	for range 3 * lease.MostGiven {
		memtest.MustTake(t, s, 1, t0, memtest.Calls(t, "k", limit))
	}
	for _, n := range []int64{lease.MostGiven + 5, 1, lease.MostGiven, 2*lease.MostGiven + 5} {
		before := left(t, s, "k", limit, t0)
		want := min(n, 5000-before)
		given, err := s.Give([]byte("k"), l, nil, n, memtest.At(t0))
		if given != want || err != nil || left(t, s, "k", limit, t0) != before+want {
			t.Errorf("%d, %v, want %d", given, err, want)
		}
	}
	for range 3 * lease.MostGiven {
		memtest.MustTake(t, s, 1, t0, memtest.Calls(t, "k", limit))
	}
	for _, step := range []struct {
		n, given int64
		more     bool
	}{{1, 1, false}, {lease.MostGiven, lease.MostGiven, false}, {lease.MostGiven + 1, lease.MostGiven, true}} {
		given, more, err := s.GiveSome([]byte("k"), l, nil, step.n, memtest.At(t0))
		if given != step.given || more != step.more || err != nil {
			t.Errorf("%d: %d, more %v, %v", step.n, given, more, err)
		}
	}
}

// Giving something back ends an EXPIRE. What is only carried over to another limit does not.
func TestWhatIsGivenBackEndsAnExpiry(t *testing.T) {
	const expiry = t0 + 2*hour
	s := memory.New(memory.Options{})
	memtest.MustTake(t, s, 1, t0, memtest.Calls(t, "k", "1/1s,block=1h"))
	memtest.MustTake(t, s, 1, t0, memtest.Calls(t, "k", "1/1s,block=1h"))
	if err := s.Update([]byte("k"), memtest.At(t0), func(st store.Value, _ bool) (store.Value, bool) {
		st.ExpiryNS = expiry
		return st, true
	}); err != nil {
		t.Fatal(err)
	}
	for i, step := range []struct {
		limit         string
		nowNS         int64
		given, expiry int64
	}{
		{"1/1s,block=1h", t0 + second, 0, expiry}, {"2/1s,block=1h", t0 + second, 0, expiry},
		{"2/1s,block=1h", t0 + second/2, 1, store.AtTAT},
	} {
		given, err := s.Give([]byte("k"), limitOf(t, step.limit), nil, 1, memtest.At(step.nowNS))
		st, there := s.Get([]byte("k"), memtest.At(step.nowNS))
		if err != nil || given != step.given || !there || st.ExpiryNS != step.expiry {
			t.Errorf("%d: %d are given back, %v; %v, the expiry is %d, want %d", i, given, err, there, st.ExpiryNS, step.expiry)
		}
	}
}

// What gives back to several limits tells the most that one of them took back, wherever it stands.
func TestGiveToSeveral(t *testing.T) {
	for _, limits := range [][]string{{"k", "9/1h", "k", "9/1d,algo=log"}, {"k", "9/1d,algo=log", "k", "9/1h"}} {
		s := memory.New(memory.Options{Shards: 1})
		memtest.MustTake(t, s, 5, t0, memtest.Calls(t, "k", "9/1d,algo=log"))
		memtest.MustTake(t, s, 2, t0, memtest.Calls(t, "k", "9/1h"))
		r := []store.TakeRequest{{Calls: memtest.Calls(t, limits...), TakeOptions: store.TakeOptions{Cost: -4}}}
		if s.TakeBatch(r, memtest.At(t0), nil); r[0].Err != nil || r[0].Taken.Granted != -4 {
			t.Errorf("%v: %+v, %v", limits, r[0].Taken, r[0].Err)
		}
		look := memtest.Calls(t, "k", "9/1h", "k", "9/1d,algo=log")
		memtest.MustTake(t, s, 0, t0, look)
		if look[0].Decision.Remaining != 9 || look[1].Decision.Remaining != 8 {
			t.Errorf("%v: %+v", limits, look)
		}
	}
}

// Giving back ends a block that began with the last of a limit, also when there is nothing left to give, and no other.
func TestGiveEndsABlock(t *testing.T) {
	const full, denied = "2/1m,algo=window,block=1h,block-at=full", "2/1m,algo=window,block=1h"
	for _, later := range []int64{0, 120 * second} {
		for _, limit := range []string{full, denied} {
			s := memory.New(memory.Options{Shards: 1})
			memtest.MustTake(t, s, 2, t0, memtest.Calls(t, "k", limit))
			if limit == denied {
				_, _ = s.Take(memtest.Calls(t, "k", limit), store.TakeOptions{Cost: 1}, memtest.At(t0))
			}
			now := t0 + later
			n, err := s.Give([]byte("k"), limitOf(t, limit), nil, 1, memtest.At(now))
			if err != nil || (n == 1) != (later == 0) {
				t.Errorf("%s, %d ns later: %d, %v", limit, later, n, err)
			}
			taken, _ := s.Take(memtest.Calls(t, "k", limit), store.TakeOptions{Cost: 1, Mode: cell.Peek}, memtest.At(now))
			if taken.Limited != (limit == denied) {
				t.Errorf("%s, %d ns later: %+v", limit, later, taken)
			}
			memtest.MustAudit(t, s)
		}
	}
}

// What is given back ends a block that began with the last of a limit, also under a limit without its block, as CL.SHOW tells it, and after
// the state was read from a file. It ends no block that a denial began.
func TestGivingBackLiftsABlockAtFull(t *testing.T) {
	for _, limit := range []string{"5/15m", "5/15m,algo=window", "5/15m,algo=slide", "5/15m,algo=slide,buckets=3", "5/15m,algo=log",
		"5/15m,algo=conc", "5/15m,burst=1,warmup=1m"} {
		for _, block := range []string{",block=1h,block-at=full", ",block=1h"} {
			for _, by := range []string{"", block} {
				for _, how := range []string{"at once", "from a file", "carried"} {
					s, now := memory.New(memory.Options{}), t0
					ask := func(text string, mode cell.Mode) cell.Decision {
						c := []store.Call{{Key: []byte("k"), Limit: limitOf(t, text)}}
						if _, err := s.Take(c, store.TakeOptions{Cost: 1, Mode: mode}, memtest.At(now)); err != nil {
							t.Fatal(err)
						}
						return c[0].Decision
					}
					for range 6 {
						ask(limit+block, cell.Take)
					}
					switch how {
					case "from a file":
						other := memory.New(memory.Options{})
						if _, err := s.Limits([]byte("k"), memtest.At(now), func(l *store.LimitState) {
							f, err := other.ParseField(string(l.AppendName(nil)), string(l.Limit.AppendState(nil, &l.State)))
							if err != nil {
								t.Fatal(err)
							}
							if _, err := other.PutFields([]byte("k"), []store.Field{f}, true, memtest.At(now)); err != nil {
								t.Fatal(err)
							}
						}); err != nil {
							t.Fatal(err)
						}
						s = other
					case "carried":
						ask("9"+limit[1:], cell.Take)
					}
					given, err := s.Give([]byte("k"), limitOf(t, limit+by), nil, 1, memtest.At(now))
					d := ask(limit, cell.Peek)
					if lifted := strings.Contains(block, "full"); err != nil || given != 1 || d.Blocked == lifted {
						t.Errorf("%s%s, given under %s%s, %s: %d, %v, %+v", limit, block, limit, by, how, given, err, d)
					}
				}
			}
		}
	}
}
