package persistence_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"celld/persistence"
	"celld/store"
)

// The time at which the file is forced to the disk may change. What was written before is then forced, too.
func TestSetFsync(t *testing.T) {
	w, files := inMemory(t, func(o *persistence.Options) { appendOnly(o); o.Fsync = persistence.Never })
	w.mustOpen()
	var syncs atomic.Int64
	files.failing(func(call, _ string) error {
		if call == "sync" {
			syncs.Add(1)
		}
		return nil
	})
	step := func(what string, fsync persistence.Fsync, want int64) {
		t.Helper()
		if err := w.m.SetFsync(fsync); err != nil {
			t.Fatal(err)
		}
		w.m.Wait()
		if got := syncs.Swap(0); got != want {
			t.Errorf("%s: %d syncs when it is set, want %d", what, got, want)
		}
	}
	write := func(want int64) {
		t.Helper()
		w.throttle("k")
		w.tick(second)
		w.settle()
		if got := syncs.Swap(0); got != want {
			t.Errorf("%d syncs of a change, want %d", got, want)
		}
	}
	write(0)
	step("no as before", persistence.Never, 0)
	step("everysec", persistence.EverySecond, 1)
	w.replays(files.image(true), w.states())
	write(1)
	w.replays(files.image(true), w.states())
	step("everysec as before", persistence.EverySecond, 0)
	step("no", persistence.Never, 0)
	write(0)
	if err := w.m.SetFsync(persistence.Always); !errors.Is(err, persistence.ErrNeedsRestart) {
		t.Error(err)
	}
	write(0)

	w.set = always
	w.reopen()
	for _, fsync := range []persistence.Fsync{persistence.EverySecond, persistence.Never} {
		if err := w.m.SetFsync(fsync); !errors.Is(err, persistence.ErrNeedsRestart) {
			t.Error(err)
		}
	}
	if err := w.m.SetFsync(persistence.Always); err != nil || !w.m.Synchronous() {
		t.Error(err)
	}
	w.put("a", store.Value{TAT: uint64(t0 + 90*second)})
	w.commit()
	w.replays(files.image(true), w.states())
}

// What was written without a sync may be dropped by the kernel when a later sync fails. So a process begins with a sync, as the one before
// it may have been killed, and after such a failure the file is written anew.
func TestASyncFailsAfterWritesWithoutOne(t *testing.T) {
	never := func(o *persistence.Options) { appendOnly(o); o.Fsync = persistence.Never }
	for name, next := range map[string]func(w *world){
		"the next process": func(w *world) { w.set = appendOnly; w.mustOpen() },
		"with always":      func(w *world) { w.set = always; w.mustOpen() },
		"the same process": func(w *world) {
			if err := w.m.SetFsync(persistence.EverySecond); err != nil {
				t.Error(err)
			}
			w.m.Wait()
		},
	} {
		for _, fails := range []bool{false, true} {
			w, files := inMemory(t, never)
			w.mustOpen()
			w.throttle("k")
			w.tick(second)
			w.settle()
			if fails {
				files.failing(failOn("sync"))
			}
			next(w)
			files.failing(nil)
			if !fails {
				w.replays(files.image(true), w.states())
			}
			for range 3 { // it tries again, then finds that a rewrite is due
				w.tick(second)
				w.settle()
			}
			if st := w.m.Status(); (st.Rewrites == 1) != fails || st.RewriteErr != nil {
				t.Errorf("%s, sync fails %v: %d rewrites, %v", name, fails, st.Rewrites, st.RewriteErr)
			}
			w.replays(files.image(true), w.states())
		}
	}
}
