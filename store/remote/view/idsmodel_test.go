package view

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"celld/store"
	"celld/store/remote/link/linktest"
)

// TestIDsGrowWhateverClocksDo lets three processes on an engine grant leases of some keys, while the clocks of all of them are apart by
// seconds and are set. Keys are deleted, renamed and flushed; a replica with another clock takes over, with all that was written or
// without the last of it; and while the engine is away, processes decide by themselves. The IDs of each key must grow, and none may be
// given twice. Where something was lost, time goes on by more than the clocks are apart before the next grant, as docs/reference/engine.md
// says.
func TestIDsGrowWhateverClocksDo(outer *testing.T) {
	socket := linktest.StartRedis(outer)
	const apart = 10e9
	var base, engine int64 // the true time, and how far the engine's clock is ahead of it
	var own [3]int64       // how far those of the processes are
	var stores [3]*Store
	for i := range stores {
		stores[i] = newTestStore(outer, socket, Options{Prefix: "p:", Time: func() int64 { return base + engine }})
		stores[i].own = func() int64 { return base + own[i] }
		stores[i].RequestNumber()
		stores[i].do(outer, "PING") // goes behind it
	}
	run := 0
	rapid.Check(outer, func(t *rapid.T) {
		run++
		base = max(base, in2100) + 2*apart
		keys := []string{fmt.Sprint("a", run), fmt.Sprint("b", run), fmt.Sprint("c", run)}
		highest := map[string]uint64{}  // of each key
		given := map[uint64]bool{}      // by anybody
		local := map[string][3]uint64{} // highest that a process gave by itself
		holds := map[string]int64{}     // a lease of each key
		ahead := func(name string) int64 { return rapid.Int64Range(-apart/2, apart/2).Draw(t, name) }
		var saved map[string]string // what the replica has
		leased := func(i int, key string, id int64, byItself bool) {
			if id <= 0 || id >= 1<<53 || given[uint64(id)] {
				t.Fatalf("process %d gives %d under %s, given before: %v", i, id, key, given[uint64(id)])
			}
			given[uint64(id)] = true
			if mine := local[key]; byItself {
				mine[i] = uint64(id)
				local[key] = mine
				return
			} else if uint64(id) <= mine[i] {
				t.Fatalf("process %d gives %d under %s after %d, which it gave by itself", i, id, key, mine[i])
			}
			if uint64(id) <= highest[key] {
				t.Fatalf("process %d gives %d under %s after %d", i, id, key, highest[key])
			}
			highest[key], holds[key] = uint64(id), id
		}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			i := rapid.IntRange(0, 2).Draw(t, "process")
			s := stores[i]
			base += rapid.SampledFrom([]int64{0, 1e3, 1e6, 3e9}).Draw(t, "passes")
			key, other := rapid.SampledFrom(keys).Draw(t, "key"), rapid.SampledFrom(keys).Draw(t, "other")
			request := func() store.TakeRequest {
				text := rapid.SampledFrom([]string{"9/1s,algo=conc", "9/1m"}).Draw(t, "limit")
				calls := []store.Call{{Key: []byte(key), Limit: linktest.Literal(outer, text)}}
				r := store.TakeRequest{Calls: calls, TakeOptions: store.TakeOptions{Cost: 1, Terms: &store.Terms{}}}
				if text == "9/1m" {
					r.Terms.LeaseNS = 5e9
				}
				return r
			}
			switch rapid.IntRange(0, 11).Draw(t, "what") {
			case 0:
				engine = ahead("engine")
			case 1:
				own[i] = ahead("own")
			case 2:
				s.on(t, func(v *View) { v.Delete([]byte(key), v.NowNS) }, key)
			case 3:
				moved := false
				s.on(t, func(v *View) {
					_, _ = v.Rename([]byte(key), []byte(other), store.Access{NowNS: v.NowNS})
					moved, _ = v.Table().Renew([]byte(other), holds[key], 5e9, store.Access{NowNS: v.NowNS})
				}, key, other)
				if moved {
					highest[other], holds[other] = max(highest[other], uint64(holds[key])), holds[key]
				}
			case 4:
				for name := range s.dump(t) {
					if !Own(strings.TrimPrefix(name, s.Prefix)) {
						s.do(t, "DEL", name)
					}
				}
			case 5:
				if id, held := holds[key]; held {
					s.on(t, func(v *View) { v.Release([]byte(key), id, store.Access{NowNS: v.NowNS}) }, key)
				}
			case 6:
				saved = s.dump(t)
			case 7:
				engine = ahead("new master")
				if saved != nil {
					s.restore(t, saved)
					base += 2 * apart
				}
				saved = nil
			case 8:
				r := request()
				s.byItself().Take(&r, linktest.Down, store.Access{NowNS: base + own[i]})
				if r.Terms.Lease != 0 {
					leased(i, key, r.Terms.Lease, true)
				}
			default:
				r := request()
				if s.takeNow(&r); r.Err != nil {
					t.Fatal(r.Err)
				}
				if r.Terms.Lease != 0 {
					leased(i, key, r.Terms.Lease, false)
				}
			}
		}
	})
}

// dump is all that the engine has.
func (s *Store) dump(t failer) map[string]string {
	all := map[string]string{}
	keys, err := s.do(t, "KEYS", "*").AsStrSlice()
	if err != nil {
		t.Fatalf("%v", err)
	}
	for _, key := range keys {
		all[key], _ = s.do(t, "DUMP", key).ToString()
	}
	return all
}

// restore makes the engine hold just that.
func (s *Store) restore(t failer, all map[string]string) {
	s.do(t, "FLUSHALL")
	for key, text := range all {
		s.do(t, "RESTORE", key, "0", text)
	}
}
