package resp

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"sync"

	"celld/resp/sketch"
	"celld/store"
	"celld/store/memory"
)

// denied finds the keys that are limited most, for CL.TOP. Calls that pass do not touch it.
//
// Each of the first policies that deny has a sketch of its own, as have all literals together, so that a flood under one policy does not
// hide the keys of another. Further policies share one. A sketch takes 75 KB at most, so that all take 5 MB.
//
// A key that is denied is mostly denied again soon. So denials are added up by key, for the keys that were denied last, before they get to
// the sketches. With 1,000 keys in turn, counting a denial then takes 2 ns (BenchmarkServe, P=128), and 49 without this.
//
// There is one lock, which only batches with a denial take, once.
type denied struct {
	mu   sync.Mutex
	own  map[uint32]*sketch.Sketch // by Policy.ID; 0: literals
	rest *sketch.Sketch            // nil: not needed yet
	lost uint64                    // store.PoliciesLost when own was last cleared of policies that are gone

	sums []deniedSum // in sets of sumsOfSet, each set in its place by the hash
	keys []deniedKey // of sums, apart from them: they are needed only when another key takes the place
	turn int         // whose place in its set is taken next
}

// deniedSum counts the denials of one key that are in no sketch yet.
type deniedSum struct {
	hash  uint64 // mixed; 0: the place is free
	count int64
}

type deniedKey struct {
	start  []byte // its first sketch.MaxKey bytes
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

func newDenied() denied {
	return denied{own: map[uint32]*sketch.Sketch{}, sums: make([]deniedSum, deniedSums), keys: make([]deniedKey, deniedSums)}
}

// mix makes one key under several policies several ones, where they share a sketch. Done twice, it undoes itself.
func mix(hash uint64, policy uint32) uint64 { return hash ^ uint64(policy)*0x9e3779b97f4a7c15 }

// denial is a call that was denied.
type denial struct {
	hash   uint64
	policy uint32 // 0: by a literal
	key    []byte
}

// add counts denials.
func (d *denied) add(policies *memory.Store, list []denial) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range list {
		c := &list[i]
		if sum := d.sum(mix(c.hash, c.policy)); sum != nil {
			sum.count++
		} else {
			d.place(policies, c)
		}
	}
}

// addThrottles counts the denied ones of a batch, whose bits are set.
func (d *denied) addThrottles(policies *memory.Store, reqs []store.Request, limited uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for ; limited != 0; limited &= limited - 1 {
		r := &reqs[bits.TrailingZeros64(limited)]
		if sum := d.sum(r.Hash); sum != nil {
			sum.count++
		} else {
			d.place(policies, &denial{hash: r.Hash, key: r.Key})
		}
	}
}

// sum returns the sum of a key, or nil. It looks at all places of the set, as a processor cannot foresee which it is: to stop at the
// right one took 3 ns longer.
func (d *denied) sum(hash uint64) *deniedSum {
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
func (d *denied) place(policies *memory.Store, c *denial) {
	hash := mix(c.hash, c.policy)
	at := setOf(hash) + d.turn%sumsOfSet
	d.turn++
	for i := range sumsOfSet {
		if free := setOf(hash) + i; d.sums[free].count == 0 {
			at = free
			break
		}
	}
	d.pass(policies, at)
	d.sums[at] = deniedSum{hash, 1}
	k := &d.keys[at]
	k.start, k.length, k.policy = append(k.start[:0], c.key[:min(len(c.key), sketch.MaxKey)]...), len(c.key), c.policy
}

// pass hands a sum to its sketch, unless its policy is gone, and frees its place.
func (d *denied) pass(policies *memory.Store, at int) {
	sum, key := d.sums[at], &d.keys[at]
	d.sums[at] = deniedSum{}
	if sum.count == 0 || key.policy != 0 && policies.PolicyOf(key.policy) == nil {
		return
	}
	s := d.of(policies, key.policy)
	if s != d.rest {
		sum.hash = mix(sum.hash, key.policy)
	}
	s.Add(sketch.Item{Hash: sum.hash, Key: key.start, Length: key.length, About: key.policy, Count: sum.count})
}

// of returns the sketch for a policy's denials.
func (d *denied) of(policies *memory.Store, policy uint32) *sketch.Sketch {
	if s := d.own[policy]; s != nil {
		return s
	}
	if len(d.own) >= mostSketches {
		d.dropGone(policies)
	}
	if len(d.own) < mostSketches || policy == 0 {
		s := sketch.New()
		d.own[policy] = s
		return s
	}
	if d.rest == nil {
		d.rest = sketch.New()
	}
	return d.rest
}

// dropGone drops the sketches of policies that are gone.
func (d *denied) dropGone(policies *memory.Store) {
	lost := policies.PoliciesLost()
	if lost == d.lost {
		return
	}
	d.lost = lost
	for id := range d.own {
		if id != 0 && policies.PolicyOf(id) == nil {
			delete(d.own, id)
		}
	}
}

func (d *denied) reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.own)
	clear(d.sums)
	d.rest = nil
}

// Denied is a key that was limited, and how often.
type Denied struct {
	Key   string // its first 256 bytes, and how many more there are
	Count int64
}

// MostDenied returns the n keys, 100 at most, that were limited most since the start or CL.TOP RESET, those limited most first. Any
// goroutine may call it.
func (srv *Server) MostDenied(n int) []Denied {
	return srv.mostDenied(n, func(uint32) bool { return true })
}

// mostDenied is MostDenied for the policies of which of is true. 0 are literals.
func (srv *Server) mostDenied(n int, of func(policy uint32) bool) []Denied {
	found := map[uint64]sketch.Item{}
	for _, item := range srv.denied.items(srv.store) {
		if of(item.About) {
			item.Count += found[item.Hash].Count
			found[item.Hash] = item
		}
	}
	items := slices.SortedFunc(maps.Values(found), func(a, b sketch.Item) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), bytes.Compare(a.Key, b.Key), cmp.Compare(a.Hash, b.Hash))
	})
	list := make([]Denied, min(n, len(items)))
	for i := range list {
		key := string(items[i].Key)
		if more := items[i].Length - len(key); more > 0 {
			key = fmt.Sprintf("%s... (%d more bytes)", key, more)
		}
		list[i] = Denied{key, items[i].Count}
	}
	return list
}

// items returns a copy of what all sketches list. It holds the lock for one after the other, some 5 µs each.
func (d *denied) items(policies *memory.Store) (items []sketch.Item) {
	d.mu.Lock()
	for at := range d.sums {
		d.pass(policies, at)
	}
	d.dropGone(policies)
	rest, all := d.rest, slices.Collect(maps.Values(d.own))
	d.mu.Unlock()
	if rest != nil {
		all = append(all, rest)
	}
	for _, s := range all {
		d.mu.Lock()
		from := len(items)
		items = append(items, s.Items()...)
		for i := range items[from:] {
			items[from+i].Key = bytes.Clone(items[from+i].Key)
		}
		d.mu.Unlock()
		if s != rest {
			continue
		}
		shared := items[from:]
		items = items[:from]
		for _, item := range shared {
			if item.About == 0 || policies.PolicyOf(item.About) != nil {
				item.Hash = mix(item.Hash, item.About)
				items = append(items, item)
			}
		}
	}
	return items
}

// noteDenied notes a denial until countDenied counts it. Inlined, it would slow down calls that pass.
//
//go:noinline
func (s *Session) noteDenied(policy uint32, key []byte, hash uint64) {
	s.scratch.denied = append(s.scratch.denied, denial{hash, policy, key})
}

// countDenied counts what a batch has noted, while its keys are there.
func (s *Session) countDenied() {
	list, srv := s.scratch.denied, s.srv
	if s.scratch.visit == nil {
		srv.denied.add(srv.store, list)
	} else {
		kept := slices.Clone(list)
		for i := range kept {
			kept[i].key = bytes.Clone(kept[i].key)
		}
		s.once(func() { srv.denied.add(srv.store, kept) })
	}
	clear(list)
	s.scratch.denied = list[:0]
}

// countDeniedThrottles counts the denied calls of a batch, whose bits are set. It notes them only where it must, as that takes 3 ns each.
func (s *Session) countDeniedThrottles(b *batch, limited uint64) {
	if b.hashed {
		s.srv.denied.addThrottles(s.srv.store, b.throttles, limited)
		return
	}
	for ; limited != 0; limited &= limited - 1 {
		r := &b.throttles[bits.TrailingZeros64(limited)]
		s.noteDenied(0, r.Key, s.srv.store.Hash(r.Key))
	}
	s.countDenied()
}
