package resp

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"sync"

	"celld/resp/sketch"
	"celld/store"
)

// denied finds the keys that are limited most, for CL.TOP. Calls that pass do not touch it.
//
// Each of the first policies that deny has a sketch of its own, as have all literals together, so that a flood under one policy does not
// hide the keys of another. Further policies share one. A sketch takes 75 KB at most, so that all take 5 MB.
//
// Who is denied is mostly denied again soon. So denials are added up by key, for the keys that were denied last, before they get to the
// sketches: with 1,000 keys in turn to count a denial costs 15 ns (bench, p128-1k), and 49 without this.
//
// There is one lock, which only batches with a denial take, once.
type denied struct {
	seed maphash.Seed
	mu   sync.Mutex
	own  map[uint32]*sketch.Sketch // by Policy.ID; 0: literals
	rest *sketch.Sketch            // nil: not needed yet
	last []sketch.Item             // each in its place by its hash, which is mixed; Count 0: none is there
	lost uint64                    // store.PoliciesLost when own was last cleared of policies that are gone
}

// lastDenied is how many keys are added up, a power of two. They take 115 KB, and up to 256 bytes for each key.
const lastDenied = 2048

// mostSketches is how many policies have a sketch of their own.
const mostSketches = 64

func newDenied() denied {
	return denied{seed: maphash.MakeSeed(), own: map[uint32]*sketch.Sketch{}, last: make([]sketch.Item, lastDenied)}
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
func (d *denied) add(policies *store.Store, list []denial) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range list {
		c := &list[i]
		hash := mix(c.hash, c.policy)
		at := &d.last[hash%lastDenied]
		if at.Hash != hash || at.Count == 0 {
			d.pass(policies, at)
			*at = sketch.Item{Hash: hash, Key: append(at.Key[:0], c.key[:min(len(c.key), sketch.MaxKey)]...), Length: len(c.key), About: c.policy}
		}
		at.Count++
	}
}

// pass hands what was added up for a key to its sketch, unless its policy is gone.
func (d *denied) pass(policies *store.Store, at *sketch.Item) {
	came := *at
	at.Count = 0
	if came.Count == 0 || came.About != 0 && policies.PolicyOf(came.About) == nil {
		return
	}
	s := d.of(policies, came.About)
	if s != d.rest {
		came.Hash = mix(came.Hash, came.About)
	}
	s.Add(came)
}

// of returns the sketch for a policy's denials.
func (d *denied) of(policies *store.Store, policy uint32) *sketch.Sketch {
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
func (d *denied) dropGone(policies *store.Store) {
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
	clear(d.last)
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
func (d *denied) items(policies *store.Store) (items []sketch.Item) {
	d.mu.Lock()
	for i := range d.last {
		d.pass(policies, &d.last[i])
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
func (s *Session) noteDenied(policy uint32, key []byte) {
	s.scratch.denied = append(s.scratch.denied, denial{maphash.Bytes(s.srv.denied.seed, key), policy, key})
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
