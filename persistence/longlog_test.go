//go:build all

package persistence_test

import (
	"fmt"
	"maps"
	"testing"

	"pgregory.net/rapid"

	"celld/persistence"
	"celld/store"
	"celld/store/memory"
	"celld/store/policy"
)

// holds is a copy of the limits of all keys.
func (w *world) holds() map[string]store.Value {
	all := map[string]store.Value{}
	for at, more := (memory.Position{}), true; more; {
		at, more = w.store.Export(at, w.now, func(key []byte, st store.Value) {
			if st.Limits != nil {
				copied := st.Limits.Shift(0)
				st.Limits = &copied
				all[string(key)] = st
			}
		})
	}
	return all
}

// textsOf returns copies that are still alive as text. Calls that no longer count are left out of their logs: the store may forget
// these at any time.
func (w *world) textsOf(copies map[string]store.Value) map[string]string {
	all := map[string]string{}
	for key, st := range copies {
		if st.TAT <= uint64(w.now) || st.ExpiryNS > 0 && st.ExpiryNS <= w.now {
			continue
		}
		limits := st.Limits.Shift(0)
		for i := range limits {
			limits[i].Limit.Give(&limits[i].State, w.now, 0)
		}
		all[key] = fmt.Sprintf("%d %d%s", st.TAT, st.ExpiryNS, w.limitsText(limits))
	}
	return all
}

func (w *world) counting() map[string]string { return w.textsOf(w.holds()) }

func (w *world) expectCounting(t rapid.TB, want map[string]string) {
	t.Helper()
	if got := w.counting(); !maps.Equal(got, want) {
		t.Fatalf("the store has %v\nwant %v", got, want)
	}
}

// Logs of hundreds of calls are written in parts. Whatever happens to them and their keys, and whichever writes fail, the file holds
// what the store holds.
func TestLongLogs(t *testing.T) {
	limits := []string{"300/1h,algo=log", "70/1s,algo=log,block=1s", "2000/2h,algo=log", "9/1h"}
	for name, set := range map[string]func(*persistence.Options){"every second": appendOnly, "always": always} {
		t.Run(name, func(tt *testing.T) {
			rapid.Check(tt, func(t *rapid.T) {
				w, files := inMemory(tt, set)
				w.mustOpen()
				key := func() string { return rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key") }
				actions := []func(){
					func() {
						if key := key(); rapid.Bool().Draw(t, "delete") {
							w.store.Delete([]byte(key), w.now)
						} else {
							w.store.Rename([]byte(key), []byte("b"), store.Access{NowNS: w.now})
						}
					},
					func() {
						l := w.literal(rapid.SampledFrom(limits[:3]).Draw(t, "limit"))
						_, _ = w.store.Give([]byte(key()), &l, nil, rapid.Int64Range(1, 99).Draw(t, "give"), store.Access{NowNS: w.now})
					},
					func() {
						w.setPolicy("p", rapid.SampledFrom(limits).Draw(t, "limit"), policy.Options{Reset: rapid.Bool().Draw(t, "reset")})
					},
					func() {
						_ = w.store.Update([]byte(key()), store.Access{NowNS: w.now}, func(st store.Value, ok bool) (store.Value, bool) {
							if st.ExpiryNS = w.now/second*second + 9*second; !ok {
								return st, false
							}
							return st, true
						})
					},
					func() { _ = w.m.Rewrite() },
				}
				change := func() {
					if rapid.IntRange(0, 3).Draw(t, "other") == 0 {
						rapid.SampledFrom(actions).Draw(t, "action")()
						return
					}
					key, of := key(), rapid.SliceOfNDistinct(rapid.SampledFrom(limits), 1, 3, rapid.ID).Draw(t, "limits")
					if w.store.PolicyNamed("p") != nil && rapid.Bool().Draw(t, "policy") {
						of = append(of, "@p")
					}
					w.pass(rapid.SampledFrom([]int64{0, 1, second / 2, 1200 * second}).Draw(t, "pause"))
					for range rapid.SampledFrom([]int{1, 3, 64, 130}).Draw(t, "calls") {
						w.take(key, 1, of...)
						w.pass(1000)
					}
				}
				for range rapid.IntRange(1, 4).Draw(t, "starts") {
					for range rapid.IntRange(1, 6).Draw(t, "commits") {
						for range rapid.IntRange(1, 3).Draw(t, "changes") {
							change()
						}
						if !w.m.Synchronous() {
							w.tick(0)
							continue
						}
						if w.settle(); rapid.IntRange(0, 3).Draw(t, "fails") == 0 {
							files.failing(failOn("write"))
						}
						if err := w.commit(); err != nil && rapid.Bool().Draw(t, "goes on") { // as rounds do that had begun
							change()
							_ = w.commit()
						}
						files.failing(nil)
						w.tick(second)
					}
					if w.tick(second); !w.m.Synchronous() {
						w.settle()
					}
					want := w.counting()
					w.reopen().expectCounting(t, want)
				}
				w.m.Stop()
			})
		})
	}
}

// One more call of a long log adds little to the file. However many follow, a file that was never rewritten holds all.
func TestACallMoreIsLittle(t *testing.T) {
	for name, set := range map[string]func(*persistence.Options){"every second": appendOnly, "always": always} {
		w, files := inMemory(t, set)
		w.mustOpen()
		w.setPolicy("p", "5000/1h,algo=log", policy.Options{})
		for range 5000 {
			w.take("k", 1, "@p", "9999999/1h")
			w.pass(3600 * second / 5000)
		}
		w.mustWrite()
		size := len(files.text(w.path("appendonly.aof")))
		for range 1000 {
			w.pass(3600 * second / 5000)
			w.take("k", 1, "@p", "9999999/1h")
			w.mustWrite()
		}
		each := (len(files.text(w.path("appendonly.aof"))) - size) / 1000
		t.Logf("%s: %d bytes for the log, %d for a call more", name, size, each)
		if each > 2000 {
			t.Errorf("%s: %d bytes for a call", name, each)
		}
		want := w.counting()
		w.reopen().expectCounting(t, want)
		w.m.Stop()
	}
}
