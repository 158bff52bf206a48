package persistence_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"

	"celld/persistence"
	"celld/persistence/dir"
	"celld/store"
)

// Any call of a snapshot fails: the snapshot before stays, or the new one is there as a whole.
func TestSnapshotWhenTheDiskFails(t *testing.T) {
	for name, save := range map[string]func(w *world) error{
		"SAVE":   func(w *world) error { return w.m.Save() },
		"BGSAVE": func(w *world) error { return errors.Join(w.m.BackgroundSave(false), settled(w).SaveErr) },
	} {
		for _, forever := range []bool{false, true} {
			for call, more := 1, true; more; call++ {
				w, files := inMemory(t, snapshots)
				w.mustOpen()
				w.fillWith(fewStates())
				if err := w.m.Save(); err != nil {
					t.Fatal(err)
				}
				before, good := w.states(), files.text(w.path("dump.rdb"))
				w.put("new", store.Value{TAT: uint64(t0 + 90*second)})
				w.pass(second / 2)
				reached := files.failFrom(call, forever)
				err := save(w)
				more = reached()
				st := w.m.Status()
				switch {
				case (err != nil) != more || (st.SaveErr != nil) != more || more && !errors.Is(st.SaveErr, syscall.ENOSPC):
					t.Errorf("%v, %+v", err, st)
				case err == nil:
					w.replays(files.image(true), w.states())
				case errors.Is(err, dir.ErrNotLasting):
					w.replays(files.image(false), w.states())
				case files.text(w.path("dump.rdb")) != good:
					t.Error("the snapshot before is no more")
				}
				if names := files.list(); !forever && len(names) != 1 {
					t.Errorf("%q are there", names)
				}
				if err != nil && st.LastSaveNS != t0 {
					t.Error("LastSaveNS is that of a snapshot that failed")
				}
				files.failing(nil)
				if more && !errors.Is(err, dir.ErrNotLasting) {
					w.replays(files.image(true), before)
				}
				if err := save(w); err != nil || w.m.Status().SaveErr != nil {
					t.Errorf("the file system has recovered: %v, %v", err, w.m.Status().SaveErr)
				}
				if names := files.list(); !slices.Equal(names, []string{"dump.rdb"}) {
					t.Errorf("%q are there", names)
				}
				w.replays(files.image(true), w.states())
				if t.Failed() {
					t.Fatalf("%s, call %d, forever %v", name, call, forever)
				}
			}
		}
	}
}

// fewStates are one of each kind.
func fewStates() map[string]store.Value {
	few := someStates()
	maps.DeleteFunc(few, func(key string, _ store.Value) bool { return strings.HasPrefix(key, "key:") })
	return few
}

func settled(w *world) persistence.Status {
	w.settle()
	return w.m.Status()
}

// A failed snapshot is tried again after 5 s, not at every tick.
func TestSnapshotIsTriedAgain(t *testing.T) {
	w, files := inMemory(t, func(o *persistence.Options) {
		o.SavePoints = func() []persistence.SavePoint { return []persistence.SavePoint{{After: 1e9, Changes: 1}} }
	})
	w.mustOpen()
	w.put("a", store.Value{TAT: uint64(t0 + 90*second)})
	tries := 0
	files.failing(func(call, _ string) error {
		if call == "create" {
			tries++
			return syscall.EACCES
		}
		return nil
	})
	for range 200 {
		w.tick(second / 10)
		w.settle()
	}
	if tries < 3 || tries > 4 {
		t.Errorf("%d tries in 20 s", tries)
	}
	files.failing(nil)
	w.tick(5 * second)
	w.settle()
	if st := w.m.Status(); st.SaveErr != nil || st.Saves != 1 {
		t.Errorf("%+v", st)
	}
}

// Any call of a start fails: nothing that was there is lost, and the next start finds all.
func TestStartWhenTheDiskFails(t *testing.T) {
	t.Parallel()
	both := func(o *persistence.Options) { snapshots(o); appendOnly(o) }
	for name, start := range map[string]struct {
		set  func(*persistence.Options)
		last func(files *memoryFS, w *world)
	}{
		"snapshot":    {snapshots, func(*memoryFS, *world) {}},
		"append-only": {appendOnly, func(*memoryFS, *world) {}},
		"append-only, torn": {appendOnly, func(files *memoryFS, w *world) {
			files.put(w.path("appendonly.aof"), []byte(files.text(w.path("appendonly.aof"))+"*2\r\n$3\r\nDE"))
		}},
		"append-only, in MULTI": {appendOnly, func(files *memoryFS, w *world) {
			files.put(w.path("appendonly.aof"), []byte(files.text(w.path("appendonly.aof"))+"*1\r\n$5\r\nMULTI\r\n"))
		}},
		"from snapshot to both":  {both, func(files *memoryFS, w *world) { _ = files.Remove(w.path("appendonly.aof")) }},
		"from Redis 7's to ours": {appendOnly, redis7Files},
	} {
		for _, forever := range []bool{false, true} {
			for call, more := 1, true; more; call++ {
				w, files := inMemory(t, both)
				w.mustOpen()
				w.fillWith(fewStates())
				want := w.states()
				if err := w.close(); err != nil {
					t.Fatal(err)
				}
				w.set = start.set
				start.last(files, w)
				w.pass(0)
				image := files.image(false)
				reached := image.failFrom(call, forever)
				w.files = image
				err := w.open()
				more = reached()
				if err == nil {
					w.expect(want)
				} else if !more || !errors.Is(err, syscall.ENOSPC) {
					t.Errorf("%v", err)
				}
				w.m.Stop()
				w.replays(image.image(false), want)
				for _, name := range image.list() {
					if !forever && strings.HasPrefix(name, "temp") && !strings.HasSuffix(name, ".check") {
						t.Errorf("%s is left behind", name)
					}
				}
				if t.Failed() {
					t.Fatalf("%s, call %d, forever %v", name, call, forever)
				}
			}
		}
	}
}

// redis7Files turns the snapshot into the files of Redis 7: a base and what followed.
func redis7Files(files *memoryFS, w *world) {
	files.put(w.path("appendonlydir/appendonly.aof.1.base.rdb"), []byte(files.text(w.path("dump.rdb"))))
	files.put(w.path("appendonlydir/appendonly.aof.1.incr.aof"), []byte("*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n"))
	files.put(w.path("appendonlydir/appendonly.aof.manifest"), fmt.Appendf(nil,
		"file appendonly.aof.1.base.rdb seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i\n"))
	_ = files.Remove(w.path("appendonly.aof"))
	_ = files.Remove(w.path("dump.rdb"))
}
