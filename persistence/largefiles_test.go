//go:build !race

package persistence_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"celld/store"
)

// Large files are synced and dropped from the cache while they are written, and as a whole at the end.
func TestLargeFilesArePaced(t *testing.T) {
	for name, write := range map[string]func(w *world) error{
		"snapshot": func(w *world) error { return w.m.Save() },
		"rewrite":  func(w *world) error { return errors.Join(w.m.Rewrite(), settled(w).RewriteErr) },
	} {
		t.Run(name, func(t *testing.T) {
			w, files := inMemory(t, appendOnly)
			w.mustOpen()
			for i := range 150_000 { // some 7 MB and 13 MB
				w.put(fmt.Sprintf("ratelimit:user:%08d", i), store.Value{TAT: uint64(t0 + 90*second)})
			}
			syncs := 0
			files.failing(func(call, name string) error {
				if call == "sync" && strings.HasPrefix(name, "temp-") {
					syncs++
				}
				return nil
			})
			if err := write(w); err != nil {
				t.Fatal(err)
			}
			if syncs < 2 || files.forgotten < 7<<20 {
				t.Errorf("%d syncs, %d bytes forgotten", syncs, files.forgotten)
			}
		})
	}
}
