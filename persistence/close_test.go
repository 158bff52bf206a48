package persistence_test

import (
	"fmt"
	"strings"
	"testing"

	"celld/persistence"
	"celld/store"
)

// At the end, changes are written in pieces: together they may be all of the store.
func TestCloseWritesInPieces(t *testing.T) {
	for name, set := range map[string]func(*persistence.Options){"everysec": appendOnly, "always": always} {
		w, files := inMemory(t, set)
		w.mustOpen()
		want := map[string]store.Value{}
		for i := range 100 {
			key := fmt.Sprint(i, strings.Repeat("k", 60_000))
			want[key] = store.Value{TAT: uint64(t0 + 90*second)}
			w.put(key, want[key])
		}
		writes := 0
		files.failing(func(call, _ string) error {
			if call == "write" {
				writes++
			}
			return nil
		})
		if err := w.close(); err != nil {
			t.Fatal(err)
		}
		if writes < 3 || writes > 6 {
			t.Errorf("%s: 6 MB are written in %d pieces, want some of 1 to 2 MB", name, writes)
		}
		files.failing(nil)
		w.replays(files.image(true), want)
	}
}
