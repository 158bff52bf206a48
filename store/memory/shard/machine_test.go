package shard_test

import (
	"maps"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"celld/cell"
	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
	"celld/store/memory/table"
)

// machine runs a store and its model side by side.
type machine struct {
	store   *memory.Store
	model   model
	exact   bool                   // one shard: the model knows every victim
	copied  map[string]store.Value // what Drain has told so far
	watches []*modelWatch
}

type modelWatch struct {
	watch   *memory.Watch
	name    string
	live    bool
	changed bool
}

var machineKeys = []string{"a", "b", "c", "dd", "ee", "ff", "ggggg", "", "\xff\x00", "i", "j", "k"}

func drawKey(t *rapid.T) string { return rapid.SampledFrom(machineKeys).Draw(t, "key") }

func (m *machine) drawAccess(t *rapid.T) store.Access {
	return store.Access{NowNS: m.model.nowNS, NoTouch: rapid.Bool().Draw(t, "noTouch")}
}

func (m *machine) drawState(t *rapid.T) store.Value {
	now := m.model.nowNS
	expiries := []int64{store.AtTAT, store.AtTAT, store.NoExpiry, store.NoExpiry, now - 1, now, now + 1, now + 9, now + 25}
	st := store.Value{ExpiryNS: rapid.SampledFrom(expiries).Draw(t, "expiry")}
	if rapid.Bool().Draw(t, "counts") {
		st.Count = rapid.SampledFrom([]int64{math.MinInt64, -1, 0, 1, now, math.MaxInt64}).Draw(t, "count")
	} else {
		st.TAT = uint64(now + rapid.SampledFrom([]int64{-3, 0, 1, 2, 5, 12, 30, 60}).Draw(t, "tat"))
	}
	return st
}

// gone returns the keys of the model that the store does not have any more, for model.makeRoom.
func (m *machine) gone() []*modelKey {
	left := map[string]bool{}
	m.scan(func(key string, _ store.Value) { left[key] = true })
	return slices.DeleteFunc(slices.Clone(m.model.keys), func(k *modelKey) bool { return left[k.name] })
}

func (m *machine) makeRoom(t *rapid.T, keys, bytes int64) {
	gone := m.gone
	if m.exact {
		gone = nil
	}
	if err := m.model.makeRoom(keys, bytes, gone); err != nil {
		t.Fatal(err)
	}
}

// trim is what a lowered limit does.
func (m *machine) trim(t *rapid.T) {
	if !m.model.noEviction {
		m.makeRoom(t, 0, 0)
	}
}

func (m *machine) scan(fn func(string, store.Value)) {
	for cursor := uint64(0); ; {
		if cursor = m.store.Scan(cursor, 3, m.model.nowNS, fn); cursor == 0 {
			return
		}
	}
}

// put is a put in both that has been done in the store; err is what that said.
func (m *machine) put(t *rapid.T, name string, st store.Value, err error) {
	if k := m.model.find(name); k != nil {
		if err != nil {
			t.Fatalf("put over %q: %v", name, err)
		}
		k.state = st
	} else {
		if ok := m.model.admits(name); ok != (err == nil) {
			t.Fatalf("insert of %q: %v, the model says %v", name, err, ok)
		}
		if err != nil {
			return
		}
		m.makeRoom(t, 1, table.CostBytes(len(name)))
		m.model.insert(name, st)
	}
	m.changed(name)
}

func (m *machine) changed(name string) {
	for _, w := range m.watches {
		if w.name == name {
			w.changed = true
		}
	}
}

func (m *machine) throttle(t *rapid.T) {
	name, a := drawKey(t), m.drawAccess(t)
	maxBurst, intervalNS := rapid.Int64Range(-1, 3).Draw(t, "burst"), rapid.Int64Range(1, 9).Draw(t, "interval")
	limit := memtest.MustLimit(t, maxBurst, second/intervalNS, 1)
	quantity := rapid.SampledFrom([]int64{1, 1, 1, 2, 3, 0, -1, -2, 1 << 62}).Draw(t, "quantity")

	k := m.model.use(name, a)
	var tat uint64
	if k != nil {
		tat = k.state.TAT
	}
	m.lookup(k)
	next, want, wantErr := limit.Throttle(tat, a.NowNS, quantity)
	got, err := m.store.Throttle([]byte(name), limit, quantity, a)
	switch {
	case wantErr != nil:
		if err == nil || err.Error() != wantErr.Error() {
			t.Fatalf("%v, want %v", err, wantErr)
		}
		return
	case want.Limited || quantity == 0:
	case next > uint64(a.NowNS):
		m.put(t, name, store.Value{TAT: next}, err)
		if err != nil {
			want = cell.Decision{}
		}
	case k != nil:
		m.model.remove(name)
	}
	if got != want {
		t.Fatalf("%+v, want %+v", got, want)
	}
}

func (m *machine) lookup(found *modelKey) {
	if found != nil {
		m.model.stats.Hits++
	} else {
		m.model.stats.Misses++
	}
}

func (m *machine) get(t *rapid.T) {
	name, a := drawKey(t), m.drawAccess(t)
	k := m.model.use(name, a)
	m.lookup(k)
	if st, ok := m.store.Get([]byte(name), a); ok != (k != nil) || ok && st != k.state {
		t.Fatalf("get %q: %+v, %v; want %+v", name, st, ok, k)
	}
}

func (m *machine) update(t *rapid.T) {
	name, a := drawKey(t), m.drawAccess(t)
	put := rapid.IntRange(0, 3).Draw(t, "put") > 0
	st := m.drawState(t)
	if rapid.IntRange(0, 2).Draw(t, "deletes") == 0 {
		st = store.Value{}
	}
	k := m.model.use(name, a)
	err := m.store.Update([]byte(name), a, func(old store.Value, ok bool) (store.Value, bool) {
		if ok != (k != nil) || ok && old != k.state {
			t.Fatalf("update of %q is given %+v, %v; want %+v", name, old, ok, k)
		}
		return st, put
	})
	over := st.ExpiryNS > 0 && st.ExpiryNS <= a.NowNS || (st.ExpiryNS == store.AtTAT || !st.IsCount()) && st.TAT <= uint64(a.NowNS)
	switch {
	case put && !over:
		m.put(t, name, st, err)
		return
	case put:
		m.model.remove(name)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (m *machine) delete(t *rapid.T) {
	name := drawKey(t)
	if got, want := m.store.Delete([]byte(name), m.model.nowNS), m.model.find(name) != nil; got != want {
		t.Fatalf("delete %q: %v", name, got)
	}
	m.model.remove(name)
}

func (m *machine) rename(t *rapid.T) {
	from, to := drawKey(t), drawKey(t)
	k := m.model.find(from)
	moves := k != nil && from != to
	if rapid.Bool().Draw(t, "only new") {
		moves = moves && m.model.find(to) == nil
		there, moved, _ := m.store.RenameNew([]byte(from), []byte(to), memtest.At(m.model.nowNS))
		if there != (k != nil) || moved != moves {
			t.Fatalf("rename %q to %q, if new: %v, %v, want %v", from, to, there, moved, moves)
		}
	} else if got := memtest.Did(m.store.Rename([]byte(from), []byte(to), memtest.At(m.model.nowNS))); got != (k != nil) {
		t.Fatalf("rename %q to %q: %v", from, to, got)
	}
	if !moves {
		return
	}
	m.model.remove(to)
	m.model.remove(from)
	k.name, k.touchedNS = to, m.model.nowNS
	m.model.keys = append(m.model.keys, k)
	m.model.protected.Add(to, struct{}{})
	m.changed(to)
	m.trim(t)
}

// copy may find that the key to be copied had to go for the room of the new one.
func (m *machine) copy(t *rapid.T) {
	from, to, a, replace := drawKey(t), drawKey(t), m.drawAccess(t), rapid.Bool().Draw(t, "replace")
	if from == to {
		return
	}
	copied, err := m.store.Copy([]byte(from), []byte(to), replace, a)
	k := m.model.use(from, a)
	var old *modelKey
	if k != nil {
		old = m.model.use(to, a)
	}
	if k == nil || old != nil && !replace {
		if copied || err != nil {
			t.Fatalf("copy %q to %q: %v, %v", from, to, copied, err)
		}
		return
	}
	if old == nil && err == nil && !copied {
		m.makeRoom(t, 1, table.CostBytes(len(to)))
		if m.model.find(from) != nil {
			t.Fatalf("%q is there, and was not copied to %q", from, to)
		}
		return
	}
	m.put(t, to, k.state, err)
	if copied != (err == nil) {
		t.Fatalf("copy %q to %q: %v, %v", from, to, copied, err)
	}
}

func (m *machine) idle(t *rapid.T) {
	name := drawKey(t)
	ns, ok := m.store.IdleNS([]byte(name), m.model.nowNS)
	if k := m.model.find(name); ok != (k != nil) || ok && !idleAsNoted(ns, m.model.nowNS-k.touchedNS) {
		t.Fatalf("idle %q: %d, %v; want %+v", name, ns, ok, k)
	}
}

func (m *machine) random(t *rapid.T) {
	name, ok := m.store.Random(m.model.nowNS)
	if ok != (len(m.model.keys) > 0) || ok && m.model.find(name) == nil {
		t.Fatalf("random: %q, %v", name, ok)
	}
}

func (m *machine) length(t *rapid.T) {
	if got := m.store.Len(m.model.nowNS); got != len(m.model.keys) {
		t.Fatalf("Len is %d, want %d", got, len(m.model.keys))
	}
}

func (m *machine) sweep(t *rapid.T) {
	before := m.store.Stats(m.model.nowNS).Expired
	removed := memtest.Sweep(m.store, m.model.nowNS)
	if left := m.model.stats.Expired - before - removed; left != 0 {
		t.Fatalf("swept %d, %d are left", removed, left)
	}
}

func (m *machine) resize(t *rapid.T) {
	m.store.Len(m.model.nowNS) // so that the store, which is not told the time here, knows it
	switch rapid.IntRange(0, 2).Draw(t, "limit") {
	case 0:
		m.model.maxKeys = rapid.Int64Range(1, 9).Draw(t, "maxKeys")
		memtest.SetMaxKeys(&m.store.Capacity, m.model.maxKeys)
	case 1:
		limits := []int64{0, 0, 1, 2*table.OverheadBytes + 3, 5*table.OverheadBytes + 6}
		m.model.maxBytes = rapid.SampledFrom(limits).Draw(t, "maxBytes")
		memtest.SetMaxBytes(&m.store.Capacity, m.model.maxBytes)
	default:
		m.model.noEviction = rapid.Bool().Draw(t, "noEviction")
		memtest.SetNoEviction(&m.store.Capacity, m.model.noEviction)
	}
	m.trim(t)
}

func (m *machine) flush(*rapid.T) {
	m.store.Len(m.model.nowNS) // the model has counted the dead as expired
	m.store.Flush()
	m.model.clear()
}

func (m *machine) drain(t *rapid.T) {
	m.store.Len(m.model.nowNS) // the model has removed the dead
	told := map[string]bool{}
	memtest.Drain(m.store, func(c memory.Change) {
		switch {
		case c.Flush && len(told) > 0:
			t.Fatal("a flush is told after other changes, and there was nothing in between")
		case told[string(c.Key)]:
			t.Fatalf("%q is told twice", c.Key)
		case c.Flush:
			clear(m.copied)
			return
		case c.Deleted:
			delete(m.copied, string(c.Key))
		default:
			m.copied[string(c.Key)] = c.State
		}
		told[string(c.Key)] = true
	})
	held := map[string]store.Value{}
	for _, k := range m.model.keys {
		held[k.name] = k.state
	}
	m.copied = memtest.WithoutDead(m.copied, held, m.model.nowNS)
	if len(m.copied) != len(m.model.keys) {
		t.Fatalf("the copy has %q, want %d keys", slices.Sorted(maps.Keys(m.copied)), len(m.model.keys))
	}
	for _, k := range m.model.keys {
		if got, ok := m.copied[k.name]; !ok || got != k.state {
			t.Fatalf("the copy has %q as %+v, want %+v", k.name, got, k.state)
		}
	}
}

func (m *machine) watch(t *rapid.T) {
	name := drawKey(t)
	w := &modelWatch{watch: m.store.Watch([]byte(name), m.model.nowNS), name: name, live: m.model.find(name) != nil}
	m.watches = append(m.watches, w)
}

func (m *machine) unwatch(t *rapid.T) {
	if len(m.watches) == 0 {
		t.Skip("nothing is watched")
	}
	i := rapid.IntRange(0, len(m.watches)-1).Draw(t, "watch")
	m.watches[i].watch.Stop()
	m.watches = slices.Delete(m.watches, i, i+1)
}

func (m *machine) pass(t *rapid.T) {
	m.model.setTime(m.model.nowNS + rapid.SampledFrom([]int64{0, 1, 1, 3, 10, 40}).Draw(t, "ns"))
}

// check compares all that can be seen, without removing or touching anything.
func (m *machine) check(t *rapid.T) {
	memtest.MustAudit(t, m.store)
	seen := map[string]bool{}
	m.scan(func(key string, st store.Value) {
		k := m.model.find(key)
		if k == nil || k.state != st || seen[key] {
			t.Fatalf("scan delivers %q %+v, want %+v once", key, st, k)
		}
		seen[key] = true
	})
	if bytes := m.keyBytes(); bytes != m.model.bytes() {
		t.Fatalf("keys take %d bytes each by itself, want %d", bytes, m.model.bytes())
	}
	if len(seen) != len(m.model.keys) {
		t.Fatalf("scan delivers %q, want %d keys", slices.Sorted(maps.Keys(seen)), len(m.model.keys))
	}
	got, want := m.store.Stats(m.model.nowNS), m.model.stats
	if got.Hits != want.Hits || got.Misses != want.Misses || got.Evicted != want.Evicted || got.Expired > want.Expired {
		t.Fatalf("stats %+v, want %+v", got, want)
	}
	if got.Expired == want.Expired { // no dead key is held
		var expiring int64
		for _, k := range m.model.keys {
			if k.state.ExpiryNS != store.NoExpiry {
				expiring++
			}
		}
		if got.WithExpiry != expiring || got.Bytes != m.model.bytes() {
			t.Fatalf("stats %+v, want %d with expiry, %d bytes", got, expiring, m.model.bytes())
		}
		unsure, sure := int64(m.model.probation.Len()), int64(m.model.protected.Len())
		if m.exact && (got.Probation != unsure || got.Protected != sure) || got.Probation+got.Protected != unsure+sure {
			t.Fatalf("stats %+v, want %d on probation, %d protected", got, unsure, sure)
		}
	}
	if m.model.noEviction { // limits may have been lowered below what is held
		return
	}
	if !m.model.fits(int64(len(m.model.keys)), m.model.bytes()) {
		t.Fatalf("%d keys of %d, %d bytes of %d", len(m.model.keys), m.model.maxKeys, m.model.bytes(), m.model.maxBytes)
	}
}

// keyBytes is what the keys take, each by itself.
func (m *machine) keyBytes() (sum int64) {
	for _, k := range m.model.keys {
		n, _ := m.store.KeyBytes([]byte(k.name), m.model.nowNS)
		sum += n
	}
	return sum
}

// checkWatches is apart from check, as it removes dead keys.
func (m *machine) checkWatches(t *rapid.T) {
	for _, w := range m.watches {
		w.changed = w.changed || w.live && m.model.find(w.name) == nil
		if got := w.watch.Changed(m.model.nowNS); got != w.changed {
			t.Fatalf("watched %q changed: %v, want %v", w.name, got, w.changed)
		}
	}
}

func runMachine(t *rapid.T, shards int) {
	m := &machine{exact: shards == 1, copied: map[string]store.Value{}}
	m.model.maxKeys = rapid.Int64Range(1, 9).Draw(t, "maxKeys")
	m.model.clear()
	m.model.setTime(t0)
	m.store = memory.New(memory.Options{MaxKeys: m.model.maxKeys, Shards: shards, Journal: true})
	actions := map[string]func(*rapid.T){
		"":         m.check,
		"throttle": m.throttle, "throttle2": m.throttle, "throttle3": m.throttle,
		"update": m.update, "update2": m.update, "update3": m.update,
		"get": m.get, "delete": m.delete, "rename": m.rename, "copy": m.copy, "copy2": m.copy, "idle": m.idle,
		"random": m.random, "length": m.length, "sweep": m.sweep, "flush": m.flush,
		"resize": m.resize, "drain": m.drain, "watch": m.watch, "unwatch": m.unwatch,
		"checkWatches": m.checkWatches, "pass": m.pass, "pass2": m.pass, "pass3": m.pass,
	}
	for range 4 { // 30 steps each
		t.Repeat(actions)
	}
}

// Each is 1,000 runs of some 120 steps.
func TestModelOneShard(t *testing.T) {
	for range 10 {
		rapid.Check(t, func(t *rapid.T) { runMachine(t, 1) })
	}
}

// With several shards the model is told which key was evicted, and checks all but that it was the oldest.
func TestModelShards(t *testing.T) {
	for range 10 {
		rapid.Check(t, func(t *rapid.T) { runMachine(t, 4) })
	}
}
