package persistence_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"celld/cell"
	"celld/persistence"
	"celld/store"
)

// policies are when the file is forced to the disk.
var policies = map[string]func(*persistence.Options){
	"always": always, "everysec": appendOnly, "no": func(o *persistence.Options) { o.AppendOnly, o.Fsync = true, persistence.Never },
}

// harms are what somebody else can do to the append-only file.
var harms = map[string]func(w *world) error{
	"removed":      func(w *world) error { return os.Remove(w.path("appendonly.aof")) },
	"moved away":   func(w *world) error { return os.Rename(w.path("appendonly.aof"), w.path("elsewhere")) },
	"made anew":    func(w *world) error { os.Remove(w.path("appendonly.aof")); w.write("appendonly.aof", ""); return nil },
	"renamed over": func(w *world) error { w.write("new", "x"); return os.Rename(w.path("new"), w.path("appendonly.aof")) },
	"a directory": func(w *world) error {
		os.Remove(w.path("appendonly.aof"))
		return os.Symlink("nowhere", w.path("appendonly.aof"))
	},
	"emptied":     func(w *world) error { return os.Truncate(w.path("appendonly.aof"), 0) },
	"cut":         func(w *world) error { return os.Truncate(w.path("appendonly.aof"), 20) },
	"made longer": func(w *world) error { return os.Truncate(w.path("appendonly.aof"), 1<<16) },
	"all removed": func(w *world) error {
		return errors.Join(os.Remove(w.path("appendonly.aof")), os.Remove(w.path(lockName)))
	},
	"the directory made anew": func(w *world) error { return errors.Join(os.RemoveAll(w.dir), os.Mkdir(w.dir, 0o755)) },
}

// Harm to the file is noticed within a second and repaired, and no decision in between is lost.
func TestAFileThatIsHarmed(t *testing.T) {
	for policy, set := range policies {
		for name, harm := range harms {
			w := newWorld(t, set).mustOpen()
			w.throttle("before")
			w.mustWrite()
			if err := harm(w); err != nil {
				t.Fatal(err)
			}
			w.throttle("between")
			if w.m.Synchronous() {
				if err := w.commit(); err != nil {
					t.Errorf("%s, %s: %v", policy, name, err)
				}
			}
			w.mustWrite()
			w.throttle("after")
			w.mustWrite()
			if st := w.m.Status(); st.AOFErr != nil || w.m.Refusal() != nil || st.Rewrites != 1 {
				t.Errorf("%s, %s: not mended: %+v", policy, name, st)
			}
			for _, line := range []string{"somebody else has changed", "in order again"} {
				if n := strings.Count(w.log.String(), line); n != 1 {
					t.Errorf("%s, %s: %q is told %d times: %s", policy, name, line, n, w.log)
				}
			}
			w.crashed().expect(w.states())
		}
	}
}

// At the end, no second is left to notice it.
func TestAFileThatIsHarmedAtTheEnd(t *testing.T) {
	for policy, set := range policies {
		for name, harm := range harms {
			w := newWorld(t, set).mustOpen()
			w.throttle("before")
			w.mustWrite()
			if err := harm(w); err != nil {
				t.Fatal(err)
			}
			w.throttle("between")
			if w.m.Synchronous() {
				_ = w.commit()
			}
			want := w.states()
			if w.reopen().expect(want); t.Failed() {
				t.Fatal(policy, name)
			}
		}
	}
}

// A directory that is gone is not created anew. When it is back, so is all that was decided.
func TestADirectoryThatIsRemoved(t *testing.T) {
	for policy, set := range policies {
		w := newWorld(t, set).mustOpen()
		w.throttle("before")
		w.mustWrite()
		if err := os.RemoveAll(w.dir); err != nil {
			t.Fatal(err)
		}
		w.throttle("between")
		w.mustWrite()
		for range 20 {
			w.tick(second)
			w.settle()
		}
		err := w.m.Status().AOFErr
		if err == nil || !strings.Contains(err.Error(), w.dir) || (w.m.Refusal() != nil) != (policy == "always") {
			t.Errorf("%s: %v, %v", policy, err, w.m.Refusal())
		}
		if _, err := os.Stat(w.dir); err == nil {
			t.Errorf("%s: the directory is there", policy)
		}
		if n := strings.Count(w.log.String(), "ERROR"); n != 1 {
			t.Errorf("%s: %d errors are told: %s", policy, n, w.log)
		}
		if err := os.Mkdir(w.dir, 0o755); err != nil {
			t.Fatal(err)
		}
		w.tick(second)
		w.settle()
		w.throttle("after")
		w.mustWrite()
		if err := w.m.Status().AOFErr; err != nil || w.m.Refusal() != nil {
			t.Errorf("%s: not mended: %v, %v", policy, err, w.m.Refusal())
		}
		w.crashed().expect(w.states())
	}
}

// A directory that was away for a while is as it was, without a rewrite.
func TestADirectoryThatComesBack(t *testing.T) {
	w := newWorld(t, always).mustOpen()
	away := w.dir + "-away"
	if err := os.Rename(w.dir, away); err != nil {
		t.Fatal(err)
	}
	w.throttle("between")
	w.mustWrite()
	if w.m.Refusal() == nil {
		t.Error("not noticed")
	}
	if err := os.Rename(away, w.dir); err != nil {
		t.Fatal(err)
	}
	w.tick(second)
	if err := w.m.Refusal(); err != nil || w.m.Status().Rewrites != 0 {
		t.Errorf("%v, %+v", err, w.m.Status())
	}
	w.crashed().expect(w.states())
}

// Until it is repaired, as there is no room for a rewrite, decisions of always are refused.
func TestAHarmThatCannotBeMendedYet(t *testing.T) {
	w, files := inMemory(t, always)
	w.mustOpen()
	w.throttle("a")
	w.mustWrite()
	if err := files.Remove(w.path("appendonly.aof")); err != nil {
		t.Fatal(err)
	}
	files.failing(failOn("create"))
	for range 3 {
		w.tick(second)
		w.settle()
		if err := w.commit(); err != nil { // of a decision that was under way
			t.Error(err)
		}
		if w.m.Refusal() == nil || w.m.Status().AOFErr == nil {
			t.Error("not refused")
		}
	}
	files.failing(nil)
	w.tick(10 * second)
	w.settle()
	if w.m.Refusal() != nil {
		t.Error(w.m.Refusal())
	}
	w.replays(files.image(true), w.states())
}

// A file that is emptied to make room on a full disk gets no zeros in place of its content.
func TestAFullDiskWhoseFileIsEmptied(t *testing.T) {
	w, files := inMemory(t, always)
	w.mustOpen()
	w.throttle("a")
	w.mustWrite()
	files.failing(failOn("write", "truncate"))
	w.throttle("b")
	if w.commit() == nil {
		t.Fatal("the disk is full")
	}
	files.shorten(w.path("appendonly.aof"), 0)
	files.failing(nil)
	w.throttle("c")
	if err := w.commit(); err == nil { // within the second, it must not be made as long as it was
		t.Error("it is written behind what is gone")
	}
	w.tick(second)
	w.settle()
	w.throttle("c")
	w.mustWrite()
	if w.m.Refusal() != nil {
		t.Error(w.m.Refusal())
	}
	w.replays(files.image(true), w.states())
}

// A rewrite that copies later appends fails if somebody has cut these off, and the next one holds all.
func TestARewriteOfAFileThatIsCut(t *testing.T) {
	for _, regrown := range []bool{false, true} {
		w, files := inMemory(t, always)
		w.mustOpen()
		w.throttle("a")
		w.mustWrite()
		files.during("write", func() {
			w.put("during", store.Value{TAT: uint64(t0 + 90*second)})
			_ = w.commit()
			files.shorten(w.path("appendonly.aof"), 10)
			for range 10 {
				w.throttle("more")
				if regrown {
					_ = w.commit()
				}
			}
		})
		if err := w.m.Rewrite(); err != nil {
			t.Fatal(err)
		}
		w.settle()
		if err := w.m.Status().RewriteErr; err == nil {
			t.Errorf("regrown %v: the rewrite has not failed", regrown)
		}
		w.tick(10 * second)
		w.settle()
		w.mustWrite()
		w.replays(files.image(true), w.states())
	}
}

// A snapshot that somebody removes is taken anew, even if nothing has changed.
func TestASnapshotThatIsRemoved(t *testing.T) {
	w := newWorld(t, snapshots).mustOpen()
	for range 5 {
		w.tick(second)
	}
	if w.settle(); w.read("dump.rdb") != "" {
		t.Fatal("there was nothing to save")
	}
	w.put("a", store.Value{TAT: uint64(t0 + 9000*second)})
	if err := w.m.Save(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // once taken here, and once loaded
		if err := os.Remove(w.path("dump.rdb")); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			w.tick(second)
			w.settle()
		}
		if w.read("dump.rdb") == "" || w.m.Status().SaveErr != nil {
			t.Fatalf("%+v", w.m.Status())
		}
		want := w.states()
		w.reopen().expect(want)
	}
}

// Many connections decide while somebody removes and cuts the file over and over. In the end it holds what the store holds.
func TestHarmsUnderFire(t *testing.T) {
	w, files := inMemory(t, always)
	w.mustOpen()
	limit, err := cell.NewBucket(1000, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	var connections sync.WaitGroup
	for c := range 4 {
		connections.Go(func() {
			for i := range 500 {
				w.m.Begin()
				if w.m.Refusal() == nil {
					key := fmt.Appendf(nil, "key %d", (c+1)*i%97)
					if _, err := w.store.Throttle(key, limit, int64(1+i%5), store.Access{NowNS: w.clock.Load()}); err != nil {
						t.Error(err)
					}
				}
				_ = w.m.Commit()
				switch {
				case i%50 == 10*c:
					_ = files.Remove(w.path("appendonly.aof"))
				case i%50 == 10*c+5:
					files.cutAt(w.path("appendonly.aof"), i)
				}
			}
		})
	}
	w.rewriteWhile(&connections)
	w.tick(10 * second)
	w.settle()
	w.tick(10 * second)
	w.settle()
	w.mustWrite()
	if st := w.m.Status(); st.AOFErr != nil || st.Rewrites == 0 {
		t.Errorf("%+v", st)
	}
	w.replays(files.image(true), w.states())
}
