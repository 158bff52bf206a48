package persistence_test

import (
	"strings"
	"testing"
)

// A panic while a snapshot or a rewrite is written is a failure of that file: the one before stays, and the next succeeds.
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
