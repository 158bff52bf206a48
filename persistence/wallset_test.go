package persistence_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"celld/cell"
	"celld/internal/celldtest"
	"celld/persistence"
	"celld/store"
	"celld/store/policy"
)

// setWall sets the wall clock that far ahead, as a server does that notices it.
func (w *world) setWall(ahead int64) {
	w.store.SetWall(w.now+ahead, w.now)
	w.m.WallSet()
}

// restartAt starts on what is on the disk, without having stopped, when the wall clock says so.
func (w *world) restartAt(wallNS int64) {
	w.t.Helper()
	files := map[string]string{}
	for _, name := range []string{"appendonly.aof", "dump.rdb"} {
		if text := w.read(name); text != "" {
			files[name] = text
		}
	}
	w.m.Stop() // which writes nothing that the next one reads
	next := newWorld(w.t, w.set)
	next.now = wallNS
	for name, text := range files {
		next.write(name, text)
	}
	next.mustOpen()
	w.t.Cleanup(func() { next.m.Stop() })
	*w = world{t: next.t, dir: next.dir, now: next.now, store: next.store, m: next.m, log: next.log, set: next.set}
}

var kinds = map[string]func(*persistence.Options){"everysec": appendOnly, "always": always, "snapshots": snapshots}

// A restart after any change of the wall clock restores limits that neither lock nor free. Limits that follow the clock do what it
// says.
func TestARestartAfterTheWallClockWasSet(t *testing.T) {
	literals := []string{"10/1h", "10/1h,algo=window", "10/1h,algo=slide", "100/1h,algo=log", "10/1h,block=2h", "10/day"}
	for name, kind := range kinds {
		for _, by := range []time.Duration{time.Hour, -time.Hour, 90 * 24 * time.Hour, -90 * 24 * time.Hour} {
			t.Run(fmt.Sprint(name, by), func(t *testing.T) {
				w := newWorld(t, kind).mustOpen()
				defer w.m.Stop()
				ask := func(mode cell.Mode, n int64) map[string]cell.Decision {
					t.Helper()
					found := map[string]cell.Decision{}
					for _, literal := range literals {
						l, err := cell.ParseLimit(literal)
						if err != nil {
							t.Fatal(err)
						}
						calls := []store.Call{{Key: []byte(literal), Limit: &l}}
						for range n {
							_, err := w.store.Take(calls, store.TakeOptions{Cost: 1, Mode: mode}, store.Access{NowNS: w.now})
							if err != nil {
								t.Fatal(err)
							}
							w.pass(1)
						}
						w.pass(-n)
						found[literal] = calls[0].Decision
					}
					return found
				}
				ask(cell.Take, 71)
				ask(cell.Take, 20) // of a log, more than one part
				w.throttle("tat")
				w.put("at", store.Value{TAT: 1<<63 - 1, ExpiryNS: w.now + int64(1000*time.Hour)})
				rule := policy.Rule{Deny: true, Pattern: "rule", UntilNS: w.now + 3600*second}
				_, _ = w.store.PutRule(rule, w.now)
				w.mustWrite()
				w.pass(10 * second)
				w.throttle("tat")
				w.setWall(int64(by))
				ask(cell.Take, 1) // so that logs have more to tell
				before := ask(cell.Peek, 1)
				w.tick(0)
				w.settle()
				left, untilNS, end := int64(w.states()["tat"].TAT)-w.store.WallNS(w.now), rule.UntilNS-w.now, w.states()["at"].ExpiryNS
				w.restartAt(w.store.WallNS(w.now))
				if after := ask(cell.Peek, 1); !maps.Equal(after, before) {
					t.Errorf("was %+v\nis  %+v", before, after)
				}
				if now := int64(w.states()["tat"].TAT) - w.now; now != left {
					t.Errorf("%d ns of a TAT are left, were %d", now, left)
				}
				if now := w.states()["at"].ExpiryNS; now != end {
					t.Errorf("expires at %d, not %d", now, end)
				}
				rules := w.store.Rules(w.now)
				if len(rules) != 1 || rules[0].UntilNS-w.now-untilNS > 1e6 || rules[0].UntilNS-w.now < untilNS {
					t.Errorf("rules %v, %d ns were left", rules, untilNS)
				}
			})
		}
	}
}

// A snapshot or a rewrite that is under way when the wall clock is set is taken anew.
func TestTheWallClockIsSetWhileFilesAreWritten(t *testing.T) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(o *persistence.Options) { kind(o); o.SavePoints = func() []persistence.SavePoint { return nil } })
			step := make(chan func() bool)
			w.background = func(s func() bool) { go func() { step <- s }() }
			w.mustOpen()
			defer w.m.Stop()
			const keys = 2000
			for i := range keys {
				w.put(fmt.Sprint(i), store.Value{TAT: uint64(t0 + 3600*second)})
			}
			run := func(s func() bool) {
				for s() {
				}
			}
			begin := w.m.Rewrite
			if !w.m.On() {
				begin = func() error { return w.m.BackgroundSave(false) }
			}
			if err := begin(); err != nil {
				t.Fatal(err)
			}
			s := <-step
			s() // some are in the file
			w.setWall(3600 * second)
			run(s)
			for done, deadline := false, time.Now().Add(celldtest.Patience); !done; {
				if time.Now().After(deadline) {
					t.Fatalf("not taken anew: %+v", w.m.Status())
				}
				select {
				case s := <-step:
					run(s)
				default:
					st := w.m.Status()
					w.tick(second)
					done = !st.Saving && !st.Rewriting && !st.SaveScheduled && (st.Rewrites >= 2 || st.Saves >= 2)
					time.Sleep(time.Millisecond)
				}
			}
			left := w.store.WallNS(t0+3600*second) - w.store.WallNS(w.now)
			w.background = nil
			go func() { // for what this process still begins
				for s := range step {
					run(s)
				}
			}()
			w.restartAt(w.store.WallNS(w.now))
			states := w.states()
			if len(states) != keys {
				t.Errorf("%d keys, want %d", len(states), keys)
			}
			for _, key := range slices.Sorted(maps.Keys(states)) {
				if now := int64(states[key].TAT) - w.now; now != left {
					t.Fatalf("%d ns of %s are left, want %d", now, key, left)
				}
			}
		})
	}
}

// What the disk refused is written in the wall time of when it was gathered, also by a rewrite after the clock was set. Another
// rewrite corrects that.
func TestARefusedCommitAndTheWallClock(t *testing.T) {
	w, files := inMemory(t, always)
	w.mustOpen()
	w.put("a", store.Value{TAT: uint64(w.now + 90*second)})
	files.failing(failOn("write"))
	if err := w.commit(); err == nil {
		t.Fatal("the disk is full")
	}
	files.failing(nil)
	w.setWall(3600 * second)
	if err := w.m.Rewrite(); err != nil {
		t.Fatal(err)
	}
	w.settle()
	for range 2 {
		w.tick(second)
		w.settle()
	}
	w.now += 3600 * second // what the next process takes for the time
	w.replays(files.image(true), map[string]store.Value{"a": {TAT: uint64(t0 + 3690*second)}})
	w.m.Stop()
}
