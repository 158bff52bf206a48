package decisions

import (
	"fmt"
	"hash/maphash"
	"strings"
	"testing"

	"pgregory.net/rapid"

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
func top(d *Top, of func(uint32) bool) map[string]int64 {
	counts := map[string]int64{}
	for _, k := range d.Most(ByDenied, Start, 100, of) {
		counts[k.Key] = k.Count
	}
	return counts
}

// Keys that share a set count exactly, however many they are, and under whichever policies.
func TestDenialsOfOneSet(t *testing.T) {
	d := NewTop(&policy.Set{})
	const keys, rounds = 3 * sumsOfSet, 100
	for range rounds {
		for i := range keys {
			hash := uint64(1+i)<<40 | 5
			d.Add([]Came{{N: 1, Hash: hash, Key: []byte{byte(i)}}, {N: 1, Hash: hash, Key: []byte{byte(i)}}})
		}
	}
	got := map[string]int64{}
	for _, item := range d.items(ByDenied, Start) {
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
	d := NewTop(&policy.Set{})
	long := strings.Repeat("x", maxKey+7)
	for _, key := range []string{"b", "a", "often", "often", long} {
		d.Add([]Came{{N: 1, Hash: hashOf(key), Key: []byte(key)}})
	}
	want := []Key{{"often", 2}, {"a", 1}, {"b", 1}, {strings.Repeat("x", maxKey) + "... (7 more bytes)", 1}}
	if got := d.Most(ByDenied, Start, 10, Any); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v", got)
	}
	if got := d.Most(ByDenied, Start, 1, Any); fmt.Sprint(got) != fmt.Sprint(want[:1]) {
		t.Errorf("%v", got)
	}
	if d.Reset(); len(d.Most(ByDenied, Start, 10, Any)) > 0 {
		t.Error("a reset forgets nothing")
	}
}

// The denied calls of a batch are those whose bits are set.
func TestDeniedThrottles(t *testing.T) {
	d := NewTop(&policy.Set{})
	reqs := make([]store.Request, 64)
	for i := range reqs {
		key := string(rune('0' + i))
		reqs[i].Key, reqs[i].Hash = []byte(key), hashOf(key)
	}
	d.AddThrottles(ByDenied, reqs, 1<<63|1<<5|1)
	d.AddThrottles(ByDenied, reqs, 1<<5)
	if got := fmt.Sprint(top(d, Any)); got != "map[0:1 5:2 o:1]" {
		t.Error(got)
	}
}

// However many policies deny, the memory is bounded, each can be asked for, and those that are gone are forgotten, however late what they
// denied gets to the sketches.
func TestManyPoliciesDeny(t *testing.T) {
	const n = 3 * 64 / 2
	policies, ids := set(t, names(n)...)
	d := NewTop(policies)
	for i, id := range append(ids, 0) {
		key := fmt.Sprint("k", i)
		d.Add([]Came{{N: 1, Hash: hashOf("shared"), Policy: id, Key: []byte("shared")},
			{N: 1, Hash: hashOf(key), Policy: id, Key: []byte(key)}})
	}
	k := &d.kinds[ByDenied]
	if got := top(d, Any)["shared"]; got != n+1 || len(k.own) > mostOwn[ByDenied]+1 || k.own[0] == nil || k.rest == nil {
		t.Errorf("%d denials in all, %d sketches", got, len(k.own))
	}
	for _, i := range []int{0, n - 1} {
		if got := fmt.Sprint(top(d, func(policy uint32) bool { return policy == ids[i] })); got != fmt.Sprintf("map[k%d:1 shared:1]", i) {
			t.Errorf("p%d: %s", i, got)
		}
		policies.DeletePolicy(fmt.Sprint("p", i))
		key := fmt.Sprint("k", i)
		d.Add([]Came{{N: 1, Hash: hashOf(key), Policy: ids[i], Key: []byte(key)}})
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
	d := NewTop(&policy.Set{})
	var want []Key
	for i := range 40 {
		for range 1 + i%4 {
			key := fmt.Sprintf("k%02d", i)
			d.Add([]Came{{N: 1, Hash: hashOf(key), Key: []byte(key)}})
		}
	}
	for count := 4; count > 0; count-- {
		for i := count - 1; i < 40; i += 4 {
			want = append(want, Key{fmt.Sprintf("k%02d", i), int64(count)})
		}
	}
	if got := d.Most(ByDenied, Start, 100, Any); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// The first set has the keys whose hashes are multiples of the number of sets.
func TestDenialsOfTheFirstSet(t *testing.T) {
	d := NewTop(&policy.Set{})
	for i := range 2 * sumsOfSet {
		key := string(rune('a' + i))
		for range 2 {
			d.Add([]Came{{N: 1, Hash: uint64(i+1) << 40, Key: []byte(key)}})
		}
	}
	if got := fmt.Sprint(top(d, Any)); got != "map[a:2 b:2 c:2 d:2 e:2 f:2 g:2 h:2]" {
		t.Error(got)
	}
}

// A policy's denials are forgotten with it, and another policy gets its sketch.
func TestSketchesOfPoliciesThatGo(t *testing.T) {
	policies, ids := set(t, names(mostOwn[ByDenied]+1)...)
	d := NewTop(policies)
	deny := func(i int) {
		key := fmt.Sprint("k", i)
		d.Add([]Came{{N: 1, Hash: hashOf(key), Policy: ids[i], Key: []byte(key)}})
	}
	for i := range mostOwn[ByDenied] {
		deny(i)
	}
	top(d, Any)
	policies.DeletePolicy("p5")
	if got := top(d, Any); len(got) != mostOwn[ByDenied]-1 || got["k5"] != 0 {
		t.Errorf("%d keys, %d of a policy that is gone", len(got), got["k5"])
	}
	if deny(5); top(d, Any)["k5"] != 0 {
		t.Error("a policy that is gone denies")
	}
	if deny(mostOwn[ByDenied]); top(d, Any)[fmt.Sprint("k", mostOwn[ByDenied])] != 1 || d.kinds[ByDenied].rest != nil {
		t.Error("no policy has the sketch of one that is gone")
	}
	more, _ := policies.SetPolicy("p6", []cell.Limit{policies.PolicyNamed("p6").Limits[0].Limit}, policy.Options{Reset: true})
	ids[6] = policies.PolicyNamed("p6").Limits[0].ID
	d.mu.Lock()
	d.of(&d.kinds[ByDenied], ids[6]) // no list has been made since the reset
	d.mu.Unlock()
	if !more || d.kinds[ByDenied].rest != nil || len(d.kinds[ByDenied].own) != mostOwn[ByDenied] {
		t.Errorf("%d sketches, one for all others: %v", len(d.kinds[ByDenied].own), d.kinds[ByDenied].rest != nil)
	}
}

// Each list has what came in its time, to a slot or, of more than a minute ago, to a minute. A storm that is over leaves it.
func TestSpans(t *testing.T) {
	d, second := NewTop(&policy.Set{}), int64(1_000_000)*60 // at the beginning of a minute
	at := func(s int64) {
		for ; second < s; second++ {
			d.Advance(second * 1e9)
		}
	}
	d.Advance(second * 1e9)
	come := func(key string, n int64) { d.Add([]Came{{By: ByNear, N: n, Hash: hashOf(key), Key: []byte(key)}}) }
	is := func(last Span, want string) {
		t.Helper()
		d.Advance(second * 1e9)
		if got := fmt.Sprint(d.Most(ByNear, last, 9, Any)); got != want {
			t.Errorf("after %d s, of %d slots: %s, want %s", second-60_000_000, last, got, want)
		}
	}
	come("storm", 1000)
	is(Minute, "[{storm 1000}]")
	at(second + 30)
	come("now", 5)
	is(Minute, "[{storm 1000} {now 5}]")
	at(second + 40) // 70 s after the storm
	is(Minute, "[{now 5}]")
	is(TenMinutes, "[{storm 1000} {now 5}]")
	at(second + 30)
	come("now", 2)
	is(Minute, "[{now 2}]")
	is(TenMinutes, "[{storm 1000} {now 7}]")
	at(second + 9*60)
	come("late", 1)
	is(TenMinutes, "[{now 2} {late 1}]")
	is(Start, "[{storm 1000} {now 7} {late 1}]")
	if got := d.Most(ByDenied, Start, 9, Any); len(got) > 0 {
		t.Errorf("denied are %v", got)
	}
	at(second + 11*60)
	is(TenMinutes, "[]")
}

// A list of ten minutes is right whatever came when, and its memory is bounded: 16 lists and the one of now.
func TestSpansAgainstAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, came, slot := NewTop(&policy.Set{}), map[int64]map[string]int64{}, int64(6000)
		d.Advance(slot * slotNS)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if rapid.IntRange(0, 3).Draw(t, "pass") == 0 {
				slot += rapid.Int64Range(1, 20).Draw(t, "slots")
				d.Advance(slot * slotNS)
			}
			key, n := fmt.Sprint("k", rapid.IntRange(0, 9).Draw(t, "key")), rapid.Int64Range(1, 9).Draw(t, "n")
			d.Add([]Came{{N: n, Hash: hashOf(key), Key: []byte(key)}})
			if came[slot] == nil {
				came[slot] = map[string]int64{}
			}
			came[slot][key] += n
		}
		for last, slack := range map[Span]int64{Minute: 0, TenMinutes: 6} {
			least, most := map[string]int64{}, map[string]int64{}
			for at, keys := range came {
				for key, n := range keys {
					if at >= slot-int64(last)+slack {
						least[key] += n
					}
					if at >= slot-int64(last)-slack {
						most[key] += n
					}
				}
			}
			got := map[string]int64{}
			for _, k := range d.Most(ByDenied, last, 100, Any) {
				if got[k.Key] = k.Count; k.Count > most[k.Key] {
					t.Errorf("%s came %d times in the last %d slots, not %d", k.Key, most[k.Key], last, k.Count)
				}
			}
			for key, n := range least {
				if got[key] < n {
					t.Errorf("%s came %d times in the last %d slots, not %d", key, n, last, got[key])
				}
			}
		}
		for _, c := range d.kinds[ByDenied].own {
			if len(c.past) > 18 {
				t.Errorf("%d lists are kept", len(c.past))
			}
		}
	})
}

// A drawn call that would wait for the lock is late: the next one counts it.
func TestLateCalls(t *testing.T) {
	d := NewTop(&policy.Set{})
	came := []Came{{By: ByCalls, N: 64, Hash: hashOf("k"), Key: []byte("k")}}
	d.mu.Lock()
	late := d.AddSoon(came)
	d.mu.Unlock()
	if came[0].N += late; d.AddSoon(came) != 0 || late != 64 {
		t.Errorf("%d are late", late)
	}
	if got := d.Most(ByCalls, Start, 9, Any); len(got) != 1 || got[0].Count != 128 {
		t.Errorf("%v", got)
	}
}
