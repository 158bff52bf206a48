package view

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"celld/cell"
	"celld/store"
	"celld/store/memory"
	"celld/store/policy"
	"celld/store/remote/link/linktest"
)

const in2100 int64 = 4_102_444_800_000_000_000

// on changes keys of a Store by f, again after a conflict.
func (s *Store) on(t failer, f func(v *View), keys ...string) {
	t.Helper()
	w := make(signal, 1)
	names := make([][]byte, len(keys))
	for i, key := range keys {
		names[i] = []byte(key)
	}
	v := s.Open(names, w)
	<-w
	for again := true; again && v.Err == nil; again = v.Conflict() {
		v.Table()
		f(v)
		if !v.Commit(w) {
			<-w
		}
	}
	if v.Err != nil {
		t.Fatalf("%v: %v", keys, v.Err)
	}
	v.Close()
}

type failer interface {
	Helper()
	Fatalf(string, ...any)
}

// shown is all that a client can see of a key.
func shown(s *memory.Store, key string, nowNS int64) string {
	a := store.Access{NowNS: nowNS}
	value, ok := s.Get([]byte(key), a)
	if !ok {
		return "none"
	}
	if !value.HoldsLimits {
		return fmt.Sprint(value.TAT, " until ", value.ExpiryNS)
	}
	var limits []string
	_, _ = s.Limits([]byte(key), a, func(l *store.LimitState) {
		limits = append(limits, string(l.AppendName(nil))+"="+string(l.Limit.AppendState(nil, &l.State)))
	})
	slices.Sort(limits)
	return fmt.Sprint(strings.Join(limits, "; "), " until ", value.ExpiryNS, value.TAT)
}

var leaseID = regexp.MustCompile(`([=,])\d+:`)

// withoutIDs drops the IDs of leases, which each process gives by itself.
func withoutIDs(text string) string { return leaseID.ReplaceAllString(text, "$1") }

// TestViewsAreTheTable does the same to a table in memory and, in turn, by two Stores on an engine, and compares all that can be seen.
func TestViewsAreTheTable(t *testing.T) {
	socket := linktest.StartRedis(t)
	var now atomic.Int64
	var stores [2]*Store
	for i := range stores {
		stores[i] = newTestStore(t, socket, Options{Prefix: "p:", Time: now.Load})
	}
	stores[1].Policies = stores[0].Policies // as in time that stands still, two would give the same IDs
	literals := []string{"3/10s", "5/1m,burst=9", "4/10s,algo=window", "4/10s,algo=slide,buckets=4", "3/5s,algo=log", "2/7s,algo=conc",
		"9/2m,block=2s", "@p", "@q"}
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		now.Store(in2100)
		run++
		model := memory.New(memory.Options{})
		limits := map[string]*cell.Limit{}
		for _, text := range literals {
			l := &cell.Limit{}
			name, isPolicy := strings.CutPrefix(text, "@")
			if isPolicy {
				text = map[string]string{"p": "6/1m", "q": "3/20s,algo=conc"}[name]
			}
			parsed, err := cell.ParseLimit(text)
			if err != nil {
				t.Fatal(err)
			}
			*l = parsed
			if isPolicy {
				for _, s := range []*policy.Set{model.Set, stores[0].Policies} {
					_, _ = s.SetPolicy(name, []cell.Limit{parsed}, policy.Options{})
				}
				text = "@" + name
			}
			limits[text] = l
		}
		keys := []string{fmt.Sprint("a", run), fmt.Sprint("b", run), fmt.Sprint("c", run)}
		type lease struct {
			key            string
			model, engines int64
		}
		var leases []lease
		for step := range rapid.IntRange(1, 40).Draw(t, "steps") {
			s := stores[rapid.IntRange(0, 1).Draw(t, "store")]
			now.Add(rapid.SampledFrom([]int64{0, 1, 1e6, 1e9, 5e9}).Draw(t, "passes"))
			a := store.Access{NowNS: now.Load()}
			key, other := rapid.SampledFrom(keys).Draw(t, "key"), rapid.SampledFrom(keys).Draw(t, "other")
			k, o := []byte(key), []byte(other)
			both := func(what string, f func(t *memory.Store, v *View) any) {
				want := f(model, nil)
				var got any
				s.on(t, func(v *View) { got = f(v.Store, v) }, key, other)
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("step %d, %s of %s and %s: %v, want %v", step, what, key, other, got, want)
				}
			}
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				tat := uint64(now.Load() + rapid.SampledFrom([]int64{-1, 2, 4}).Draw(t, "TAT")*1e9)
				expiry := rapid.SampledFrom([]int64{0, 1, 2, -1}).Draw(t, "expiry")
				value := store.Value{TAT: tat, ExpiryNS: store.AtTAT}
				if rapid.IntRange(0, 3).Draw(t, "counts") == 0 {
					value = store.Value{Count: rapid.SampledFrom([]int64{math.MinInt64, -1, 0, 5, 1e15, now.Load() - 5e9}).Draw(t, "count")}
				}
				if expiry < 0 {
					value.ExpiryNS = store.NoExpiry
				} else if expiry > 0 {
					value.ExpiryNS = (now.Load()/1e6 + expiry*1000 + 777) * 1e6
				}
				both("SET", func(t *memory.Store, _ *View) any {
					return t.Update(k, a, func(store.Value, bool) (store.Value, bool) { return value, true })
				})
			case 1:
				both("DEL", func(t *memory.Store, _ *View) any { return t.Delete(k, a.NowNS) })
			case 2:
				expiry := (now.Load()/1e6 + rapid.Int64Range(-1, 9).Draw(t, "seconds")*1000 + 777) * 1e6
				persist := rapid.Bool().Draw(t, "persist")
				both("EXPIRE or PERSIST", func(t *memory.Store, _ *View) any {
					return t.Update(k, a, func(old store.Value, ok bool) (store.Value, bool) {
						if !ok {
							return old, false
						}
						if old.ExpiryNS = expiry; persist {
							old.ExpiryNS = store.NoExpiry
						}
						return old, true
					})
				})
			case 3:
				both("RENAME", func(t *memory.Store, _ *View) any { return did(t.Rename(k, o, store.Access{NowNS: a.NowNS})) })
			case 4:
				if key != other {
					both("COPY", func(t *memory.Store, _ *View) any {
						copied, err := t.Copy(k, o, true, a)
						return fmt.Sprint(copied, err)
					})
				}
			case 5:
				if len(leases) > 0 {
					l := rapid.SampledFrom(leases).Draw(t, "lease")
					n := rapid.Int64Range(0, 3).Draw(t, "n")
					renew := rapid.Bool().Draw(t, "renew")
					key, k = l.key, []byte(l.key)
					both("SETTLE or RENEW", func(t *memory.Store, v *View) any {
						switch {
						case v == nil && renew:
							return did(t.Renew(k, l.model, n*1e9, a))
						case v == nil:
							return did(t.Settle(k, l.model, n, a))
						case renew:
							return did(v.Renew(k, l.engines, n*1e9, a))
						}
						return did(v.Settle(k, l.engines, n, a))
					})
				}
			default:
				text := rapid.SampledFrom(literals).Draw(t, "limit")
				second := rapid.SampledFrom(literals).Draw(t, "second limit")
				two := rapid.Bool().Draw(t, "two")
				cost := rapid.SampledFrom([]int64{1, 1, 2, 0, -1}).Draw(t, "cost")
				two = two && cost >= 0
				var options store.TakeOptions
				options.Cost = cost
				options.UpTo = rapid.Bool().Draw(t, "up to")
				terms := rapid.IntRange(0, 2).Draw(t, "terms")
				call := func(t *memory.Store, key []byte, text string) store.Call {
					c := store.Call{Key: key, Limit: limits[text]}
					if name, isPolicy := strings.CutPrefix(text, "@"); isPolicy {
						c.Policy = t.PolicyNamed(name).Limits[0]
					}
					return c
				}
				var granted lease
				both("TAKE", func(t *memory.Store, v *View) any {
					calls := []store.Call{call(t, k, text)}
					if two {
						calls = append(calls, call(t, o, second))
					}
					r := [1]store.TakeRequest{{Calls: calls, TakeOptions: options}}
					if cost > 0 && terms > 0 {
						r[0].Terms = &store.Terms{}
						if limits[text].Algo != cell.Conc && (!two || limits[second].Algo != cell.Conc) {
							r[0].Terms.LeaseNS = 3e9
						}
						if terms == 2 {
							r[0].Terms.Name = key
							if r[0].Terms.LeaseNS == 0 && limits[text].Algo != cell.Conc && limits[second].Algo != cell.Conc {
								r[0].Terms.Name = ""
							}
						}
					}
					t.TakeBatch(r[:], a, nil)
					said := fmt.Sprint(r[0].Taken, r[0].Err)
					for i := range calls {
						said += fmt.Sprintf(" %+v", calls[i].Decision)
					}
					if r[0].Terms != nil && r[0].Terms.Lease != 0 {
						said += " leased"
						granted.key = key
						if v == nil {
							granted.model = r[0].Terms.Lease
						} else {
							granted.engines = r[0].Terms.Lease
						}
					}
					return said
				})
				if granted.key != "" {
					leases = append(leases, granted)
				}
			}
			reader := stores[rapid.IntRange(0, 1).Draw(t, "reader")]
			reader.on(t, func(v *View) {
				for _, key := range keys {
					want, got := withoutIDs(shown(model, key, now.Load())), withoutIDs(shown(v.Store, key, now.Load()))
					if got != want {
						t.Fatalf("step %d, %s at %d is\n%s, want\n%s", step, key, now.Load(), got, want)
					}
				}
			}, keys...)
		}
	})
}

// A TAT that was there without an expiry, and has passed, is there again where the same is SET once more: then it is a count.
func TestSetOfWhatHasJustPassed(t *testing.T) {
	var now atomic.Int64
	s := newTestStore(t, linktest.StartRedis(t), Options{Time: now.Load})
	for _, passed := range []int64{0, 5e9, 5e9 + 1} {
		now.Store(in2100 + passed)
		value, _ := store.ParseInteger(fmt.Append(nil, in2100+int64(4e9)), now.Load())
		value.ExpiryNS = store.NoExpiry
		s.on(t, func(v *View) {
			_ = v.Update([]byte("k"), store.Access{NowNS: now.Load()}, func(store.Value, bool) (store.Value, bool) {
				return value, true
			})
		}, "k")
		s.on(t, func(v *View) {
			if got := shown(v.Store, "k", now.Load()); got == "none" {
				t.Errorf("after %d ns it is gone", passed)
			}
		}, "k")
	}
}
