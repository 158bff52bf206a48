//go:build !race

package memory_test

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	"celld/cell"
	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
	"celld/store/policy"

	"pgregory.net/rapid"
)

// drawTakes are takes of all kinds for some keys: with one limit or several, of policies, with all options.
func drawTakes(t *rapid.T, s *memory.Store, n, spread int) []store.TakeRequest {
	var reqs []store.TakeRequest
	for range n {
		key := fmt.Append(nil, "k", rapid.IntRange(0, spread).Draw(t, "key"))
		r := store.TakeRequest{Taken: store.Taken{Granted: 77}, Err: errors.New("old")}
		r.Cost = rapid.SampledFrom([]int64{1, 1, 1, 0, 2, 5}).Draw(t, "cost")
		r.Mode = rapid.SampledFrom([]cell.Mode{cell.Take, cell.Take, cell.Take, cell.Peek, cell.Force}).Draw(t, "mode")
		r.UpTo = r.Mode == cell.Take && rapid.IntRange(0, 5).Draw(t, "upTo") == 0
		for range rapid.SampledFrom([]int{1, 1, 1, 2}).Draw(t, "limits") {
			limit := memtest.MustParse(t, rapid.SampledFrom(memtest.LimitTexts).Draw(t, "limit"))
			call := store.Call{Key: key, Limit: &limit}
			if p := s.PolicyNamed("p"); rapid.IntRange(0, 3).Draw(t, "named") == 0 {
				call.Limit, call.Policy = &p.Limits[0].Limit, p.Limits[0]
			}
			r.Calls = append(r.Calls, call)
		}
		reqs = append(reqs, r)
	}
	return reqs
}

// The same takes go one by one to a store and in batches to another, also with too little room, rules, keys of the other kind,
// and several for one key in a batch. With several shards there is room, as the two shard differently.
func TestBatchesOfTakesDecideAsSingleOnes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := memory.Options{Shards: rapid.SampledFrom([]int{1, 16, 128}).Draw(t, "shards"), MaxKeys: 1000}
		if o.Shards == 1 {
			o.MaxKeys = rapid.SampledFrom([]int64{1, 5, 60, 1000}).Draw(t, "maxKeys")
			o.MaxBytes = rapid.SampledFrom([]int64{0, 700, 3000}).Draw(t, "maxBytes")
			o.NoEviction = rapid.Bool().Draw(t, "noEviction")
		}
		single, batched := memory.New(o), memory.New(o)
		both := func(do func(s *memory.Store)) { do(single); do(batched) }
		both(func(s *memory.Store) {
			_, _ = s.SetPolicy("p", []cell.Limit{memtest.MustParse(t, "7/1s,algo=log,block=100ms")}, policy.Options{})
		})
		if rapid.Bool().Draw(t, "ruled") {
			both(func(s *memory.Store) { _, _ = s.PutRule(policy.Rule{Deny: true, Pattern: "k1*"}, t0) })
		}
		both(func(s *memory.Store) { memtest.MustAllow(t, s, []byte("k2"), memtest.MustLimit(t, 1, 1, 1), t0) })
		now := t0
		for range rapid.IntRange(1, 10).Draw(t, "batches") {
			now += rapid.Int64Range(0, second/3).Draw(t, "ns")
			a := store.Access{NowNS: now, NoTouch: rapid.Bool().Draw(t, "noTouch")}
			reqs := drawTakes(t, single, rapid.SampledFrom([]int{1, 2, 10, store.MaxTakes}).Draw(t, "requests"),
				rapid.SampledFrom([]int{1, 30}).Draw(t, "spread"))
			type answer struct {
				taken store.Taken
				err   error
				all   string
			}
			var want []answer
			for _, r := range reqs {
				taken, err := single.Take(r.Calls, r.TakeOptions, a)
				want = append(want, answer{taken, err, decisions(r.Calls, err)})
			}
			batched.TakeBatch(reqs, a, nil)
			for i, r := range reqs {
				if r.Taken != want[i].taken || r.Err != want[i].err || decisions(r.Calls, r.Err) != want[i].all {
					t.Fatalf("request %d of %d: %+v, %v, %s; want %+v", i, len(reqs), r.Taken, r.Err, decisions(r.Calls, r.Err), want[i])
				}
			}
		}
		if got, want := memtest.Contents(t, batched, now), memtest.Contents(t, single, now); !maps.Equal(got, want) {
			t.Fatalf("keys are %v, want %v", got, want)
		}
		got, want := batched.Stats(now), single.Stats(now)
		got.AvgTTLNS, want.AvgTTLNS = 0, 0 // of samples, which differ
		if got != want {
			t.Fatalf("%+v, want %+v", got, want)
		}
		memtest.MustAudit(t, batched)
	})
}

func decisions(calls []store.Call, err error) (text string) {
	if err != nil {
		return ""
	}
	for i := range calls {
		text += fmt.Sprintf("%+v ", calls[i].Decision)
	}
	return text
}

// Of a table that is larger than the caches all lines are touched ahead, and of keys that are there nothing is allocated.
func TestBatchesOfTakesOfALargeTable(t *testing.T) {
	const n = 40_000
	limits := []cell.Limit{memtest.MustParse(t, "2/1h"), memtest.MustParse(t, "2/1h,algo=log")}
	for _, o := range []memory.Options{{MaxKeys: n + 64, Shards: 1}, {MaxKeys: n + 64, Shards: 16}, {MaxKeys: n + 64, Shards: 128}} {
		s, keys := memory.New(o), memtest.Keys16(n)
		calls, reqs := make([]store.Call, store.MaxTakes), make([]store.TakeRequest, store.MaxTakes)
		round := func() (passed int) {
			for i := 0; i < n; i += len(reqs) {
				batch := reqs[:min(len(reqs), n-i)]
				for j := range batch {
					calls[j] = store.Call{Key: keys[i+j], Limit: &limits[(i+j)%2]}
					batch[j] = store.TakeRequest{Calls: calls[j : j+1], TakeOptions: store.TakeOptions{Cost: 1}}
				}
				s.TakeBatch(batch, memtest.At(t0), nil)
				for _, r := range batch {
					if r.Err != nil {
						t.Fatal(r.Err)
					}
					passed += int(r.Taken.Granted)
				}
			}
			return passed
		}
		for i, want := range []int{n, n, 0} {
			if passed := round(); passed != want {
				t.Errorf("%+v, round %d: %d passed, want %d", o, i, passed, want)
			}
		}
		if st := s.Stats(t0); st.Hits != 2*n || st.Misses != n || st.Evicted != 0 {
			t.Errorf("%+v: %+v", o, st)
		}
		if allocs := testing.AllocsPerRun(1, func() { round() }); allocs != 0 {
			t.Errorf("%+v: %v allocations", o, allocs)
		}
		memtest.MustAudit(t, s)
	}
}

// A call that is decided at once is answered as that, whatever it needs to be decided.
func TestWhatIsDecidedAtOnce(t *testing.T) {
	s := memory.New(memory.Options{})
	for _, list := range [][]store.Call{
		memtest.Calls(t, "bucket", "1/1h"), memtest.Calls(t, "log", "1/1h,algo=log"), memtest.Calls(t, "conc", "1/1h,algo=conc"),
		memtest.Calls(t, "bucket", "1/1h", "log", "1/1h,algo=log"),
	} {
		for turn := range 2 {
			reqs := []store.TakeRequest{{Calls: list, TakeOptions: store.TakeOptions{Cost: 1}}}
			w := wakerFunc(func() { t.Errorf("%s: it is woken", list[0].Key) })
			denied := turn > 0 || len(list) > 1
			if !s.TakeBatch(reqs, memtest.At(t0), w) || reqs[0].Err != nil || reqs[0].Taken.Limited != denied {
				t.Errorf("%s: %+v, %v", list[0].Key, reqs[0].Taken, reqs[0].Err)
			}
		}
	}
}
