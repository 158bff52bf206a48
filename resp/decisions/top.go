package decisions

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"sync"

	"celld/store"
	"celld/store/policy"
)

// By says which calls are counted of a key.
type By uint8

const (
	ByDenied By = iota
	ByCalls     // all that could take something, denied or not
	ByNear      // those that passed, and left little of their limit
	bys
)

// Top finds the keys that come most often, for CL.TOP and the page: those of denied calls, of all calls, and of calls that are near to
// their limits, since the start and in the last minutes.
//
// Each of the first policies has counts of its own, as have all literals together, so that a flood under one policy does not hide the keys
// of another. Further policies share them. All took 24 MB with 64 policies and keys of 256 bytes, which is the most, and 3 with 5 policies
// and keys of 20.
//
// A key that comes often mostly comes again soon. So calls are added up by key, for the keys that came last, before they get to the
// sketches. With 1,000 keys in turn, counting a denial then takes 2 ns (BenchmarkServe, P=128), and 49 without this.
//
// Denied and near calls all count. Of the calls of a batch one is drawn, and counts as many times as the batch has calls: so a pipeline
// of 64 pays the price of one, and a call that comes alone counts exactly.
//
// There is one lock, which a batch takes once or twice.
type Top struct {
	policies *policy.Set

	mu    sync.Mutex
	kinds [bys]kindTop
	slot  int64  // of time, that Advance has begun last
	lost  uint64 // Set.LimitsRemoved when policies that are gone were last cleared
}

// kindTop is of one kind of calls.
type kindTop struct {
	own  map[uint32]*counts // by Policy.ID; 0: literals
	rest *counts            // nil: not needed yet
	most int                // of own

	sums   []sum    // in sets of sumsOfSet, each set in its place by the hash; nil: nothing has come yet
	keys   []sumKey // of sums, apart from them: they are needed only when another key takes the place
	victim int      // which place of a full set the next key takes
}

// sum counts the calls of one key that are in no sketch yet.
type sum struct {
	hash  uint64 // mixed; 0: the place is free
	count int64
}

type sumKey struct {
	start  []byte // its first maxKey bytes
	length int
	policy uint32
}

// The sums of a set fill a line of the cache. Of 1,000 keys, 99.8 % have a place of their own. When a hash had one place of 2,048, two of
// five keys took it from each other, and a denial took 22 ns. All take 230 KB, and up to 256 bytes for each key.
const (
	sumPlaces = 4096 // a power of two
	sumsOfSet = 4
)

// mostOwn is how many policies have counts of their own.
var mostOwn = [bys]int{ByDenied: 64, ByCalls: 8, ByNear: 8}

// NewTop returns one of these policies.
func NewTop(policies *policy.Set) *Top {
	t := &Top{policies: policies}
	t.clear()
	return t
}

func (t *Top) clear() {
	for by, most := range mostOwn {
		t.kinds[by] = kindTop{most: most}
	}
}

// mix keeps one key under several policies apart where they share a sketch. Done twice, it undoes itself.
func mix(hash uint64, policy uint32) uint64 { return hash ^ uint64(policy)*0x9e3779b97f4a7c15 }

// Came is a call that counts.
type Came struct {
	By     By
	N      int64 // how many times
	Hash   uint64
	Policy uint32 // 0: by a literal
	Key    []byte
}

// AddSoon counts calls. A drawn call that comes alone while others count does not wait: its number is returned, for the next one.
func (t *Top) AddSoon(list []Came) (late int64) {
	if len(list) > 1 || list[0].By != ByCalls {
		t.mu.Lock()
	} else if !t.mu.TryLock() {
		return list[0].N
	}
	defer t.mu.Unlock()
	t.add(list)
	return 0
}

// Add counts calls.
func (t *Top) Add(list []Came) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.add(list)
}

func (t *Top) add(list []Came) {
	for i := range list {
		c := &list[i]
		k := &t.kinds[c.By]
		if sum := k.sum(mix(c.Hash, c.Policy)); sum != nil {
			sum.count += c.N
		} else {
			t.place(k, c)
		}
	}
}

// AddThrottles counts those of a batch whose bits are set.
func (t *Top) AddThrottles(by By, reqs []store.Request, set uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := &t.kinds[by]
	for ; set != 0; set &= set - 1 {
		r := &reqs[bits.TrailingZeros64(set)]
		if sum := k.sum(r.Hash); sum != nil {
			sum.count++
		} else {
			t.place(k, &Came{N: 1, Hash: r.Hash, Key: r.Key})
		}
	}
}

// sum returns the sum of a key, or nil. It looks at all places of the set, as a processor cannot foresee which it is: to stop at the
// right one took 3 ns longer.
func (k *kindTop) sum(hash uint64) *sum {
	if k.sums == nil {
		k.sums, k.keys, k.own = make([]sum, sumPlaces), make([]sumKey, sumPlaces), map[uint32]*counts{}
	}
	set := (*[sumsOfSet]sum)(k.sums[setOf(hash):])
	at := sumsOfSet
	if set[0].hash == hash {
		at = 0
	}
	if set[1].hash == hash {
		at = 1
	}
	if set[2].hash == hash {
		at = 2
	}
	if set[3].hash == hash {
		at = 3
	}
	if at == sumsOfSet {
		return nil
	}
	return &set[at]
}

// setOf returns the first place of a hash's set.
func setOf(hash uint64) int { return int(hash%(sumPlaces/sumsOfSet)) * sumsOfSet }

// place makes a sum for a key that has none.
func (t *Top) place(k *kindTop, c *Came) {
	hash := mix(c.Hash, c.Policy)
	at := setOf(hash) + k.victim%sumsOfSet
	k.victim++
	for i := range sumsOfSet {
		if free := setOf(hash) + i; k.sums[free].count == 0 {
			at = free
			break
		}
	}
	t.pass(k, at)
	k.sums[at] = sum{hash, c.N}
	key := &k.keys[at]
	key.start, key.length, key.policy = append(key.start[:0], c.Key[:min(len(c.Key), maxKey)]...), len(c.Key), c.Policy
}

// pass hands a sum to its sketches, unless its policy is gone, and frees its place.
func (t *Top) pass(k *kindTop, at int) {
	sum, key := k.sums[at], &k.keys[at]
	k.sums[at].count, k.sums[at].hash = 0, 0
	if sum.count == 0 || key.policy != 0 && t.policies.LimitOf(key.policy) == nil {
		return
	}
	c := t.of(k, key.policy)
	if c != k.rest {
		sum.hash = mix(sum.hash, key.policy)
	}
	c.add(item{sum.hash, *key, sum.count})
}

// of returns the counts of a policy.
func (t *Top) of(k *kindTop, policy uint32) *counts {
	if c := k.own[policy]; c != nil {
		return c
	}
	if len(k.own) >= k.most {
		t.dropGone()
	}
	if len(k.own) < k.most || policy == 0 {
		c := newCounts()
		k.own[policy] = c
		return c
	}
	if k.rest == nil {
		k.rest = newCounts()
	}
	return k.rest
}

// dropGone drops the counts of policies that are gone.
func (t *Top) dropGone() {
	lost := t.policies.LimitsRemoved()
	if lost == t.lost {
		return
	}
	t.lost = lost
	for i := range t.kinds {
		maps.DeleteFunc(t.kinds[i].own, func(id uint32, _ *counts) bool { return id != 0 && t.policies.LimitOf(id) == nil })
	}
}

// Reset forgets all.
func (t *Top) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clear()
}

// Advance is told the time, in Unix nanoseconds, each second and before Most: what came until now belongs to the time before.
func (t *Top) Advance(nowNS int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	slot := nowNS / slotNS
	if t.slot == 0 { // what came before is of this one
		t.slot = slot
	}
	if slot == t.slot {
		return
	}
	for i := range t.kinds {
		k := &t.kinds[i]
		for at := range k.sums {
			t.pass(k, at)
		}
		for _, c := range k.own {
			c.end(t.slot, slot)
		}
		if k.rest != nil {
			k.rest.end(t.slot, slot)
		}
	}
	t.slot = slot
}

// Key is a key that came, and how often.
type Key struct {
	Key   string // its first 256 bytes, and how many more there are
	Count int64
}

// Any selects all policies, and literals.
func Any(uint32) bool { return true }

// Most returns the n keys, MostTop at most, that came most often in the last time, those that came most first, under the policies of which
// of is true. 0 are literals. Any goroutine may call it.
func (t *Top) Most(by By, last Span, n int, of func(policy uint32) bool) []Key {
	found := map[uint64]item{}
	for _, item := range t.items(by, last) {
		if of(item.key.policy) {
			item.count += found[item.hash].count
			found[item.hash] = item
		}
	}
	list := []Key{}
	for _, item := range firstOf(slices.Collect(maps.Values(found)), n) {
		key := string(item.key.start)
		if more := item.key.length - len(key); more > 0 {
			key = fmt.Sprintf("%s... (%d more bytes)", key, more)
		}
		list = append(list, Key{key, item.count})
	}
	return list
}

// firstOf sorts items, and returns the n that came most.
func firstOf(items []item, n int) []item {
	slices.SortFunc(items, func(a, b item) int {
		return cmp.Or(cmp.Compare(b.count, a.count), bytes.Compare(a.key.start, b.key.start), cmp.Compare(a.hash, b.hash))
	})
	return items[:min(n, len(items))]
}

// items returns a copy of what all sketches list of the last time. It holds the lock for one policy after the other, some 30 µs each.
func (t *Top) items(by By, last Span) (items []item) {
	t.mu.Lock()
	k := &t.kinds[by]
	for at := range k.sums {
		t.pass(k, at)
	}
	t.dropGone()
	rest, all, slot := k.rest, slices.Collect(maps.Values(k.own)), t.slot
	t.mu.Unlock()
	if rest != nil {
		all = append(all, rest)
	}
	for _, c := range all {
		t.mu.Lock()
		from := len(items)
		items = c.appendItems(items, last, slot)
		for i := range items[from:] {
			items[from+i].key.start = bytes.Clone(items[from+i].key.start)
		}
		t.mu.Unlock()
		if c != rest {
			continue
		}
		shared := items[from:]
		items = items[:from]
		for _, item := range shared {
			if item.key.policy == 0 || t.policies.LimitOf(item.key.policy) != nil {
				item.hash = mix(item.hash, item.key.policy)
				items = append(items, item)
			}
		}
	}
	return items
}
