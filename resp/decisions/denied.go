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

// Denied finds the keys that are limited most, for CL.TOP. Calls that pass do not touch it.
//
// Each of the first policies that deny has a sketch of its own, as have all literals together, so that a flood under one policy does not
// hide the keys of another. Further policies share one. A sketch takes 75 KB at most, so that all take 5 MB.
//
// A key that is denied is mostly denied again soon. So denials are added up by key, for the keys that were denied last, before they get to
// the sketches. With 1,000 keys in turn, counting a denial then takes 2 ns (BenchmarkServe, P=128), and 49 without this.
//
// There is one lock, which only batches with a denial take, once.
type Denied struct {
	policies *policy.Set

	mu   sync.Mutex
	own  map[uint32]*sketch // by Policy.ID; 0: literals
	rest *sketch            // nil: not needed yet
	lost uint64             // Set.LimitsRemoved when own was last cleared of policies that are gone

	sums   []deniedSum // in sets of sumsOfSet, each set in its place by the hash
	keys   []deniedKey // of sums, apart from them: they are needed only when another key takes the place
	victim int         // which place of a full set the next key takes
}

// deniedSum counts the denials of one key that are in no sketch yet.
type deniedSum struct {
	hash  uint64 // mixed; 0: the place is free
	count int64
}

type deniedKey struct {
	start  []byte // its first maxKey bytes
	length int
	policy uint32
}

// The sums of a set fill a line of the cache. Of 1,000 keys, 99.8 % have a place of their own. When a hash had one place of 2,048, two of
// five keys took it from each other, and a denial took 22 ns. All take 230 KB, and up to 256 bytes for each key.
const (
	deniedSums = 4096 // a power of two
	sumsOfSet  = 4
)

// mostSketches is how many policies have a sketch of their own.
const mostSketches = 64

// NewDenied returns one of these policies.
func NewDenied(policies *policy.Set) *Denied {
	return &Denied{policies: policies, own: map[uint32]*sketch{}, sums: make([]deniedSum, deniedSums),
		keys: make([]deniedKey, deniedSums)}
}

// mix keeps one key under several policies apart where they share a sketch. Done twice, it undoes itself.
func mix(hash uint64, policy uint32) uint64 { return hash ^ uint64(policy)*0x9e3779b97f4a7c15 }

// Denial is a call that was denied.
type Denial struct {
	Hash   uint64
	Policy uint32 // 0: by a literal
	Key    []byte
}

// Add counts denials.
func (d *Denied) Add(list []Denial) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range list {
		c := &list[i]
		if sum := d.sum(mix(c.Hash, c.Policy)); sum != nil {
			sum.count++
		} else {
			d.place(c)
		}
	}
}

// AddThrottles counts the denied ones of a batch, whose bits are set.
func (d *Denied) AddThrottles(reqs []store.Request, limited uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for ; limited != 0; limited &= limited - 1 {
		r := &reqs[bits.TrailingZeros64(limited)]
		if sum := d.sum(r.Hash); sum != nil {
			sum.count++
		} else {
			d.place(&Denial{Hash: r.Hash, Key: r.Key})
		}
	}
}

// sum returns the sum of a key, or nil. It looks at all places of the set, as a processor cannot foresee which it is: to stop at the
// right one took 3 ns longer.
func (d *Denied) sum(hash uint64) *deniedSum {
	set := (*[sumsOfSet]deniedSum)(d.sums[setOf(hash):])
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
func setOf(hash uint64) int { return int(hash%(deniedSums/sumsOfSet)) * sumsOfSet }

// place makes a sum for a key that has none.
func (d *Denied) place(c *Denial) {
	hash := mix(c.Hash, c.Policy)
	at := setOf(hash) + d.victim%sumsOfSet
	d.victim++
	for i := range sumsOfSet {
		if free := setOf(hash) + i; d.sums[free].count == 0 {
			at = free
			break
		}
	}
	d.pass(at)
	d.sums[at] = deniedSum{hash, 1}
	k := &d.keys[at]
	k.start, k.length, k.policy = append(k.start[:0], c.Key[:min(len(c.Key), maxKey)]...), len(c.Key), c.Policy
}

// pass hands a sum to its sketch, unless its policy is gone, and frees its place.
func (d *Denied) pass(at int) {
	sum, key := d.sums[at], &d.keys[at]
	d.sums[at] = deniedSum{}
	if sum.count == 0 || key.policy != 0 && d.policies.LimitOf(key.policy) == nil {
		return
	}
	s := d.of(key.policy)
	if s != d.rest {
		sum.hash = mix(sum.hash, key.policy)
	}
	s.add(item{sum.hash, *key, sum.count})
}

// of returns the sketch for a policy's denials.
func (d *Denied) of(policy uint32) *sketch {
	if s := d.own[policy]; s != nil {
		return s
	}
	if len(d.own) >= mostSketches {
		d.dropGone()
	}
	if len(d.own) < mostSketches || policy == 0 {
		s := newSketch()
		d.own[policy] = s
		return s
	}
	if d.rest == nil {
		d.rest = newSketch()
	}
	return d.rest
}

// dropGone drops the sketches of policies that are gone.
func (d *Denied) dropGone() {
	lost := d.policies.LimitsRemoved()
	if lost == d.lost {
		return
	}
	d.lost = lost
	for id := range d.own {
		if id != 0 && d.policies.LimitOf(id) == nil {
			delete(d.own, id)
		}
	}
}

// Reset forgets all denials.
func (d *Denied) Reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.own)
	clear(d.sums)
	d.rest = nil
}

// Key is a key that was limited, and how often.
type Key struct {
	Key   string // its first 256 bytes, and how many more there are
	Count int64
}

// Any selects all policies, and literals.
func Any(uint32) bool { return true }

// Most returns the n keys, MostTop at most, that were limited most since the start or CL.TOP RESET, those limited most first, under the
// policies of which of is true. 0 are literals. Any goroutine may call it.
func (d *Denied) Most(n int, of func(policy uint32) bool) []Key {
	found := map[uint64]item{}
	for _, item := range d.items() {
		if of(item.key.policy) {
			item.count += found[item.hash].count
			found[item.hash] = item
		}
	}
	items := slices.SortedFunc(maps.Values(found), func(a, b item) int {
		return cmp.Or(cmp.Compare(b.count, a.count), bytes.Compare(a.key.start, b.key.start), cmp.Compare(a.hash, b.hash))
	})
	list := make([]Key, min(n, len(items)))
	for i := range list {
		key := string(items[i].key.start)
		if more := items[i].key.length - len(key); more > 0 {
			key = fmt.Sprintf("%s... (%d more bytes)", key, more)
		}
		list[i] = Key{key, items[i].count}
	}
	return list
}

// items returns a copy of what all sketches list. It holds the lock for one after the other, some 5 µs each.
func (d *Denied) items() (items []item) {
	d.mu.Lock()
	for at := range d.sums {
		d.pass(at)
	}
	d.dropGone()
	rest, all := d.rest, slices.Collect(maps.Values(d.own))
	d.mu.Unlock()
	if rest != nil {
		all = append(all, rest)
	}
	for _, s := range all {
		d.mu.Lock()
		from := len(items)
		items = append(items, s.items...)
		for i := range items[from:] {
			items[from+i].key.start = bytes.Clone(items[from+i].key.start)
		}
		d.mu.Unlock()
		if s != rest {
			continue
		}
		shared := items[from:]
		items = items[:from]
		for _, item := range shared {
			if item.key.policy == 0 || d.policies.LimitOf(item.key.policy) != nil {
				item.hash = mix(item.hash, item.key.policy)
				items = append(items, item)
			}
		}
	}
	return items
}
