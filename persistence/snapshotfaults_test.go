package persistence_test

import (
	"errors"
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
