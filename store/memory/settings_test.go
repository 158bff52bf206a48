package memory_test

import (
	"fmt"
	"runtime"
	"testing"

	"celld/cell"
	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
	"celld/store/memory/table"
	"celld/store/policy"
)

// A key that holds nothing but what was used of policies that are gone is no key, to whatever looks.
func TestKeysOfGonePoliciesAreNoKeys(t *testing.T) {
	limit := memtest.MustLimit(t, 3, 1, 1)
	name, a := []byte("ghost"), memtest.At(t0)
	looks := map[string]func(s *memory.Store) bool{
		"Get":    func(s *memory.Store) bool { _, ok := s.Get(name, a); return ok },
		"Delete": func(s *memory.Store) bool { return s.Delete(name, t0) },
		"IdleNS": func(s *memory.Store) bool { _, ok := s.IdleNS(name, t0); return ok },
		"Rename": func(s *memory.Store) bool { return memtest.Did(s.Rename(name, []byte("live"), memtest.At(t0))) },
		"RenameNew": func(s *memory.Store) bool {
			there, _, _ := s.RenameNew(name, []byte("new"), memtest.At(t0))
			return there
		},
		"Copy":     func(s *memory.Store) bool { ok, _ := s.Copy(name, []byte("new"), false, a); return ok },
		"KeyBytes": func(s *memory.Store) bool { _, ok := s.KeyBytes(name, t0); return ok },
		"Limits":   func(s *memory.Store) bool { ok, _ := s.Limits(name, a, func(*store.LimitState) {}); return ok },
		"Len":      func(s *memory.Store) bool { return s.Len(t0) != 1 },
		"Random":   func(s *memory.Store) bool { key, _ := s.Random(t0); return key != "live" },
		"Scan": func(s *memory.Store) (found bool) {
			s.Scan(0, 10, t0, func(key string, _ store.Value) { found = found || key != "live" })
			return found
		},
		"Export": func(s *memory.Store) (found bool) {
			s.Export(memory.Position{}, t0, func(key []byte, _ store.Value) { found = found || string(key) != "live" })
			return found
		},
		"Update": func(s *memory.Store) (there bool) {
			_ = s.Update(name, a, func(st store.Value, ok bool) (store.Value, bool) { there = ok; return st, false })
			return there
		},
		"Throttle": func(s *memory.Store) bool {
			d, err := s.Throttle(name, limit, 1, a)
			s.Delete(name, t0)
			return err != nil || d.Remaining != 3
		},
		"Give": func(s *memory.Store) bool {
			l := memtest.MustParse(t, "1/1h")
			n, err := s.Give(name, &l, nil, 1, a)
			return n != 0 || err != nil
		},
		"Watch": func(s *memory.Store) bool { w := s.Watch(name, t0); defer w.Stop(); s.Flush(); return w.Changed(t0) },
	}
	for look, there := range looks {
		for _, gone := range []string{"deleted", "reset"} {
			s := memory.New(memory.Options{Journal: true})
			limit := memtest.MustParse(t, "1/1h")
			if _, err := s.SetPolicy("p", []cell.Limit{limit}, policy.Options{}); err != nil {
				t.Fatal(err)
			}
			p := s.PolicyNamed("p")
			if _, err := s.Take([]store.Call{store.CallOf(name, p.Limits[0])}, store.TakeOptions{Cost: 1}, a); err != nil {
				t.Fatal(err)
			}
			memtest.MustPut(t, s, "live", memtest.Live(t0, second), t0)
			if gone == "deleted" {
				s.DeletePolicy("p")
			} else if _, err := s.SetPolicy("p", []cell.Limit{limit}, policy.Options{Reset: true}); err != nil {
				t.Fatal(err)
			}
			if there(s) {
				t.Errorf("%s: %s finds it", gone, look)
			}
			memtest.MustAudit(t, s)
			if memtest.Sweep(s, t0); s.Stats(t0).Bytes > table.OverheadBytes {
				t.Errorf("%s, %s: it still takes room: %+v", gone, look, s.Stats(t0))
			}
		}
	}
}

// A large store has four shards for each core, from 16 to 64, and a small one has one.
func TestShardsOfAStore(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for cores, want := range map[int]int{1: 16, 4: 16, 5: 32, 16: 64, 32: 64} {
		runtime.GOMAXPROCS(cores)
		large, small := memory.New(memory.Options{}), memory.New(memory.Options{MaxKeys: 1 << 16})
		if len(large.All) != want || len(small.All) != 1 {
			t.Errorf("%d cores: %d shards, want %d; %d in a small store", cores, len(large.All), want, len(small.All))
		}
	}
}

// Sweep walks through the whole table for what is of policies that are gone, in short steps, and once.
func TestSweepPurges(t *testing.T) {
	for _, shards := range []int{1, 4} {
		s := memory.New(memory.Options{Shards: shards})
		for _, name := range []string{"p", "q"} {
			if _, err := s.SetPolicy(name, []cell.Limit{memtest.MustParse(t, "1/1h")}, policy.Options{}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 1000 {
			p := s.PolicyNamed([]string{"p", "q"}[i%2])
			if _, err := s.Take([]store.Call{store.CallOf(fmt.Append(nil, i), p.Limits[0])}, store.TakeOptions{Cost: 1},
				memtest.At(t0)); err != nil {
				t.Fatal(err)
			}
		}
		if memtest.Sweep(s, t0); s.SweepDue(t0) {
			t.Fatal("a sweep is due before a policy goes")
		}
		steps := 0
		s.DeletePolicy("p")
		for s.Sweep(t0) {
			if steps++; steps == 3 {
				s.DeletePolicy("q") // whose first keys it has passed
			}
		}
		if n := s.Len(t0); n != 0 || s.Stats(t0).Bytes != 0 || s.SweepDue(t0) || steps < 1000/64 {
			t.Errorf("%d keys are left after %d steps: %+v", n, steps, s.Stats(t0))
		}
		memtest.MustAudit(t, s)
	}
}

// A rule decides for CL.THROTTLE as well, alone and in a batch, and changes nothing. Sweep removes it when it has been over for a while.
func TestRulesOfThrottle(t *testing.T) {
	s := memory.New(memory.Options{})
	limit := memtest.MustLimit(t, 3, 1, 60)
	for _, r := range []policy.Rule{{Deny: true, Pattern: "bad", UntilNS: t0 + second}, {Pattern: "good"}} {
		if _, err := s.PutRule(r, t0); err != nil {
			t.Fatal(err)
		}
	}
	throttle := func(key string, now int64) cell.Decision {
		d, err := s.Throttle([]byte(key), limit, 4, memtest.At(now))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	batch := func(key string, now int64) cell.Decision {
		reqs := []store.Request{{Key: []byte(key), Bucket: limit, Quantity: 4}}
		if s.ThrottleBatch(reqs, memtest.At(now), nil); reqs[0].Err != nil {
			t.Fatal(reqs[0].Err)
		}
		return reqs[0].Decision
	}
	for name, ask := range map[string]func(string, int64) cell.Decision{"alone": throttle, "batch": batch} {
		for range 3 {
			if d := ask("bad", t0); !d.Limited || int64(d.RetryAfterNS) != second {
				t.Errorf("%s: denied: %+v", name, d)
			}
			if d := ask("good", t0); d.Limited || d.Remaining != 4 {
				t.Errorf("%s: let through: %+v", name, d)
			}
		}
	}
	memtest.ExpectKeys(t, s, t0)
	if d := throttle("bad", t0+second); d.Limited {
		t.Errorf("when it is over: %+v", d)
	}
	if memtest.Sweep(s, t0+11*second); len(s.Settings(policy.RuleSetting)) != 1 || s.SweepDue(t0+11*second) {
		t.Errorf("left are %q", s.Settings(policy.RuleSetting))
	}
}
