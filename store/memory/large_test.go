package memory_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"celld/cell"
	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
	"celld/store/policy"
)

// twin is a store whose numbers are so many times those of another.
type twin struct {
	*memory.Store
	times int64
	lease []int64
}

// calls are two under one key, or under two.
func (w *twin) calls(texts ...string) (calls []store.Call) {
	for i, text := range texts {
		var count int64
		var rest string
		if _, err := fmt.Sscanf(text, "%d/%s", &count, &rest); err != nil {
			panic(err)
		}
		l, err := cell.ParseLimit(fmt.Sprintf("%d/%s", count*w.times, rest))
		if err != nil {
			panic(err)
		}
		calls = append(calls, store.Call{Key: fmt.Append(nil, "k", i/2), Limit: &l})
	}
	return calls
}

// take takes as a client does, and tells what it was answered, in units of the smaller twin.
func (w *twin) take(t *rapid.T, texts []string, o store.TakeOptions, now int64) string {
	if o.Cost *= w.times; o.Terms != nil {
		terms := *o.Terms
		o.Terms = &terms
	}
	r := []store.TakeRequest{{Calls: w.calls(texts...), TakeOptions: o}}
	if !w.TakeBatch(r, store.Access{NowNS: now}, nil) {
		t.Fatal("it waits")
	}
	said := fmt.Sprint(r[0].Err)
	if r[0].Err == nil {
		said += fmt.Sprintf(" limited %v granted %d retry %d reset %d", r[0].Taken.Limited, r[0].Taken.Granted/w.times,
			r[0].Taken.RetryAfterNS, r[0].Taken.ResetAfterNS)
		for i := range r[0].Calls {
			d := &r[0].Calls[i].Decision
			said += fmt.Sprintf(", %v %d", d.Limited, d.Remaining/w.times)
		}
	}
	if o.Terms != nil && o.Terms.Lease != 0 {
		w.lease = append(w.lease, o.Terms.Lease)
	}
	return said
}

// Large numbers are decided as small ones are: with all numbers 2^40 times as large, the same happens, whatever the calls are, and by which
// way through the store they go. Costs are multiples of 4 and times of quarters of a window, so nothing is rounded.
func TestLargeIsAsSmall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shift := rapid.SampledFrom([]int{20, 29, 31, 40, 41}).Draw(t, "times 2^")
		twins := []*twin{{Store: memory.New(memory.Options{}), times: 1}, {Store: memory.New(memory.Options{}), times: 1 << shift}}
		now := t0 / (4 * second) * (4 * second)
		both := func(what string, do func(w *twin) string) {
			small, large := do(twins[0]), do(twins[1])
			if small != large {
				t.Fatalf("%s at %d:\nsmall %s\nlarge %s", what, now, small, large)
			}
			for _, w := range twins {
				if err := memtest.Audit(&w.Shards); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
			}
		}
		limits := rapid.SampledFrom([][]string{
			{"40/4s,algo=window"}, {"40/4s,algo=slide"}, {"40/4s,algo=window,align=clock"}, {"40/4s,algo=slide", "80/8s,algo=window"},
			{"40/4s,algo=window", "40/8s,algo=window", "12/4s,algo=slide"}, {"40/4s,algo=slide,buckets=4"},
		}).Draw(t, "limits")
		for range rapid.IntRange(1, 40).Draw(t, "calls") {
			now += second * rapid.SampledFrom([]int64{0, 0, 0, 1, 2, 4, 9}).Draw(t, "s")
			n := 4 * rapid.Int64Range(1, 12).Draw(t, "cost")
			switch what := rapid.SampledFrom([]string{"take", "take", "take", "force", "peek", "lease", "reserve", "twice", "give",
				"settle", "release"}).Draw(t, "what"); what {
			case "give":
				both(what, func(w *twin) string {
					c := w.calls(limits...)[0]
					given, err := w.Give(c.Key, c.Limit, nil, n*w.times, store.Access{NowNS: now})
					return fmt.Sprint(given/w.times, err)
				})
			case "settle", "release":
				if what == "release" {
					n = 0
				}
				at := rapid.IntRange(0, 7).Draw(t, "which")
				both(what, func(w *twin) string {
					if at >= len(w.lease) {
						return ""
					}
					done, err := w.Settle([]byte("k0"), w.lease[at], n*w.times, store.Access{NowNS: now})
					return fmt.Sprint(done, err)
				})
			default:
				o := store.TakeOptions{Cost: n}
				texts := limits
				switch what {
				case "force":
					o.Mode = cell.Force
				case "peek":
					o.Mode = cell.Peek
				case "lease":
					o.Terms = &store.Terms{LeaseNS: 5 * second}
				case "reserve":
					o.Terms = &store.Terms{Mode: store.Reserve, MaxNS: 60 * second}
				case "twice":
					texts = []string{limits[0], limits[0]}
				}
				both(what, func(w *twin) string { return w.take(t, texts, o, now) })
			}
		}
	})
}

// What a lease holds is not cut to what all leases of a key may hold together, and is given back to a window that has gone on.
func TestLargeLeases(t *testing.T) {
	s := memory.New(memory.Options{})
	const window, slide = "9007199254740991/1s,algo=window", "9007199254740991/4s,algo=slide"
	var id int64
	for i := range int64(5) {
		_, id = take(t, s, "k", window, cell.MaxCost, store.Terms{LeaseNS: hour}, t0+i*second)
	}
	a := store.Access{NowNS: t0 + 4*second}
	if done, err := s.Settle([]byte("k"), id, cell.MaxCost, a); !done || err != nil || left(t, s, "k", window, a.NowNS) != 0 {
		t.Errorf("settled by its own cost: %v, %v", done, err)
	}
	_, id = take(t, s, "k", window, cell.MaxCost, store.Terms{LeaseNS: hour}, t0+5*second)
	a.NowNS = t0 + 5*second
	if n := left(t, s, "k", window, a.NowNS); n != 0 || !memtest.Did(s.Release([]byte("k"), id, a)) ||
		left(t, s, "k", window, a.NowNS) != cell.MaxCost {
		t.Errorf("%d left, and not all after a release", n)
	}
	now := t0 / (4 * second) * (4 * second)
	take(t, s, "s", slide, 1<<52, store.Terms{}, now)
	take(t, s, "s", slide, 1, store.Terms{LeaseNS: 5 * second}, now)
	for _, at := range []int64{4, 5} { // before and after the lease has ended
		if n := left(t, s, "s", slide, now+at*second); n < cell.MaxCost-1<<52-1 || n > cell.MaxCost-1<<52*3/4+1 {
			t.Errorf("after %d s %d are left", at, n)
		}
	}
	if err := memtest.Audit(&s.Shards); err != nil {
		t.Error(err)
	}
}

// FORCE and SETTLE beyond what can be counted are errors, and change nothing; but not by a limit with shadow, and not where a rule denies.
func TestTooMuch(t *testing.T) {
	s := memory.New(memory.Options{})
	force := func(cost int64, calls ...store.Call) (store.Taken, error) {
		return s.Take(calls, store.TakeOptions{Cost: cost, Mode: cell.Force}, store.Access{NowNS: t0})
	}
	call := func(key, text string) store.Call { return store.Call{Key: []byte(key), Limit: limitOf(t, text)} }
	for _, options := range []string{"window", "slide", "slide,buckets=2", "log", "conc"} {
		text := "100/1s,algo=" + options
		if _, err := force(5007199254740991, call("twice", text), call("twice", text)); err != store.ErrTooMuch || s.Len(t0) != 0 {
			t.Errorf("%s twice: %v", text, err)
		}
	}
	if taken, err := force(1000, call("shadow", "1/366d,shadow"), call("shadow", "1000000/1s")); err != nil || taken.Granted != 1000 {
		t.Errorf("with shadow: %+v, %v", taken, err)
	}
	_, id := take(t, s, "job", "5/1s,algo=window", 1, store.Terms{LeaseNS: hour}, t0)
	if _, err := force(cell.MaxCost-1, call("job", "5/1s,algo=window")); err != nil {
		t.Error(err)
	}
	a := store.Access{NowNS: t0}
	if done, err := s.Settle([]byte("job"), id, 2, a); done || err != store.ErrTooMuch {
		t.Errorf("settled: %v, %v", done, err)
	}
	if done, err := s.Settle([]byte("job"), id, 1, a); !done || err != nil {
		t.Errorf("after an error: %v, %v", done, err)
	}
	if _, err := s.PutRule(policy.Rule{Deny: true, Pattern: "bad*"}, t0); err != nil {
		t.Fatal(err)
	}
	if taken, err := force(1000, call("bad1", "5/1m"), call("good", "1/366d")); err != nil || !taken.Limited {
		t.Errorf("a rule denies: %+v, %v", taken, err)
	}
}
