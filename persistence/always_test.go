package persistence_test

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"celld/persistence"
	"celld/store"
)

// inMemory is a world whose files are in memory.
func inMemory(t testing.TB, set func(*persistence.Options)) (*world, *memoryFS) {
	files := newMemory()
	return &world{t: t, now: t0, set: set, files: files}, files
}

// replays checks that a process that finds those files has exactly these limits.
func (w *world) replays(files *memoryFS, want map[string]store.Value) {
	w.t.Helper()
	next := &world{t: w.t, dir: w.dir, now: w.now, set: w.set, files: files}
	if err := next.open(); err != nil {
		w.t.Fatal(err)
	}
	next.expect(want)
	next.m.Stop()
	if err := next.m.Close(false); err != nil {
		w.t.Fatal(err)
	}
}

// changes are of all kinds, one after the other.
var changes = []func(w *world){
	func(w *world) { w.put("new", store.Value{TAT: uint64(t0 + 90*second)}) },
	func(w *world) { w.throttle("new") },
	func(w *world) {
		for _, key := range []string{"a", "b", "c", "d"} {
			w.throttle(key)
			w.throttle(key)
		}
		w.store.Delete([]byte("b"), w.now)
	},
	func(w *world) { w.store.Delete([]byte("a"), w.now) },
	func(w *world) { w.store.Rename([]byte("c"), []byte("e"), store.Access{NowNS: w.now}) },
	func(w *world) { w.store.RenameNew([]byte("d"), []byte("f"), store.Access{NowNS: w.now}) },
	func(w *world) { w.copy("e", "new"); w.copy("f", "copied") },
	func(w *world) {
		w.put("new", store.Value{TAT: uint64(t0 + 80*second), ExpiryNS: t0 + 70*second})
		w.put("stays", store.Value{TAT: uint64(t0 + 80*second), ExpiryNS: store.NoExpiry})
	},
}

// copy copies a key, if it is there, over another or not.
func (w *world) copy(from, to string) {
	w.t.Helper()
	if _, err := w.store.Copy([]byte(from), []byte(to), true, store.Access{NowNS: w.now}); err != nil {
		w.t.Error(err)
	}
}

// change makes a change and commits it. If Commit succeeds, the change is on the disk. Otherwise the disk holds what it held before,
// and the store holds the change.
func (w *world) change(files *memoryFS, change func(w *world)) (failed bool) {
	w.t.Helper()
	failures := w.m.Status().AOFFailures
	if w.acked == nil {
		w.acked = w.states()
	}
	change(w)
	after := w.states()
	err := w.commit()
	w.expect(after)
	if err == nil {
		if w.m.Status().AOFFailures != failures {
			w.t.Error("a failure is noted, and Commit does not tell of it")
		}
		w.acked = after
		w.replays(files.image(true), after)
		if w.m.Refusal() == nil {
			w.replays(files.image(false), after)
		} // else what could not be cut off may be there
		return false
	}
	w.replays(files.image(true), w.acked)
	if err := w.m.Refusal(); !errors.Is(err, syscall.ENOSPC) || !errors.Is(w.m.Status().AOFErr, syscall.ENOSPC) {
		w.t.Errorf("after a write that has failed: %v, %+v", err, w.m.Status())
	}
	return true
}

// recovers checks that all is well a second after the file system recovers, and that the disk holds what the store holds.
func (w *world) recovers(files *memoryFS) {
	w.t.Helper()
	files.failing(nil)
	w.tick(second)
	if err := w.m.Refusal(); err != nil || w.m.Status().AOFErr != nil {
		w.t.Errorf("the file system has recovered: %v, %+v", err, w.m.Status())
	}
	w.replays(files.image(false), w.states())
	if w.change(files, func(w *world) { w.throttle("afterwards") }) {
		w.t.Error("the file system has recovered, and Commit has not")
	}
	want := w.states()
	w.reopen().expect(want)
}

// A disk that takes a few bytes is still full: writes go on when there is room for many, and the log tells of it once.
func TestAlwaysOnAFullDisk(t *testing.T) {
	w, files := inMemory(t, always)
	w.mustOpen()
	w.put("kept", store.Value{TAT: uint64(t0 + 90*second)})
	w.commit()
	kept := w.states()
	size := len(files.text(w.path("appendonly.aof")))
	files.most = size + 100
	if w.throttle(strings.Repeat("long", 100)); w.commit() == nil {
		t.Fatal("there is no room, and it was written")
	}
	for range 5 {
		if w.tick(second); w.m.Refusal() == nil {
			t.Fatal("there is room for 100 bytes, and writes go on")
		}
		if got := len(files.text(w.path("appendonly.aof"))); got != size {
			t.Fatalf("the file has %d bytes, want %d", got, size)
		}
	}
	w.replays(files.image(false), kept)
	if n := strings.Count(w.log.String(), "append-only file"); n != 1 {
		t.Errorf("told %d times: %s", n, w.log.String())
	}
	files.most = 0
	w.recovers(files)
}

// Any call fails, once or from there on: what Commit reports as written is on the disk, and in the end all changes are.
func TestAlwaysWhenTheDiskFails(t *testing.T) {
	for _, forever := range []bool{false, true} {
		for call, more := 1, true; more; call++ {
			w, files := inMemory(t, always)
			w.mustOpen()
			w.put("kept", store.Value{TAT: uint64(t0 + 90*second)})
			w.commit()
			reached, failed := files.failFrom(call, forever), 0
			for _, change := range changes {
				if w.change(files, change) {
					failed++
				}
			}
			more = reached()
			if forever && more && failed == 0 {
				t.Errorf("call %d, forever %v: %d changes have failed", call, forever, failed)
			}
			w.recovers(files)
			if t.Failed() {
				t.Fatalf("call %d, forever %v", call, forever)
			}
		}
	}
}

// Where what was written of a batch cannot be cut off either, it is later, before anything else is written.
func TestAlwaysWhenItCannotBeCutOff(t *testing.T) {
	for _, calls := range [][]string{{"write", "truncate"}, {"sync", "truncate"}} {
		w, files := inMemory(t, always)
		w.mustOpen()
		w.put("kept", store.Value{TAT: uint64(t0 + 90*second)})
		w.commit()
		good := files.text(w.path("appendonly.aof"))
		files.failing(failOn(calls...))
		for range 3 {
			for _, change := range changes {
				w.change(files, change)
			}
			w.tick(second)
		}
		if got := files.text(w.path("appendonly.aof")); len(got) <= len(good) || len(got) > 2*len(good) {
			t.Errorf("%q, where %q was before", got, good)
		}
		w.recovers(files)
	}
}

// A tick does not ask too much of a disk that fails, and tells the log once that it does and once that it no longer does.
func TestAlwaysTriesAgain(t *testing.T) {
	w, files := inMemory(t, always)
	w.mustOpen()
	tries := 0
	files.failing(func(call, _ string) error {
		if call == "write" {
			tries++
			return syscall.EIO
		}
		return nil
	})
	w.throttle("a")
	w.commit()
	w.tick(0)
	tries = 0
	for range 50 {
		w.tick(second / 10)
	}
	if tries != 5 {
		t.Errorf("%d tries in 5 s", tries)
	}
	files.failing(nil)
	w.tick(second)
	w.throttle("a")
	w.commit()
	for _, line := range []string{"cannot be written", "can be written again"} {
		if n := strings.Count(w.log.String(), line); n != 1 {
			t.Errorf("%q is told %d times in %s", line, n, w.log)
		}
	}
	want := w.states()
	w.reopen().expect(want)
}

// A large commit is written in pieces, so no buffer holds all of it. If the disk refuses one piece, the rest follows once the disk
// takes it.
func TestAlwaysInPieces(t *testing.T) {
	const keys = 100
	for fail := range 4 {
		w, files := inMemory(t, always)
		w.mustOpen()
		for i := range keys {
			w.put(fmt.Sprintf("%040000d", i), store.Value{TAT: uint64(t0 + 90*second)})
		}
		syncs := 0
		files.failing(func(call, _ string) error {
			if call != "sync" {
				return nil
			}
			if syncs++; syncs == fail {
				return syscall.ENOSPC
			}
			return nil
		})
		if err := w.commit(); (err != nil) != (fail > 0) {
			t.Errorf("piece %d fails: %v", fail, err)
		}
		if fail == 0 && syncs < 3 {
			t.Errorf("4 MB are written in %d pieces", syncs)
		}
		if size := len(files.text(w.path("appendonly.aof"))); fail > 0 && (size < (fail-1)<<20 || size > fail*3<<19) {
			t.Errorf("piece %d fails: the file has %d bytes", fail, size)
		}
		w.throttle("meanwhile")
		if err := w.commit(); (err != nil) != (fail > 0) {
			t.Errorf("after piece %d has failed: %v", fail, err)
		}
		w.recovers(files)
	}
}
