package shard_test

import (
	"errors"
	"math"
	"slices"

	"celld/store"
	"celld/store/memory/shard"
	"celld/store/memory/table"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// model is what a store does, told as simply as can be: a slice of keys, an LRU for each segment, and dead keys removed
// whenever the time changes.
type model struct {
	nowNS      int64
	keys       []*modelKey
	probation  *order
	protected  *order
	maxKeys    int64
	maxBytes   int64
	noEviction bool
	stats      shard.Stats
}

type order = simplelru.LRU[string, struct{}]

func newOrder() *order {
	o, _ := simplelru.NewLRU[string, struct{}](math.MaxInt, nil)
	return o
}

func (m *model) clear() {
	m.keys, m.probation, m.protected = nil, newOrder(), newOrder()
}

type modelKey struct {
	name      string
	state     store.Value
	touchedNS int64
}

func (k *modelKey) dead(nowNS int64) bool {
	expired := k.state.ExpiryNS > 0 && k.state.ExpiryNS <= nowNS
	return expired || !k.state.IsCount() && k.state.TAT <= uint64(nowNS)
}

func (m *model) find(name string) *modelKey {
	for _, k := range m.keys {
		if k.name == name {
			return k
		}
	}
	return nil
}

func (m *model) remove(name string) {
	m.keys = slices.DeleteFunc(m.keys, func(k *modelKey) bool { return k.name == name })
	for _, o := range []*order{m.probation, m.protected} {
		o.Remove(name)
	}
}

func (m *model) setTime(nowNS int64) {
	m.nowNS = nowNS
	for _, k := range slices.Clone(m.keys) {
		if k.dead(nowNS) {
			m.remove(k.name)
			m.stats.Expired++
		}
	}
}

// use finds a key and makes it the youngest of the protected.
func (m *model) use(name string, a store.Access) *modelKey {
	k := m.find(name)
	if k == nil || a.NoTouch {
		return k
	}
	m.probation.Remove(name)
	m.protected.Remove(name)
	m.protected.Add(name, struct{}{})
	k.touchedNS = m.nowNS
	return k
}

func (m *model) bytes() (n int64) {
	for _, k := range m.keys {
		n += table.CostBytes(len(k.name))
	}
	return n
}

func (m *model) fits(keys, bytes int64) bool {
	return keys <= m.maxKeys && (m.maxBytes == 0 || bytes <= m.maxBytes)
}

// makeRoom evicts until so many more keys and bytes fit. Of several shards the model cannot know which key is the oldest
// in its own; then gone tells which of the model's keys the store has evicted, and only how many is checked.
func (m *model) makeRoom(keys, bytes int64, gone func() []*modelKey) error {
	full := func() bool { return !m.fits(int64(len(m.keys))+keys, m.bytes()+bytes) }
	if gone == nil || !full() {
		for full() {
			m.evict(m.find(m.victim()))
		}
		return nil
	}
	var longest int64
	for _, k := range gone() {
		m.evict(k)
		longest = max(longest, table.CostBytes(len(k.name)))
	}
	switch {
	case full():
		return errors.New("the store should have evicted more")
	case m.fits(int64(len(m.keys))+keys+1, m.bytes()+bytes+longest):
		return errors.New("the store has evicted one too many") // the last to go was no longer than the longest
	}
	return nil
}

// victim is the key that goes next. First all that is protected beyond 80 % falls back.
func (m *model) victim() string {
	for m.protected.Len() > len(m.keys)*4/5 {
		name, _, _ := m.protected.RemoveOldest()
		m.probation.Add(name, struct{}{})
	}
	name, _, ok := m.probation.GetOldest()
	if !ok {
		name, _, _ = m.protected.GetOldest()
	}
	return name
}

func (m *model) evict(k *modelKey) {
	m.stats.Evicted++
	m.remove(k.name)
}

// insert adds a key for which room has been made.
func (m *model) insert(name string, st store.Value) {
	m.keys = append(m.keys, &modelKey{name: name, state: st, touchedNS: m.nowNS})
	m.probation.Add(name, struct{}{})
}

// admits tells whether a new key may come in at all.
func (m *model) admits(name string) bool {
	cost := table.CostBytes(len(name))
	if !m.noEviction {
		return m.fits(1, cost)
	}
	return m.fits(int64(len(m.keys))+1, m.bytes()+cost)
}
