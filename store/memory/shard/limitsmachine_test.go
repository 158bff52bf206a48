//go:build !race

package shard_test

import (
	"errors"
	"maps"
	"slices"

	"celld/cell"
	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
	"celld/store/memory/table"
	"celld/store/policy"

	"pgregory.net/rapid"
)

// limitsMachine runs a store with keys of both kinds and its model side by side. Where the store evicts, the model takes over
// what is left; that nothing else has changed, and that the account is right, is checked all the same.
type limitsMachine struct {
	keys        []string
	policyTexts []string
	texts       []string // few of all limits, so that they meet
	store       *memory.Store
	model       limitsModel
	copied      map[string]string // what Drain has told
	named       map[string]string // what DrainSettings has told of policies
	evicted     int64
	evicts      bool
	resets      bool // policies are reset and deleted. What is under them then takes room until it is met
}

var (
	limitKeys     = []string{"a", "b", "c", "a key of some length", "e"}
	calendarTexts = []string{"6/1m,algo=window,align=clock,block=1m", "9/minute,tz=+01:00,block=70s", "9/day", "6/1m,algo=slide,buckets=3",
		"9/1m,algo=log"}
	policyTexts = append([]string{"40/1m", "4/1s,algo=log", "30/1s,algo=log"}, memtest.LimitTexts...)
)

func (m *limitsMachine) drawKey(t *rapid.T) string { return rapid.SampledFrom(m.keys).Draw(t, "key") }

// drawLimit is a literal or, if there is one, a policy.
func (m *limitsMachine) drawLimit(t *rapid.T) (*cell.Limit, *policy.Limit) {
	if names := slices.Sorted(maps.Keys(m.model.policies)); len(names) > 0 && rapid.IntRange(0, 2).Draw(t, "named") == 0 {
		name := rapid.SampledFrom(names).Draw(t, "policy")
		p := m.store.PolicyNamed(name).Limits[0]
		if want := m.model.policies[name]; p.ID != want.id || p.Limit != want.limit {
			t.Fatalf("policy %+v, want %+v", p, want)
		}
		return &p.Limit, p
	}
	l := memtest.MustParse(t, rapid.SampledFrom(m.texts).Draw(t, "limit"))
	return &l, nil
}

func (m *limitsMachine) access(t *rapid.T) store.Access {
	return store.Access{NowNS: m.model.nowNS, NoTouch: rapid.Bool().Draw(t, "noTouch")}
}

func (m *limitsMachine) take(t *rapid.T) {
	calls := make([]store.Call, rapid.SampledFrom([]int{1, 1, 1, 2, 3, 5}).Draw(t, "calls"))
	key := m.drawKey(t)
	for i := range calls {
		if rapid.IntRange(0, 2).Draw(t, "another key") == 0 {
			key = m.drawKey(t)
		}
		calls[i].Key = []byte(key)
		calls[i].Limit, calls[i].Policy = m.drawLimit(t)
	}
	o := store.TakeOptions{
		Cost: rapid.SampledFrom([]int64{1, 1, 1, 2, 3, 5, 12, 0, cell.MaxCost}).Draw(t, "cost"),
		Mode: rapid.SampledFrom([]cell.Mode{cell.Take, cell.Take, cell.Take, cell.Peek, cell.Force}).Draw(t, "mode"),
		UpTo: rapid.IntRange(0, 3).Draw(t, "up to") == 0,
	}
	large := !slices.ContainsFunc(calls, func(c store.Call) bool { return c.Limit.Count < 1<<33 })
	switch {
	case large && !o.UpTo: // numbers of more than 32 bits
		o.Cost = rapid.SampledFrom([]int64{1, 1 << 31, 1 << 32, 1 << 51, cell.MaxCost}).Draw(t, "large cost")
	case o.UpTo, o.Mode == cell.Force: // whose debt would outlive the test
		o.Cost = min(o.Cost, 20)
	}
	before := map[string]string{}
	for key := range m.model.keys {
		before[key] = m.textOf(t, key)
	}
	mayChange := map[string]bool{}
	for i := range calls {
		c := &calls[i]
		_, carried := m.model.fetch(m.model.keys[string(c.Key)], c)
		if o.Mode != cell.Peek && (carried || c.Limit.BlockNS > 0) {
			mayChange[string(c.Key)] = true
		}
	}
	wantLimited, wantGranted, wantErr := m.model.take(slices.Clone(calls), o)
	got, err := m.store.Take(calls, o, m.access(t))
	if m.evictedSome(t, err) {
		return
	}
	if !errors.Is(err, wantErr) || got.Limited != wantLimited || got.Granted != wantGranted &&
		!(o.UpTo && got.Granted < wantGranted && got.Granted > 0) {
		t.Fatalf("%+v of %v: %+v, %v; want limited %v, granted %d, %v", o, calls, got, err, wantLimited, wantGranted, wantErr)
	}
	if err != nil || got.Limited || o.Mode == cell.Peek {
		for key, text := range before {
			if now := m.textOf(t, key); now != text && (err != nil || !mayChange[key]) {
				t.Fatalf("a call that was denied has made %q of %q", now, text)
			}
		}
	}
}

func (m *limitsMachine) give(t *rapid.T) {
	key := m.drawKey(t)
	l, p := m.drawLimit(t)
	n := rapid.SampledFrom([]int64{0, 1, 2, 5, cell.MaxCost}).Draw(t, "n")
	want, wantErr := int64(0), error(nil)
	if n > 0 {
		want, wantErr = m.model.give(key, l, p, n)
	}
	got, err := m.store.Give([]byte(key), l, p, n, m.access(t))
	if !m.evictedSome(t, err) && (got != want || !errors.Is(err, wantErr)) {
		t.Fatalf("given %d, %v; want %d, %v", got, err, want, wantErr)
	}
}

// put is what the model is told of a key that was put over whatever there was, if the store has not refused it.
func (m *limitsMachine) put(t *rapid.T, key string, k *heldKey, err error) {
	old, there := m.model.keys[key]
	delete(m.model.keys, key)
	if there {
		m.model.keys[key] = old
	} else if full := m.model.full(1, table.CostBytes(len(key))); full != (err != nil) {
		t.Fatalf("put %q: %v, full: %v", key, err, full)
	}
	if err == nil {
		m.model.keys[key] = k
	}
}

func (m *limitsMachine) throttle(t *rapid.T) {
	key := m.drawKey(t)
	limit := memtest.MustLimit(t, 3, 1, 1)
	k := m.model.keys[key]
	tat := uint64(0)
	switch {
	case k == nil:
	case k.limits == nil:
		tat = k.tat
	}
	next, want, _ := limit.Throttle(tat, m.model.nowNS, 1)
	d, err := m.store.Throttle([]byte(key), limit, 1, m.access(t))
	switch {
	case m.evictedSome(t, err):
	case k != nil && k.limits != nil:
		if err != store.ErrWrongType {
			t.Fatalf("%v over limits", err)
		}
	case err == nil && d != want:
		t.Fatalf("%+v, want %+v", d, want)
	case !want.Limited:
		m.put(t, key, &heldKey{tat: next}, err)
	}
}

func (m *limitsMachine) set(t *rapid.T) {
	key := m.drawKey(t)
	st := store.Value{
		TAT:      uint64(m.model.wallNS() + rapid.Int64Range(1, 5*second).Draw(t, "tat")),
		ExpiryNS: rapid.SampledFrom([]int64{store.AtTAT, store.NoExpiry, m.model.wallNS() + second}).Draw(t, "expiry"),
	}
	err := memtest.Put(m.store, key, st, m.model.nowNS)
	if !m.evictedSome(t, err) {
		m.put(t, key, &heldKey{tat: cell.ShiftInstant(st.TAT, -m.model.aheadNS), expiry: st.ExpiryNS}, err)
	}
}

// expire is EXPIRE and PERSIST: a key is put as it was.
func (m *limitsMachine) expire(t *rapid.T) {
	key := m.drawKey(t)
	expiry := rapid.SampledFrom([]int64{store.AtTAT, store.NoExpiry, m.model.wallNS() + 1, m.model.wallNS() + second,
		m.model.wallNS() + 100*second}).Draw(t, "expiry")
	there := false
	err := m.store.Update([]byte(key), m.access(t), func(st store.Value, ok bool) (store.Value, bool) {
		if there = ok; !ok {
			return st, false
		}
		st.ExpiryNS = expiry
		return st, true
	})
	k := m.model.keys[key]
	if there != (k != nil) || err != nil {
		t.Fatalf("update of %q: %v, %v", key, there, err)
	}
	if k != nil {
		k.expiry = expiry
	}
}

func (m *limitsMachine) delete(t *rapid.T) {
	key := m.drawKey(t)
	if got, want := m.store.Delete([]byte(key), m.model.nowNS), m.model.keys[key] != nil; got != want {
		t.Fatalf("delete %q: %v", key, got)
	}
	delete(m.model.keys, key)
}

func (m *limitsMachine) rename(t *rapid.T) {
	from, to := m.drawKey(t), m.drawKey(t)
	k := m.model.keys[from]
	moves := k != nil && from != to
	if rapid.Bool().Draw(t, "only new") {
		moves = moves && m.model.keys[to] == nil
		there, moved, _ := m.store.RenameNew([]byte(from), []byte(to), memtest.At(m.model.nowNS))
		if there != (k != nil) || moved != moves {
			t.Fatalf("rename %q to %q, if new: %v, %v, want %v", from, to, there, moved, moves)
		}
	} else if got := memtest.Did(m.store.Rename([]byte(from), []byte(to), memtest.At(m.model.nowNS))); got != (k != nil) {
		t.Fatalf("rename %q: %v", from, got)
	}
	if moves {
		m.model.keys[to] = k
		delete(m.model.keys, from)
	}
	m.evictedSome(t, nil)
}

func (m *limitsMachine) copy(t *rapid.T) {
	from, to, replace := m.drawKey(t), m.drawKey(t), rapid.Bool().Draw(t, "replace")
	if from == to {
		return
	}
	k, old := m.model.keys[from], m.model.keys[to]
	copies := k != nil && (old == nil || replace)
	full := false
	if copies {
		alone := limitsModel{keys: map[string]*heldKey{to: k}}
		made, grown := int64(1), alone.bytes()
		if old != nil {
			alone.keys[to] = old
			made, grown = 0, grown-alone.bytes()
		}
		full = m.model.full(made, grown)
	}
	copied, err := m.store.Copy([]byte(from), []byte(to), replace, m.access(t))
	if m.evictedSome(t, err) {
		return
	}
	if copied != (copies && !full) || (errors.Is(err, store.ErrFull)) != full {
		t.Fatalf("copy %q to %q: %v, %v; want %v, full: %v", from, to, copied, err, copies, full)
	}
	if copied {
		m.model.keys[to] = k.clone()
	}
}

// copyFields is HSET of what HGETALL shows of another key.
func (m *limitsMachine) copyFields(t *rapid.T) {
	from, to := m.drawKey(t), m.drawKey(t)
	var limits []store.Field
	_, err := m.store.Limits([]byte(from), m.access(t), func(l *store.LimitState) {
		copied, err := m.store.ParseField(string(l.AppendName(nil)), string(l.Limit.AppendState(nil, &l.State)))
		if err != nil || memtest.LimitText(&copied.LimitState) != memtest.LimitText(l) {
			t.Fatalf("%s is read as %s, %v", memtest.LimitText(l), memtest.LimitText(&copied.LimitState), err)
		}
		limits = append(limits, copied)
	})
	k := m.model.keys[from]
	if k == nil || k.limits == nil {
		if (err == store.ErrWrongType) != (k != nil) {
			t.Fatalf("limits of %q: %v", from, err)
		}
		return
	}
	var copied []heldLimit
	for i := range limits {
		copied = append(copied, m.model.held(&limits[i].LimitState))
	}
	_, err = m.store.PutFields([]byte(to), limits, rapid.Bool().Draw(t, "apart"), m.access(t))
	if m.evictedSome(t, err) {
		return
	}
	m.putLimits(t, to, copied, err)
}

// putLimits is PutFields in the model.
func (m *limitsMachine) putLimits(t *rapid.T, key string, limits []heldLimit, err error) {
	model := &m.model
	next := &heldKey{limits: []heldLimit{}}
	var grown, made int64
	if old := model.keys[key]; old == nil {
		made, grown = 1, table.CostBytes(len(key))
	} else if old.limits == nil {
		if err != store.ErrWrongType {
			t.Fatalf("limits over a TAT: %v", err)
		}
		return
	} else {
		next.expiry = old.expiry
		for i := range old.limits {
			h := old.limits[i]
			grown -= table.LimitEntryBytes + ringBytes(&h.st)
			if (h.policy == 0 || model.nameOf(h.policy) != "") && model.endOf(&h.limit, &h.st) > uint64(model.nowNS) {
				next.limits = append(next.limits, h)
			}
		}
	}
	for _, h := range limits {
		if old := next.find(&h.limit, h.policy); old != nil {
			*old = h
		} else {
			next.limits = append(next.limits, h)
		}
	}
	for i := range next.limits {
		grown += table.LimitEntryBytes + ringBytes(&next.limits[i].st)
	}
	full := len(next.limits) > 0 && model.full(made, grown)
	if (errors.Is(err, store.ErrFull)) != full || err != nil && !full {
		t.Fatalf("put limits: %v, full: %v", err, full)
	}
	if err != nil {
		return
	}
	if next.tat = model.end(next); len(next.limits) > 0 {
		model.keys[key] = next
	} else {
		delete(model.keys, key)
	}
}

func (m *limitsMachine) setPolicy(t *rapid.T) {
	name := rapid.SampledFrom([]string{"p", "q"}).Draw(t, "name")
	limit := memtest.MustParse(t, rapid.SampledFrom(m.policyTexts).Draw(t, "limit"))
	o := policy.Options{Reset: m.resets && rapid.IntRange(0, 3).Draw(t, "reset") == 0}
	p, there := m.model.policies[name]
	if anew := there && !p.limit.Alike(limit.Shape); anew && !m.resets {
		return
	} else if anew {
		there = false // what was used of it is gone
	}
	if ok, err := m.store.SetPolicy(name, []cell.Limit{limit}, o); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if !there || o.Reset {
		m.model.lastID++
		p.id = m.model.lastID
	}
	p.limit = limit
	m.model.policies[name] = p
	m.forgetGone(t)
}

// forgetGone is what becomes of states whose policy has gone. Where the room matters they are swept, as they count until then.
func (m *limitsMachine) forgetGone(t *rapid.T) {
	for key := range m.model.keys {
		m.model.forgetGone(key)
	}
	if m.model.refuses || rapid.Bool().Draw(t, "swept") {
		memtest.Sweep(m.store, m.model.nowNS)
	}
}

func (m *limitsMachine) deletePolicy(t *rapid.T) {
	name := rapid.SampledFrom([]string{"p", "q"}).Draw(t, "name")
	_, there := m.model.policies[name]
	if !m.resets {
		return
	}
	if got := m.store.DeletePolicy(name); got != there {
		t.Fatalf("delete policy %q: %v", name, got)
	}
	delete(m.model.policies, name)
	m.forgetGone(t)
}

func (m *limitsMachine) pass(t *rapid.T) {
	m.model.pass(rapid.SampledFrom([]int64{0, 1, 1000, second / 10, second / 3, second, 3 * second, 70 * second}).Draw(t, "ns"))
}

// setWall sets the wall clock.
func (m *limitsMachine) setWall(t *rapid.T) {
	model := &m.model
	ahead := rapid.SampledFrom([]int64{0, 1, -1, second / 3, 20 * second, -20 * second, 70 * second, -3000 * second}).Draw(t, "ahead")
	m.store.SetWall(model.nowNS+ahead, model.nowNS)
	model.setWall(model.keys, ahead)
	model.aheadNS = ahead
	for _, k := range model.keys {
		if k.limits != nil {
			k.tat = model.end(k)
		}
	}
	model.dropDead(model.keys)
	m.checkCopyAnew()
}

// checkCopyAnew copies all that is there, as the files are written anew when the wall clock is set.
func (m *limitsMachine) checkCopyAnew() {
	clear(m.copied)
	for at, more := (memory.Position{}), true; more; {
		at, more = m.store.Export(at, m.model.nowNS, func(key []byte, st store.Value) { m.copied[string(key)] = stateText(st, &m.model) })
	}
}

func (m *limitsMachine) sweep(*rapid.T) { memtest.Sweep(m.store, m.model.nowNS) }

func (m *limitsMachine) flush(*rapid.T) {
	m.store.Flush()
	clear(m.model.keys)
	m.tell()
}
