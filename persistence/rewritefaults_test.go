package persistence_test

import (
	"errors"
	"slices"
	"syscall"
	"testing"

	"celld/persistence/dir"
	"celld/store"
)

// Any call of a rewrite fails: writes go to the file with the name.
func TestRewriteWhenTheDiskFails(t *testing.T) {
	for _, forever := range []bool{false, true} {
		for call, more := 1, true; more; call++ {
			w, files := inMemory(t, always)
			w.mustOpen()
			w.put("kept", store.Value{TAT: uint64(t0 + 90*second)})
			for range 5 {
				w.throttle("a")
				w.commit()
			}
			good := files.text(w.path("appendonly.aof"))
			reached := files.failFrom(call, forever)
			if err := w.m.Rewrite(); err != nil {
				t.Fatal(err)
			}
			w.settle()
			more = reached()
			st := w.m.Status()
			failed := st.RewriteErr != nil
			if failed != (st.Rewrites == 0) || failed && (!more || !errors.Is(st.RewriteErr, syscall.ENOSPC)) {
				t.Errorf("%+v", st)
			}
			if failed && files.text(w.path("appendonly.aof")) != good {
				t.Errorf("%v, and the file is another", st.RewriteErr)
			}
			for _, change := range changes {
				w.change(files, change)
			}
			w.recovers(files)
			if err := w.m.Rewrite(); err != nil || settled(w).RewriteErr != nil {
				t.Errorf("the file system has recovered: %v, %v", err, w.m.Status().RewriteErr)
			}
			if names := files.list(); !slices.Equal(names, []string{"appendonly.aof"}) {
				t.Errorf("%q are there", names)
			}
			want := w.states()
			w.reopen().expect(want)
			if t.Failed() {
				t.Fatalf("call %d, forever %v", call, forever)
			}
		}
	}
}

// The same if the append-only file is off, and is written once on request.
func TestRewriteWithoutAOFWhenTheDiskFails(t *testing.T) {
	for call, more := 1, true; more; call++ {
		w, files := inMemory(t, snapshots)
		files.put(w.path("appendonly.aof"), []byte("what was there"))
		w.mustOpen()
		w.fillWith(fewStates())
		reached := files.failFrom(call, false)
		if err := w.m.Rewrite(); err != nil {
			t.Fatal(err)
		}
		err := settled(w).RewriteErr
		more = reached()
		if err != nil && !errors.Is(err, dir.ErrNotLasting) {
			if got := files.text(w.path("appendonly.aof")); got != "what was there" {
				t.Errorf("%v, and now there is %.100q", err, got)
			}
		} else {
			is := &world{t: t, now: w.now, set: appendOnly}
			is.replays(files.image(true), w.states())
		}
		if names := files.list(); !slices.Equal(names, []string{"appendonly.aof"}) {
			t.Errorf("call %d: %q are there", call, names)
		}
	}
}

// Appends during a rewrite are on the disk before the new file gets its name.
func TestARewriteIsOnTheDiskWithWhatFollowed(t *testing.T) {
	w, files := inMemory(t, always)
	w.mustOpen()
	w.throttle("a")
	w.commit()
	once := files.during("sync", func() {
		files.failing(nil)
		w.throttle("a")
		w.throttle("b")
		if err := w.commit(); err != nil {
			t.Error(err)
		}
	})
	if err := w.m.Rewrite(); err != nil {
		t.Fatal(err)
	}
	w.settle()
	if st := w.m.Status(); st.RewriteErr != nil || !once.Load() {
		t.Fatalf("nothing was appended meanwhile: %+v", st)
	}
	w.replays(files.image(true), w.states())
	w.m.Stop()
}

// A file that somebody cuts during a rewrite lacks what the rewrite would copy of it. So that rewrite fails, and another one holds
// all.
func TestAFileIsCutDuringARewrite(t *testing.T) {
	w, files := inMemory(t, always)
	w.mustOpen()
	w.throttle("a")
	w.commit()
	size := len(files.text(w.path("appendonly.aof")))
	files.during("write", func() {
		w.throttle("a") // when it was written as it
		if err := w.commit(); err != nil {
			t.Error(err)
		}
		files.shorten(w.path("appendonly.aof"), size)
		w.tick(second)
	})
	if err := w.m.Rewrite(); err != nil {
		t.Fatal(err)
	}
	w.settle()
	if w.m.Status().RewriteErr == nil {
		t.Error("it was rewritten without what was cut")
	}
	for range 120 {
		w.tick(second)
		w.settle()
	}
	if st := w.m.Status(); st.RewriteErr != nil || w.m.Refusal() != nil {
		t.Errorf("not mended: %+v, %v", st, w.m.Refusal())
	}
	w.replays(files.image(true), w.states())
	w.m.Stop()
}
