package storetest

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"celld/cell"
	"celld/store"

	"pgregory.net/rapid"
)

// throttleHistories compares with a map of TATs, in batches of any size on a few keys.
func throttleHistories(t *testing.T, newAsker func() *asker) {
	rapid.Check(t, func(t *rapid.T) {
		k, tats := newAsker(), map[string]uint64{}
		for range rapid.IntRange(1, 20).Draw(t, "batches") {
			k.pass(rapid.SampledFrom([]int64{0, 1, 1000, second / 3, second, 100 * second}).Draw(t, "ns"))
			reqs := make([]store.Request, rapid.SampledFrom([]int{1, 2, 10, store.MaxTakes}).Draw(t, "requests"))
			for i := range reqs {
				reqs[i] = store.Request{
					Key: fmt.Append(nil, "key:", rapid.IntRange(0, 3).Draw(t, "key")),
					Bucket: limit(t, rapid.Int64Range(-1, 5).Draw(t, "burst"), rapid.Int64Range(1, 5).Draw(t, "count"),
						rapid.Int64Range(1, 3).Draw(t, "period")),
					Quantity: rapid.SampledFrom([]int64{1, 1, 1, 0, 2, 6, -1, -9, 1 << 62}).Draw(t, "quantity"),
				}
			}
			for i, r := range k.throttle(reqs...) {
				next, want, err := r.Bucket.Throttle(tats[string(r.Key)], k.nowNS, r.Quantity)
				if fmt.Sprint(r.Err) != fmt.Sprint(err) || err == nil && r.Decision != want {
					t.Fatalf("request %d of %d: %+v, %v, want %+v, %v", i, len(reqs), r.Decision, r.Err, want, err)
				}
				if err == nil && !want.Limited && r.Quantity != 0 {
					tats[string(r.Key)] = next
				}
			}
		}
	})
}

// literals do not share a state, so that any of them may be asked together.
var literals = []string{
	"5/1s", "3/10s,burst=7", "4/1m,algo=window", "6/2s,algo=window,align=clock", "5/3s,algo=slide",
	"7/4s,algo=slide,buckets=3", "4/5s,algo=log",
	"5/6s,warmup=20s,cold=2",
	"2/7s,block=2s", "1/8s,shadow",
	"5/1s,name=a", "9/1s,name=b", "4/1m,algo=window,name=a",
}

// plain is what limits do, told as simply as can be: a state for each key and limit.
type plain map[string]cell.State

func (m plain) state(c *store.Call) cell.State {
	st := m[m.name(c)]
	st.Ring = slices.Clone(st.Ring)
	return st
}

func (m plain) name(c *store.Call) string { return string(c.Key) + " " + c.Limit.String() }

// decide decides a call on a copy of its state.
func (m plain) decide(c *store.Call, nowNS, cost int64, mode cell.Mode) cell.Decision {
	st := m.state(c)
	if mode != cell.Peek {
		c.Limit.Fit(&st, nowNS, cost)
	}
	d := c.Limit.Decide(&st, nowNS, cost, mode)
	if mode != cell.Peek {
		m[m.name(c)] = st
	}
	return d
}

func (m plain) take(r *store.TakeRequest, nowNS int64) (t store.Taken, each []cell.Decision) {
	cost, mode := r.Cost, r.Mode
	if cost == 0 && !r.Takes() {
		mode = cell.Peek
	}
	if r.UpTo && mode == cell.Take {
		for i := range r.Calls {
			if c := &r.Calls[i]; !c.Limit.Shadow && !c.Own {
				cost = min(cost, m.decide(c, nowNS, 1, cell.Peek).Remaining)
			}
		}
		cost = max(cost, 1)
	}
	for i := range r.Calls {
		c := &r.Calls[i]
		d := m.decide(c, nowNS, c.CostOf(cost), cell.Peek)
		if idle(c, cost, mode) {
			d.Limited, d.RetryAfterNS = false, cell.Never
		}
		each = append(each, d)
		t.Limited = t.Limited || mode != cell.Force && d.Limited && !c.Limit.Shadow
	}
	t.RetryAfterNS = cell.Never
	if t.Limited {
		t.RetryAfterNS = 0
	} else if mode != cell.Peek {
		t.Granted = cost
	}
	for i := range r.Calls {
		c := &r.Calls[i]
		takes := mode == cell.Force ||
			mode == cell.Take && (!t.Limited && !each[i].Limited || t.Limited && each[i].Limited && c.Limit.BlockNS > 0)
		if takes && !idle(c, cost, mode) {
			each[i] = m.decide(c, nowNS, c.CostOf(cost), mode)
		}
		t.ResetAfterNS = max(t.ResetAfterNS, each[i].ResetAfterNS)
		if t.Limited && each[i].Limited && !c.Limit.Shadow {
			t.RetryAfterNS = max(t.RetryAfterNS, each[i].RetryAfterNS)
		}
	}
	return t, each
}

// idle reports a call that takes nothing, whatever its limit says.
func idle(c *store.Call, cost int64, mode cell.Mode) bool {
	return c.CostOf(cost) == 0 && (c.Own || mode != cell.Peek)
}

// takeHistories compares with plain.
func takeHistories(t *testing.T, newAsker func() *asker) {
	rapid.Check(t, func(t *rapid.T) {
		k, m := newAsker(), plain{}
		for range rapid.IntRange(1, 20).Draw(t, "batches") {
			k.pass(rapid.SampledFrom([]int64{0, 1, 1000, second / 3, second, 100 * second}).Draw(t, "ns"))
			reqs := make([]store.TakeRequest, rapid.SampledFrom([]int{1, 2, 10, store.MaxTakes}).Draw(t, "requests"))
			for i := range reqs {
				reqs[i] = drawTake(t)
			}
			for i, r := range k.take(reqs...) {
				if r.Err != nil {
					t.Fatal(r.Err)
				}
				for j := range r.Calls {
					r.Calls[j].Key = keyOf(&r)
				}
				if r.Cost < 0 {
					c := &r.Calls[0]
					st, given := m.state(c), int64(0)
					if _, there := m[m.name(c)]; there {
						given = c.Limit.Give(&st, k.nowNS, -r.Cost)
						m[m.name(c)] = st
					}
					if r.Taken.Granted != -given {
						t.Fatalf("request %d gives %d, want %d", i, -r.Taken.Granted, given)
					}
					continue
				}
				want, each := m.take(&r, k.nowNS)
				want.Binding = r.Taken.Binding
				if r.Taken != want {
					t.Fatalf("request %d of %d: %+v, want %+v", i, len(reqs), r.Taken, want)
				}
				for j := range r.Calls {
					if r.Calls[j].Decision != each[j] {
						t.Fatalf("request %d, %s: %+v, want %+v", i, r.Calls[j].Limit.String(), r.Calls[j].Decision, each[j])
					}
				}
			}
		}
	})
}

// keyOf is what a request's key was before it was overwritten: it begins with the number of its limits.
func keyOf(r *store.TakeRequest) []byte { return fmt.Append(nil, "key:", len(r.Calls)) }

func drawTake(t *rapid.T) (r store.TakeRequest) {
	texts := map[string]bool{}
	for range rapid.IntRange(1, 3).Draw(t, "limits") {
		texts[rapid.SampledFrom(literals).Draw(t, "limit")] = true
	}
	r.Calls = calls(t, "", slices.Sorted(maps.Keys(texts))...)
	for i := range r.Calls {
		r.Calls[i].Key = keyOf(&r)
	}
	r.Cost = rapid.SampledFrom([]int64{1, 1, 1, 0, 2, 3, 9}).Draw(t, "cost")
	switch rapid.IntRange(0, 7).Draw(t, "mode") {
	case 0:
		r.Mode = cell.Peek
	case 1:
		r.Mode = cell.Force
	case 2, 3:
		r.UpTo = r.Cost > 0
	case 4:
		if len(r.Calls) == 1 && r.Cost > 0 {
			r.Cost = -r.Cost
			return r
		}
	}
	if rapid.IntRange(0, 2).Draw(t, "costs") == 0 {
		for i := range r.Calls {
			r.Calls[i].Own, r.Calls[i].Cost = rapid.Bool().Draw(t, "own"), rapid.Int64Range(0, 6).Draw(t, "cost of a call")
		}
	}
	return r
}

// bounds: over any span a key never grants more than its burst and what flows back meanwhile.
func bounds(t *testing.T, newAsker func() *asker) {
	type grant struct{ atNS, n int64 }
	check := func(t *rapid.T, grants []grant, capacity, intervalNS int64) {
		for i := range grants {
			sum := int64(0)
			for _, g := range grants[i:] {
				sum += g.n
				if most := capacity + (g.atNS-grants[i].atNS)/intervalNS; sum > most {
					t.Fatalf("%d are granted in %d ns, more than %d", sum, g.atNS-grants[i].atNS, most)
				}
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		k := newAsker()
		burst, count := rapid.Int64Range(0, 9).Draw(t, "burst"), rapid.SampledFrom([]int64{1, 3, 7, 1000}).Draw(t, "count")
		l, text := limit(t, burst, count, 1), fmt.Sprintf("%d/1s,burst=%d", count, burst+1)
		var throttled, taken []grant
		for range rapid.IntRange(1, 30).Draw(t, "batches") {
			k.pass(rapid.Int64Range(0, 2*second/count).Draw(t, "ns"))
			n := rapid.SampledFrom([]int{1, 3, 20}).Draw(t, "requests")
			reqs, takes := make([]store.Request, n), make([]store.TakeRequest, n)
			for i := range n {
				quantity := rapid.Int64Range(1, 3).Draw(t, "quantity")
				reqs[i] = store.Request{Key: []byte("k"), Bucket: l, Quantity: quantity}
				takes[i] = store.TakeRequest{Calls: calls(t, "t", text), TakeOptions: store.TakeOptions{Cost: quantity, UpTo: i%2 == 1}}
			}
			for _, r := range k.throttle(reqs...) {
				if !r.Decision.Limited {
					throttled = append(throttled, grant{k.nowNS, r.Quantity})
				}
			}
			for _, r := range k.take(takes...) {
				taken = append(taken, grant{k.nowNS, r.Taken.Granted})
			}
		}
		check(t, throttled, burst+1, second/count)
		check(t, taken, burst+1, second/count)
	})
}
