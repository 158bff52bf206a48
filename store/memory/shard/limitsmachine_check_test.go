//go:build !race

package shard_test

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"celld/cell"
	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
	"celld/store/policy"
)

// tell is a Drain into the copy.
func (m *limitsMachine) tell() {
	memtest.Drain(m.store, func(c memory.Change) {
		switch {
		case c.Flush:
			clear(m.copied)
		case c.Deleted:
			delete(m.copied, string(c.Key))
		default:
			m.copied[string(c.Key)] = stateText(c.State, &m.model)
		}
	})
	m.store.DrainSettings(func(c policy.Change) {
		if text, ok := m.store.SettingText(c.Setting); ok {
			m.named[c.Name] = text
		} else {
			delete(m.named, c.Name)
		}
	})
}

// evictedSome reports that the store has evicted keys since it was last asked, or that what was asked of it is more than all
// others' room. Then the model takes over what is there.
func (m *limitsMachine) evictedSome(t *rapid.T, err error) bool {
	evicted := m.store.Stats(m.model.nowNS).Evicted
	if evicted == m.evicted && (!errors.Is(err, store.ErrFull) || !m.evicts) {
		return false
	}
	if !m.evicts {
		t.Fatal("a store with room enough, or that refuses, has evicted")
	}
	m.evicted = evicted
	m.takeOver(t)
	return true
}

// takeOver makes the model what the store has.
func (m *limitsMachine) takeOver(*rapid.T) {
	clear(m.model.keys)
	for at, more := (memory.Position{}), true; more; {
		at, more = m.store.Export(at, m.model.nowNS, func(key []byte, st store.Value) {
			k := &heldKey{tat: cell.ShiftInstant(st.TAT, -m.model.aheadNS), expiry: st.ExpiryNS}
			if st.Limits != nil {
				k.limits = []heldLimit{}
				for i := range *st.Limits {
					k.limits = append(k.limits, m.model.held(&(*st.Limits)[i]))
				}
			}
			m.model.keys[string(key)] = k
		})
	}
}

// textOf is what the store has under a key.
func (m *limitsMachine) textOf(t *rapid.T, key string) string {
	a := memtest.Untouched(m.model.nowNS)
	st, ok := m.store.Get([]byte(key), a)
	if !ok {
		return "nothing"
	}
	var limits store.Limits
	lines := func() (text string) {
		text = stateText(store.Value{HoldsLimits: st.HoldsLimits, TAT: st.TAT, ExpiryNS: st.ExpiryNS, Limits: &limits}, &m.model)
		return text
	}
	if !st.HoldsLimits {
		return lines()
	}
	if _, err := m.store.Limits([]byte(key), a, func(l *store.LimitState) {
		limits = append(limits, store.LimitState{Policy: l.Policy, Limit: l.Limit, State: cloneState(l.State)})
	}); err != nil {
		t.Fatal(err)
	}
	return lines()
}

func (m *limitsMachine) expectText(t *rapid.T, key string) {
	if got, want := m.textOf(t, key), m.model.text(key); got != want {
		t.Fatalf("%q has %s\nwant %s", key, got, want)
	}
	if st, _ := m.store.Get([]byte(key), memtest.Untouched(m.model.nowNS)); st.TAT != cell.ShiftInstant(m.model.keys[key].tat,
		m.model.aheadNS) {
		t.Fatalf("%q ends at %d, want %d", key, st.TAT, m.model.keys[key].tat)
	}
}

func (m *limitsMachine) check(t *rapid.T) {
	if err := memtest.Audit(&m.store.Shards); err != nil {
		t.Fatal(err)
	}
	if got, want := slices.Sorted(maps.Keys(memtest.Contents(t, m.store, m.model.nowNS))),
		slices.Sorted(maps.Keys(m.model.keys)); !slices.Equal(got, want) {
		t.Fatalf("keys %q, want %q", got, want)
	}
	for key := range m.model.keys {
		m.expectText(t, key)
	}
	memtest.Sweep(m.store, m.model.nowNS)
	bytes, keys := m.store.Stats(m.model.nowNS).Bytes, int64(m.store.Len(m.model.nowNS))
	if !m.evicts && bytes != m.model.bytes() {
		t.Fatalf("%d bytes, want %d", bytes, m.model.bytes())
	}
	if m.evicts && (keys > m.model.maxKeys || m.model.maxBytes > 0 && bytes > m.model.maxBytes) {
		t.Fatalf("%d keys and %d bytes, of %d and %d", keys, bytes, m.model.maxKeys, m.model.maxBytes)
	}
}

// checkCopy compares what Drain and Export tell.
func (m *limitsMachine) checkCopy(t *rapid.T) {
	m.tell()
	policies := map[string]string{}
	for name, p := range m.model.policies {
		policies[name] = p.limit.String()
	}
	if !maps.Equal(m.named, policies) {
		t.Fatalf("policies %v are told, want %v", m.named, policies)
	}
	exported := map[string]bool{}
	for at, more := (memory.Position{}), true; more; {
		at, more = m.store.Export(at, m.model.nowNS, func(key []byte, st store.Value) {
			if got, want := stateText(st, &m.model), m.model.text(string(key)); got != want {
				t.Errorf("%q is exported as %s\nwant %s", key, got, want)
			}
			exported[string(key)] = true
		})
	}
	keys := m.model.keys
	m.model.keys = cloneKeys(keys)
	for key := range keys {
		m.model.forgetGone(key)
		if _, left := m.model.keys[key]; exported[key] != left || left && m.copied[key] == "" {
			t.Fatalf("%q is told: %v, want %v", key, exported[key], left)
		}
	}
	m.model.keys = keys
}

func runLimitsMachine(t *rapid.T, shards int) {
	m := &limitsMachine{copied: map[string]string{}, named: map[string]string{}}
	m.keys = rapid.SliceOfN(rapid.SampledFrom(limitKeys), 1, 5).Draw(t, "keys")
	texts := memtest.LimitTexts
	if m.policyTexts = policyTexts; rapid.IntRange(0, 2).Draw(t, "calendar") == 0 {
		texts, m.policyTexts = calendarTexts, calendarTexts
	}
	m.texts = rapid.SliceOfN(rapid.SampledFrom(texts), 1, 5).Draw(t, "texts")
	m.model = limitsModel{nowNS: t0, keys: map[string]*heldKey{}, policies: map[string]heldPolicy{}, maxKeys: 1000}
	if kind := rapid.IntRange(0, 2).Draw(t, "room"); kind > 0 {
		m.model.maxKeys = rapid.Int64Range(1, 5).Draw(t, "maxKeys")
		m.model.maxBytes = rapid.SampledFrom([]int64{0, 130, 300, 600, 1200}).Draw(t, "maxBytes")
		m.model.refuses, m.evicts = kind == 1, kind == 2
	}
	m.resets = !m.evicts && rapid.Bool().Draw(t, "resets")
	m.store = memory.New(memory.Options{MaxKeys: m.model.maxKeys, MaxBytes: m.model.maxBytes, NoEviction: m.model.refuses, Shards: shards,
		Journal: true})
	actions := map[string]func(*rapid.T){
		"":     m.check,
		"take": m.take, "take2": m.take, "take3": m.take, "take4": m.take, "take5": m.take, "take6": m.take,
		"give": m.give, "throttle": m.throttle, "set": m.set, "expire": m.expire, "delete": m.delete, "rename": m.rename, "copy": m.copy,
		"copyFields": m.copyFields, "setPolicy": m.setPolicy, "setPolicy2": m.setPolicy, "deletePolicy": m.deletePolicy,
		"pass": m.pass, "pass2": m.pass, "sweep": m.sweep, "setWall": m.setWall, "setWall2": m.setWall, "flush": m.flush,
		"tell": func(*rapid.T) { m.tell() }, "checkCopy": m.checkCopy,
	}
	for range 3 {
		t.Repeat(actions)
	}
	m.model.pass(1 << 60)
	for key := range m.model.keys { // a limit that warms up lends without bound, as Guava's: it may owe more than these 36 years
		m.store.Delete([]byte(key), m.model.nowNS)
	}
	memtest.Sweep(m.store, m.model.nowNS)
	if st := m.store.Stats(m.model.nowNS); st.Bytes != 0 || m.store.Len(m.model.nowNS) != 0 {
		t.Fatalf("when all is over: %+v", st)
	}
	if err := memtest.Audit(&m.store.Shards); err != nil {
		t.Fatal(err)
	}
}

func TestLimitsModel(t *testing.T) {
	for _, shards := range []int{1, 4} {
		for range 5 {
			rapid.Check(t, func(t *rapid.T) { runLimitsMachine(t, shards) })
		}
	}
}
