package decisions

import (
	"fmt"
	"hash/maphash"
	"strings"
	"testing"

	"celld/cell"
	"celld/store"
	"celld/store/policy"
)

var seed = maphash.MakeSeed()

// set returns policies of these names.
func set(t *testing.T, names ...string) (policies *policy.Set, ids []uint32) {
	t.Helper()
	policies = &policy.Set{}
	for _, name := range names {
		limit, err := cell.ParseLimit("9/1h")
		if err == nil {
			_, err = policies.SetPolicy(name, []cell.Limit{limit}, policy.Options{})
		}
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, policies.PolicyNamed(name).Limits[0].ID)
	}
	return policies, ids
}

func hashOf(key string) uint64 { return maphash.String(seed, key) }

func names(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprint("p", i))
	}
	return list
}

// top is what Most returns, by key.
func top(d *Denied, of func(uint32) bool) map[string]int64 {
	counts := map[string]int64{}
	for _, k := range d.Most(100, of) {
		counts[k.Key] = k.Count
	}
	return counts
}

// Keys that share a set count exactly, however many they are, and under whichever policies.
func TestDenialsOfOneSet(t *testing.T) {
	d := NewDenied(&policy.Set{})
	const keys, rounds = 3 * sumsOfSet, 100
	for range rounds {
		for i := range keys {
			hash := uint64(1+i)<<40 | 5
			d.Add([]Denial{{Hash: hash, Key: []byte{byte(i)}}, {Hash: hash, Key: []byte{byte(i)}}})
		}
	}
	got := map[string]int64{}
	for _, item := range d.items() {
		got[string(item.key.start)] += item.count
	}
	if len(got) != keys {
		t.Errorf("%d keys, want %d", len(got), keys)
	}
	for key, n := range got {
		if n != 2*rounds {
			t.Errorf("%q was denied %d times, counted are %d", key, 2*rounds, n)
		}
	}
}

// Keys that are denied most come first, those that are denied as often by their names. Long ones are told by their start and length.
func TestMost(t *testing.T) {
	d := NewDenied(&policy.Set{})
	long := strings.Repeat("x", maxKey+7)
	for _, key := range []string{"b", "a", "often", "often", long} {
		d.Add([]Denial{{Hash: hashOf(key), Key: []byte(key)}})
	}
	want := []Key{{"often", 2}, {"a", 1}, {"b", 1}, {strings.Repeat("x", maxKey) + "... (7 more bytes)", 1}}
	if got := d.Most(10, Any); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v", got)
	}
	if got := d.Most(1, Any); fmt.Sprint(got) != fmt.Sprint(want[:1]) {
		t.Errorf("%v", got)
	}
	if d.Reset(); len(d.Most(10, Any)) > 0 {
		t.Error("a reset forgets nothing")
	}
}

// The denied calls of a batch are those whose bits are set.
func TestDeniedThrottles(t *testing.T) {
	d := NewDenied(&policy.Set{})
	reqs := make([]store.Request, 64)
	for i := range reqs {
		key := string(rune('0' + i))
		reqs[i].Key, reqs[i].Hash = []byte(key), hashOf(key)
	}
	d.AddThrottles(reqs, 1<<63|1<<5|1)
	d.AddThrottles(reqs, 1<<5)
	if got := fmt.Sprint(top(d, Any)); got != "map[0:1 5:2 o:1]" {
		t.Error(got)
	}
}

// However many policies deny, the memory is bounded, each can be asked for, and those that are gone are forgotten, however late what they
// denied gets to the sketches.
func TestManyPoliciesDeny(t *testing.T) {
	const n = 3 * mostSketches / 2
	policies, ids := set(t, names(n)...)
	d := NewDenied(policies)
	for i, id := range append(ids, 0) {
		key := fmt.Sprint("k", i)
		d.Add([]Denial{{hashOf("shared"), id, []byte("shared")}, {hashOf(key), id, []byte(key)}})
	}
	if got := top(d, Any)["shared"]; got != n+1 || len(d.own) > mostSketches+1 || d.own[0] == nil || d.rest == nil {
		t.Errorf("%d denials in all, %d sketches", got, len(d.own))
	}
	for _, i := range []int{0, n - 1} {
		if got := fmt.Sprint(top(d, func(policy uint32) bool { return policy == ids[i] })); got != fmt.Sprintf("map[k%d:1 shared:1]", i) {
			t.Errorf("p%d: %s", i, got)
		}
		policies.DeletePolicy(fmt.Sprint("p", i))
		key := fmt.Sprint("k", i)
		d.Add([]Denial{{hashOf(key), ids[i], []byte(key)}})
	}
	d.mu.Lock()
	d.dropGone()
	d.mu.Unlock()
	if got := top(d, Any); got["shared"] != n-1 || got["k0"] != 0 || got[fmt.Sprint("k", n-1)] != 0 {
		t.Errorf("with two policies gone: %v", got)
	}
}

// Keys come in the order of their counts, and of their names where these are the same, however they came.
func TestOrderOfMost(t *testing.T) {
	d := NewDenied(&policy.Set{})
	var want []Key
	for i := range 40 {
		for range 1 + i%4 {
			key := fmt.Sprintf("k%02d", i)
			d.Add([]Denial{{Hash: hashOf(key), Key: []byte(key)}})
		}
	}
	for count := 4; count > 0; count-- {
		for i := count - 1; i < 40; i += 4 {
			want = append(want, Key{fmt.Sprintf("k%02d", i), int64(count)})
		}
	}
	if got := d.Most(100, Any); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// The first set has the keys whose hashes are multiples of the number of sets.
func TestDenialsOfTheFirstSet(t *testing.T) {
	d := NewDenied(&policy.Set{})
	for i := range 2 * sumsOfSet {
		key := string(rune('a' + i))
		for range 2 {
			d.Add([]Denial{{Hash: uint64(i+1) << 40, Key: []byte(key)}})
		}
	}
	if got := fmt.Sprint(top(d, Any)); got != "map[a:2 b:2 c:2 d:2 e:2 f:2 g:2 h:2]" {
		t.Error(got)
	}
}

// A policy's denials are forgotten with it, and another policy gets its sketch.
func TestSketchesOfPoliciesThatGo(t *testing.T) {
	policies, ids := set(t, names(mostSketches+1)...)
	d := NewDenied(policies)
	deny := func(i int) {
		key := fmt.Sprint("k", i)
		d.Add([]Denial{{hashOf(key), ids[i], []byte(key)}})
	}
	for i := range mostSketches {
		deny(i)
	}
	top(d, Any)
	policies.DeletePolicy("p5")
	if got := top(d, Any); len(got) != mostSketches-1 || got["k5"] != 0 {
		t.Errorf("%d keys, %d of a policy that is gone", len(got), got["k5"])
	}
	if deny(5); top(d, Any)["k5"] != 0 {
		t.Error("a policy that is gone denies")
	}
	if deny(mostSketches); top(d, Any)[fmt.Sprint("k", mostSketches)] != 1 || d.rest != nil {
		t.Error("no policy has the sketch of one that is gone")
	}
	more, _ := policies.SetPolicy("p6", []cell.Limit{policies.PolicyNamed("p6").Limits[0].Limit}, policy.Options{Reset: true})
	ids[6] = policies.PolicyNamed("p6").Limits[0].ID
	d.mu.Lock()
	d.of(ids[6]) // no list has been made since the reset
	d.mu.Unlock()
	if !more || d.rest != nil || len(d.own) != mostSketches {
		t.Errorf("%d sketches, one for all others: %v", len(d.own), d.rest != nil)
	}
}
