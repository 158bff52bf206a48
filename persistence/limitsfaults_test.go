package persistence_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"celld/cell"
	"celld/store"
	"celld/store/policy"
)

// Settings that the disk refused are in the file once it takes them, before anything that depends on them. Until then the file holds
// what it held.
func TestSettingsThatCouldNotBeWritten(t *testing.T) {
	for _, many := range []bool{false, true} {
		for _, rewrite := range []bool{false, true} {
			w, files := inMemory(t, always)
			w.mustOpen()
			for _, name := range []string{"deleted", "reset", "changed"} {
				w.setPolicy(name, "5/1h", policy.Options{})
			}
			w.putRule(policy.Rule{Pattern: "deleted"})
			w.putRule(policy.Rule{Pattern: "changed", UntilNS: w.now + 60*second})
			w.take("k", 5, "@deleted", "@reset", "@changed", "9/1h")
			w.take("k2", 5, "@deleted", "@reset", "@changed")
			if err := w.commit(); err != nil {
				t.Fatal(err)
			}
			w.tick(second)
			acked := w.texts()
			files.failing(failOn("write"))
			w.setPolicy("new", "7/1h", policy.Options{})
			w.store.DeletePolicy("deleted")
			w.setPolicy("reset", "6/1h", policy.Options{Reset: true})
			w.setPolicy("changed", "50/1h", policy.Options{})
			w.store.DeleteRule(policy.Rule{Pattern: "deleted"}, w.now)
			w.putRule(policy.Rule{Pattern: "changed"})
			w.putRule(policy.Rule{Pattern: "new"})
			w.take("k", 2, "@reset", "@changed", "9/1h")
			if many { // more than are noted while nobody drains them
				name := strings.Repeat("n", 1<<15)
				for i := range 600 {
					w.setPolicy(fmt.Sprint(name, i), "5/1h", policy.Options{})
					w.store.DeletePolicy(fmt.Sprint(name, i))
				}
				w.setPolicy("unnoted", "8/1h", policy.Options{})
			}
			if err := w.commit(); err == nil {
				t.Fatal("the disk is full")
			}
			w.take("k3", 3, "@new", "@reset") // in a round that had begun
			if err := w.commit(); err == nil {
				t.Fatal("what comes before is not written")
			}
			w.replaysTexts(files.image(true), acked)
			files.failing(nil)
			if rewrite {
				if err := w.m.Rewrite(); err != nil {
					t.Fatal(err)
				}
				w.settle()
			}
			want := w.texts()
			for range 3 {
				w.tick(second)
				w.settle()
				w.expectTexts(want)
				w.replaysTexts(files.image(true), want)
			}
			w.take("k3", 2, "@new")
			if err := w.commit(); err != nil {
				t.Fatal(err)
			}
			want = w.texts()
			w.reopen().expectTexts(want)
			w.m.Stop()
		}
	}
}

// replaysTexts checks that a process that finds those files has exactly this.
func (w *world) replaysTexts(files *memoryFS, want map[string]string) {
	w.t.Helper()
	next := &world{t: w.t, dir: w.dir, now: w.now, set: w.set, files: files}
	next.mustOpen().expectTexts(want)
	next.m.Stop()
}

// Many connections change policies and rules, and take from them, while the disk fails now and then and rewrites go on. In the end the
// file holds what the store holds.
func TestSettingsUnderFire(t *testing.T) {
	t.Parallel()
	rewrites := int64(0)
	for round := range uint64(4) {
		w, files := inMemory(t, always)
		w.mustOpen()
		var calls atomic.Uint64
		files.failing(func(call, _ string) error {
			if n := calls.Add(1); (n+round)*0x9e3779b97f4a7c15>>59 == 0 { // one in 32
				return syscall.ENOSPC
			}
			return nil
		})
		limits := []cell.Limit{w.literal("5/1h"), w.literal("90/1h"), w.literal("40/1h,algo=log")}
		change := func(rnd *rand.Rand) {
			name, key := fmt.Sprint("p", rnd.IntN(3)), fmt.Append(nil, "key ", rnd.IntN(30))
			limit := limits[rnd.IntN(len(limits))]
			switch p := w.store.PolicyNamed(name); {
			case p == nil || rnd.IntN(8) == 0:
				_, _ = w.store.SetPolicy(name, []cell.Limit{limit}, policy.Options{Reset: rnd.IntN(2) == 0})
			case rnd.IntN(8) == 0:
				w.store.DeletePolicy(name)
			case rnd.IntN(8) == 0:
				_, _ = w.store.PutRule(policy.Rule{Pattern: name}, w.clock.Load())
			case rnd.IntN(8) == 0:
				w.store.DeleteRule(policy.Rule{Pattern: name}, w.clock.Load())
			default:
				calls := []store.Call{{Key: key, Limit: &p.Limits[0].Limit, Policy: p.Limits[0]}, {Key: key, Limit: &limit}}
				_, _ = w.store.Take(calls[rnd.IntN(2):], store.TakeOptions{Cost: 1}, store.Access{NowNS: w.clock.Load()})
			}
		}
		var connections sync.WaitGroup
		for c := range uint64(4) {
			connections.Go(func() {
				rnd := rand.New(rand.NewPCG(round, c))
				for range 200 {
					w.takenAgain()
					w.m.Begin()
					for range rnd.IntN(4) {
						if w.m.Refusal() == nil {
							change(rnd)
						}
					}
					_ = w.m.Commit()
				}
			})
		}
		w.rewriteWhile(&connections)
		files.failing(nil)
		w.tick(second)
		if w.m.Status().AOFFailures == 0 {
			t.Error("nothing has failed")
		}
		rewrites += w.m.Status().Rewrites
		want := w.texts()
		w.replaysTexts(files.image(true), want)
		if err := w.commit(); err != nil {
			t.Fatal(err)
		}
		w.replaysTexts(files.image(true), want)
		w.m.Stop()
	}
	if rewrites == 0 {
		t.Error("nothing was rewritten")
	}
}

// Settings from before the Disk starts, as the policies of a file are, get to the disk.
func TestSettingsBeforeTheStart(t *testing.T) {
	for _, full := range []bool{false, true} {
		w, files := inMemory(t, always)
		w.between = func() {
			w.setPolicy("p", "5/1h", policy.Options{})
			if full {
				files.failing(failOn("write"))
			}
		}
		w.mustOpen()
		if refusal := w.m.Refusal(); (refusal != nil) != full {
			t.Errorf("%v", refusal)
		}
		w.setPolicy("new", "5/1h", policy.Options{})
		if err := w.commit(); (err != nil) != full {
			t.Errorf("%v", err)
		}
		files.failing(nil)
		w.tick(second)
		w.settle()
		want := w.texts()
		w.replaysTexts(files.image(true), want)
		w.m.Stop()
	}
}

// Any call fails: changes under limits are on the disk if Commit reports so, byte for byte, or once the disk takes them.
func TestAlwaysWithLimitsWhenTheDiskFails(t *testing.T) {
	changes := []func(w *world){
		func(w *world) { w.take("k", 1, "5/1h", "90/1h,algo=log") },
		func(w *world) {
			w.pass(1)
			w.take("k", 1, "90/1h,algo=log")
			w.take("new", 1, "6/1h,algo=slide,buckets=3")
		},
		func(w *world) { w.take("k", 9, "5/1h,block=1m"); w.pass(1) },
		func(w *world) { w.copy("k", "new"); w.take("k", 1, "90/1h,algo=log") },
		func(w *world) { w.store.Rename([]byte("k"), []byte("new"), store.Access{NowNS: w.now}) },
		func(w *world) {
			w.store.RenameNew([]byte("new"), []byte("k"), store.Access{NowNS: w.now})
			w.copy("k", "new")
		},
		func(w *world) {
			l := w.literal("90/1h,algo=log")
			_, _ = w.store.Give([]byte("k"), &l, nil, 2, store.Access{NowNS: w.now})
			_, _ = w.store.Give([]byte("new"), &l, nil, 1, store.Access{NowNS: w.now})
		},
		func(w *world) { w.setPolicy("p", "9/1h", policy.Options{}); w.take("k", 1, "@p") },
		func(w *world) { w.setPolicy("p", "7/1h", policy.Options{Reset: true}); w.take("k", 1, "@p") },
		func(w *world) { w.store.DeletePolicy("p"); w.take("k", 1, "90/1h,algo=log") },
		func(w *world) { w.setPolicy("q", "7/1h", policy.Options{}); w.take("k", 1, "@q") },
		func(w *world) {
			w.putRule(policy.Rule{Pattern: "x*"})
			w.putRule(policy.Rule{Deny: true, Pattern: "y"})
		},
		func(w *world) {
			w.putRule(policy.Rule{Pattern: "x*", UntilNS: w.now + 60*second})
			w.store.DeleteRule(policy.Rule{Deny: true, Pattern: "y"}, w.now)
		},
	}
	for call, more := 1, true; more; call++ {
		w, files := inMemory(t, always)
		w.mustOpen()
		w.setPolicy("p", "5/1h", policy.Options{})
		w.take("k", 3, "5/1h", "90/1h,algo=log", "@p")
		w.take("k2", 3, "@p")
		w.commit()
		reached := files.failFrom(call, false)
		for i, change := range changes {
			want := w.texts()
			change(w)
			holds := func() {
				t.Helper()
				next := &world{t: t, dir: w.dir, now: w.now, set: w.set, files: files.image(true)}
				if next.mustOpen(); !maps.Equal(next.texts(), want) {
					t.Fatalf("call %d, change %d: the file has %v\nwant %v", call, i, next.texts(), want)
				}
				next.m.Stop()
			}
			if err := w.commit(); err == nil {
				want = w.texts()
			}
			holds()
			files.failing(nil)
			w.tick(second)
			want = w.texts()
			holds()
		}
		more = reached()
		w.m.Stop()
	}
}
