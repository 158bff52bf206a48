package persistence_test

import (
	"strings"
	"testing"

	"celld/store"
)

// A panic while a snapshot or a rewrite is written makes that file fail: the file before it stays, and the next succeeds.
func TestPanicInABackgroundWrite(t *testing.T) {
	for name, begin := range map[string]func(w *world) error{
		"dump.rdb":       func(w *world) error { return w.m.BackgroundSave(false) },
		"appendonly.aof": func(w *world) error { return w.m.Rewrite() },
	} {
		w, files := inMemory(t, snapshots)
		w.mustOpen()
		w.fillWith(fewStates())
		files.failing(func(call, file string) error {
			if call == "write" {
				panic("in the disk")
			}
			return nil
		})
		if err := begin(w); err != nil {
			t.Fatal(err)
		}
		st := settled(w)
		err := st.SaveErr
		if name == "appendonly.aof" {
			err = st.RewriteErr
		}
		if err == nil || !strings.Contains(err.Error(), "in the disk") || st.Saving || st.Rewriting {
			t.Errorf("%s: %v, %+v", name, err, st)
		}
		if names := files.list(); len(names) != 0 {
			t.Errorf("%s: %q are left", name, names)
		}
		files.failing(nil)
		if err := begin(w); err != nil {
			t.Error(err)
		}
		if st := settled(w); st.SaveErr != nil || st.RewriteErr != nil {
			t.Errorf("%s: %+v", name, st)
		}
	}
}

// A panic while the append-only file is written ends the process, with its cause in the log: nobody knows what is missing in the file.
func TestPanicInTheAppendOnlyFile(t *testing.T) {
	w, files := inMemory(t, appendOnly)
	w.mustOpen()
	codes := make(chan int, 1)
	w.m.OnExit(func(code int) { codes <- code })
	files.failing(func(call, file string) error {
		if call == "write" {
			panic("in the disk")
		}
		return nil
	})
	w.put("k", store.Value{TAT: uint64(t0 + 90*second)})
	w.tick(second)
	if code := <-codes; code != 1 || !strings.Contains(w.log.String(), "in the disk") {
		t.Errorf("exit code %d, log %s", code, w.log)
	}
}
