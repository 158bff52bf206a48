//go:build !race

package persistence_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"testing"

	"celld/internal/celldtest"
	"celld/store"
)

// turns runs a Disk's background work one step at a time, at the test's word.
type turns struct {
	asked chan func() (more bool)
	step  func() (more bool)
}

// next runs one step, and reports whether there was one before w has settled.
func (q *turns) next(w *world) bool {
	for q.step == nil {
		select {
		case q.step = <-q.asked:
		default:
			if st := w.m.Status(); !st.Rewriting && !st.Saving {
				return false
			}
			runtime.Gosched()
		}
	}
	if !q.step() {
		q.step = nil
	}
	return true
}

// celld is killed at any moment while its files are rewritten or a snapshot is taken: the next start finds all that was committed.
// That includes keys that come, go, are renamed and taken from while the table grows and is read in steps, and keys that nobody
// touches.
func TestKilledWhileFilesAreWritten(t *testing.T) {
	t.Parallel()
	seeds := uint64(1)
	if celldtest.Thorough {
		seeds = 3
	}
	for seed := range seeds {
		rnd := rand.New(rand.NewPCG(seed, 27))
		w, files := inMemory(t, always)
		work := &turns{asked: make(chan func() (more bool), 1)}
		w.background = func(step func() (more bool)) { work.asked <- step }
		w.mustOpen()
		key := func(n int) string { return fmt.Sprint("key:", rnd.IntN(n)) }
		change := func() {
			switch k := key(1200); rnd.IntN(12) {
			case 0:
				w.store.Delete([]byte(k), w.now)
			case 1:
				w.store.Rename([]byte(k), []byte(key(1200)), store.Access{NowNS: w.now})
			case 2, 3, 4:
				w.put("tat:"+k, store.Value{TAT: uint64(t0 + 90*second)})
			default:
				w.take(k, 1, fileLimits[len(k)*7%len(fileLimits)])
			}
		}
		replayed := func() map[string]string {
			next := &world{t: t, dir: w.dir, now: w.now, set: w.set, files: files.image(false)}
			next.mustOpen()
			return next.texts()
		}
		for round := range 4 {
			for range 100 + rnd.IntN(300) {
				change()
			}
			begin := w.m.Rewrite
			if round%4 == 3 {
				begin = func() error { return w.m.BackgroundSave(false) }
			}
			if err := begin(); err != nil {
				t.Fatal(err)
			}
			for more := true; more; {
				more = work.next(w)
				for range rnd.IntN(40) {
					change()
				}
				if err := w.commit(); err != nil {
					t.Fatal(err)
				}
				if got, want := replayed(), w.texts(); !maps.Equal(got, want) {
					for name, text := range want {
						if got[name] != text {
							t.Errorf("%s is %q, want %q", name, got[name], text)
						}
					}
					t.Fatalf("seed %d, round %d: %d keys and settings, want %d", seed, round, len(got), len(want))
				}
			}
			if st := w.m.Status(); st.RewriteErr != nil || st.SaveErr != nil {
				t.Fatalf("%+v", st)
			}
		}
		if st := w.m.Status(); st.Rewrites != 3 || st.Saves != 1 {
			t.Errorf("%+v", st)
		}
	}
}
