package persistence_test

import (
	"fmt"
	"strings"
	"testing"

	"celld/persistence"
	"celld/store"
)

// Keys that are renamed while a snapshot is taken, or the append-only file is rewritten, are in it, under either name.
func TestRenamesDuringASnapshot(t *testing.T) {
	const keys = 5000
	for name, test := range map[string]struct {
		set   func(*persistence.Options)
		file  string
		write func(m *persistence.Disk) error
	}{
		"snapshot":              {snapshots, "dump.rdb", func(m *persistence.Disk) error { return m.BackgroundSave(false) }},
		"append-only, just now": {snapshots, "appendonly.aof", (*persistence.Disk).Rewrite},
	} {
		w := newWorld(t, test.set).mustOpen()
		for i := range keys {
			w.put(fmt.Sprint("old:", i), store.Value{TAT: uint64(t0 + second + int64(i))})
		}
		renamed, steps := 0, 0
		err := w.m.Start(func(step func() (more bool)) {
			for step() {
				steps++
				for range 100 {
					w.store.Rename(fmt.Append(nil, "old:", renamed), fmt.Append(nil, "new:", renamed), store.Access{NowNS: w.now})
					renamed++
				}
			}
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := test.write(w.m); err != nil {
			t.Fatal(err)
		}
		w.settle()
		if st := w.m.Status(); st.SaveErr != nil || st.RewriteErr != nil || renamed < keys/10 {
			t.Fatalf("%s: %d steps, %+v", name, steps, st)
		}
		text := w.read(test.file)
		if file := test.file; strings.HasSuffix(file, "aof") {
			w.set = appendOnly
		}
		w.mustOpen()
		found := map[uint64]bool{}
		for _, st := range w.states() {
			found[st.TAT] = true
		}
		if len(found) != keys {
			t.Errorf("%s: %d limits of %d", name, len(found), keys)
		}
		if told := strings.Count(text, "old:") + strings.Count(text, "new:"); told != len(w.states()) {
			t.Errorf("%s: %d names for %d keys: some are there twice", name, told, len(w.states()))
		}
	}
}
