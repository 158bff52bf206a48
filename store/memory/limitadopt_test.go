package memory_test

import (
	"slices"
	"strings"
	"testing"

	"celld/cell"
	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
	"celld/store/policy"

	"pgregory.net/rapid"
)

// adopting are the kinds of limits whose state a call adopts: what follows the period.
var adopting = append(slices.Clone(changingKinds), ",algo=conc", ",warmup=10s", " calendar")

func drawAdopting(t *rapid.T, kind, period string) string {
	switch kind {
	case " calendar":
		return drawLiteral(t, "month", ",tz=+08:00")
	case ",warmup=10s":
		return drawLiteral(t, period, ",algo=gcra") + ",burst=1" + kind // without a burst of its own
	}
	return drawLiteral(t, period, kind)
}

// adopter asks a store for one limit, which changes.
type adopter struct {
	t      *rapid.T
	store  *memory.Store
	limit  cell.Limit
	policy bool
}

func (a *adopter) set(limit string) {
	a.limit = memtest.MustParse(a.t, limit)
	if a.policy {
		if _, err := a.store.SetPolicy("p", []cell.Limit{a.limit}, policy.Options{}); err != nil {
			a.t.Fatal(err)
		}
	}
}

func (a *adopter) call() store.Call {
	if !a.policy {
		return store.Call{Key: []byte("key"), Limit: &a.limit}
	}
	p := a.store.PolicyNamed("p")
	return store.CallOf([]byte("key"), p.Limits[0])
}

func (a *adopter) ask(o store.TakeOptions, others ...store.Call) store.Taken {
	taken, err := a.store.Take(append([]store.Call{a.call()}, others...), o, memtest.At(t0))
	if err != nil {
		a.t.Fatal(err)
	}
	return taken
}

// held is the limit's state, as the store has it.
func (a *adopter) held() (l store.LimitState) {
	_, err := a.store.Limits([]byte("key"), store.Access{NowNS: t0, NoTouch: true}, func(held *store.LimitState) {
		if (held.Policy != nil) == a.policy {
			l = *held
			l.State.Ring = slices.Clone(held.State.Ring)
		}
	})
	if err != nil || l.Limit.Count == 0 {
		a.t.Fatal(l, err)
	}
	return l
}

// Whatever the algorithm, and however a call comes to be denied: what it leaves is the old state, carried over to its limit. A peek leaves
// the old state.
func TestADeniedCallLeavesWhatItsLimitMakesOfTheState(t *testing.T) {
	for _, kind := range adopting {
		t.Run(strings.TrimPrefix("gcra"+strings.TrimSpace(kind), "gcra,algo="),
			func(t *testing.T) { rapid.Check(t, func(t *rapid.T) { deniedAfterAChange(t, kind) }) })
	}
}

func deniedAfterAChange(t *rapid.T, kind string) {
	a := &adopter{t: t, store: memory.New(memory.Options{Shards: 1}), policy: rapid.Bool().Draw(t, "policy")}
	other := memtest.MustParse(t, "1/1d,burst=1")
	full := []store.Call{{Key: []byte("another key"), Limit: &other}}
	if _, err := a.store.Take(full, store.TakeOptions{Cost: 1}, memtest.At(t0)); err != nil {
		t.Fatal(err)
	}
	period := drawPeriod(t)
	a.set(drawAdopting(t, kind, period))
	old := a.limit
	a.ask(store.TakeOptions{Cost: rapid.Int64Range(1, old.Capacity()).Draw(t, "used"), Mode: cell.Force})
	was := a.held()

	if a.policy && rapid.Bool().Draw(t, "another kind") {
		kind = rapid.SampledFrom(alike(kind, adopting)).Draw(t, "kind")
	}
	a.set(drawAdopting(t, kind, period) + rapid.SampledFrom([]string{"", ",block=1us", ",block=1h", ",shadow"}).Draw(t, "option"))
	if !a.limit.Alike(old.Shape) { // of the calendar
		return
	}
	want := was
	want.Limit = cell.LimitOf(a.limit.Shape, a.limit.Params)
	want.State.Ring = slices.Clone(was.State.Ring)
	a.limit.Carry(&want.State, &old, t0, t0)
	if a.limit.EndNS(&want.State) <= uint64(t0) {
		return
	}

	a.ask(store.TakeOptions{Cost: a.limit.Capacity() + 1, Mode: cell.Peek})
	if is := a.held(); memtest.LimitText(&is) != memtest.LimitText(&was) {
		t.Fatalf("a peek by %v has made %s of %s", a.limit, memtest.LimitText(&is), memtest.LimitText(&was))
	}
	o := store.TakeOptions{Cost: a.limit.Capacity() + 1}
	if a.limit.Algo == cell.Warmup { // by which a call of any cost passes
		o.Cost = 1
	}
	var taken store.Taken
	switch way := rapid.SampledFrom([]string{"alone", "with a denied one", "up to", "reserve", "wait"}).Draw(t, "way"); {
	case way == "with a denied one" || a.limit.Shadow:
		o.UpTo = rapid.Bool().Draw(t, "up to")
		taken = a.ask(o, full...)
	case way == "up to" && attempt(&a.limit, want.State, 1).Limited:
		o.UpTo = true
		taken = a.ask(o)
	case way == "reserve" && a.limit.Bookable():
		o.Terms = &store.Terms{Mode: store.Reserve}
		taken = a.ask(o)
	case way == "wait":
		o.Terms = &store.Terms{Mode: store.Wait}
		taken = a.ask(o)
	default:
		taken = a.ask(o)
	}
	if !taken.Limited {
		if a.limit.Algo == cell.Warmup { // an old state of which little is left
			return
		}
		t.Fatalf("%v: %+v", a.limit, taken)
	}
	is := a.held()
	is.State.BlockedNS = 0
	if memtest.LimitText(&is) != memtest.LimitText(&want) {
		t.Fatalf("a call of %d denied by %v has made %s of %s, want %s", o.Cost, a.limit, memtest.LimitText(&is), memtest.LimitText(&was),
			memtest.LimitText(&want))
	}
}

// attempt is what a limit says to a call of a cost. The state stays.
func attempt(l *cell.Limit, st cell.State, cost int64) cell.Decision {
	return l.Decide(&st, t0, cost, cell.Peek)
}

// alike are those kinds of limits to which the state of a policy's limit of one kind is carried over.
func alike(kind string, kinds []string) (all []string) {
	shape := func(kind string) cell.Shape {
		l, _ := cell.ParseLimit("1/1h" + kind)
		return l.Shape
	}
	for _, other := range kinds {
		if shape(kind).Alike(shape(other)) {
			all = append(all, other)
		}
	}
	return all
}
