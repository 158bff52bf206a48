package persistence_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"celld/internal/celldtest"
	"celld/persistence"
	"celld/persistence/dir"
	"celld/store"
)

// beside is a world of another process on the same directory, by another of its names.
func (w *world) beside(set func(*persistence.Options)) *world {
	w.t.Helper()
	link := filepath.Join(w.t.TempDir(), "link")
	if err := os.Symlink(w.dir, link); err != nil {
		w.t.Fatal(err)
	}
	other := newWorld(w.t, set)
	other.dir, other.now = link, w.now
	return other
}

func off(*persistence.Options) {}

// waits is for as long as a slow machine takes.
func waits(o *persistence.Options) { appendOnly(o); o.LockWait = time.Minute }

// A directory that another process uses is neither read nor changed.
func TestADirectoryInUse(t *testing.T) {
	for name, sets := range map[string][2]func(*persistence.Options){
		"append-only": {always, appendOnly}, "snapshots": {snapshots, snapshots}, "each its own": {appendOnly, snapshots},
	} {
		w := newWorld(t, sets[0]).mustOpen()
		w.put("a", store.Value{TAT: uint64(t0 + 90*second)})
		w.mustWrite()
		w.write("temp-999999999.rdb", "x")
		other := w.beside(sets[1])
		if err := other.open(); !errors.Is(err, dir.ErrInUse) || !strings.Contains(err.Error(), other.dir) {
			t.Errorf("%s: %v", name, err)
		}
		if w.read("temp-999999999.rdb") != "x" || len(other.states()) != 0 {
			t.Errorf("%s: the directory was used", name)
		}
		want := w.states()
		if err := w.close(); err != nil {
			t.Error(err)
		}
		if other.mustOpen(); name != "each its own" {
			other.expect(want)
		}
		if err := other.close(); err != nil {
			t.Error(err)
		}
	}
}

// A server without files writes none where another process keeps some. It is refused once another process got there first.
func TestADirectoryInUseByChance(t *testing.T) {
	w := newWorld(t, snapshots).mustOpen()
	other := w.beside(off).mustOpen()
	other.put("b", store.Value{TAT: uint64(t0 + 90*second)})
	for name, call := range map[string]func() error{
		"Save": other.m.Save, "BackgroundSave": func() error { return other.m.BackgroundSave(false) }, "Rewrite": other.m.Rewrite,
		"PlanSave": other.m.ScheduleSave, "PlanRewrite": other.m.ScheduleRewrite, "Close": func() error { return other.m.Close(true) },
	} {
		if err := call(); !errors.Is(err, dir.ErrInUse) {
			t.Errorf("%s: %v", name, err)
		}
	}
	st := other.m.Status()
	if !errors.Is(st.SaveErr, dir.ErrInUse) || !errors.Is(st.RewriteErr, dir.ErrInUse) || st.Saving || st.Rewriting {
		t.Errorf("%+v", st)
	}
	if err := w.m.Close(false); err != nil {
		t.Error(err)
	}
	if w.read("dump.rdb")+w.read("appendonly.aof") != "" {
		t.Error("it has written something")
	}
	if err := other.m.Save(); err != nil || other.m.Status().SaveErr != nil {
		t.Errorf("nobody else is there: %v", err)
	}
	if err := w.open(); !errors.Is(err, dir.ErrInUse) {
		t.Errorf("the other has saved there: %v", err)
	}
}

// A start continues as soon as the process before it has ended, with all that it wrote.
func TestADirectoryThatIsWaitedFor(t *testing.T) {
	w := newWorld(t, appendOnly).mustOpen()
	w.throttle("a")
	other := w.beside(waits)
	other.log = &logText{}
	opened := make(chan error)
	log := make(chan *logText, 1)
	set := other.set
	other.set = func(o *persistence.Options) { set(o); log <- other.log }
	go func() { opened <- other.open() }()
	text := <-log
	celldtest.Eventually(t, "it waits", func() bool { return strings.Contains(text.String(), "waiting for another process") })
	w.throttle("b")
	w.handOver(other, opened)
	if n := strings.Count(text.String(), "waiting"); n != 1 {
		t.Errorf("it is told %d times: %s", n, text)
	}
}

// handOver closes w, and expects that the other, whose start waits for the directory, has what w had.
func (w *world) handOver(other *world, opened <-chan error) {
	w.t.Helper()
	want := w.states()
	if err := w.close(); err != nil {
		w.t.Fatal(err)
	}
	if err := <-opened; err != nil {
		w.t.Fatal(err)
	}
	other.expect(want)
}

// What the process before has written meanwhile is loaded as it is: the time of the wait does not look like a clock that was set back.
func TestTimePassesWhileADirectoryIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, files := inMemory(t, appendOnly)
		w.mustOpen()
		other := &world{t: t, now: t0, files: files, set: waits}
		opened := make(chan error, 1)
		go func() { opened <- other.open() }()
		synctest.Wait()
		for range 8 {
			w.tick(second)
			other.pass(second)
			w.throttle("a")
		}
		w.handOver(other, opened)
		if text := other.log.String(); strings.Contains(text, "clock") {
			t.Error(text)
		}
		if err := other.close(); err != nil {
			t.Error(err)
		}
	})
}

// The wait ends when its time is over, and when the server stops.
func TestAWaitThatEnds(t *testing.T) {
	for _, stops := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w, files := inMemory(t, appendOnly)
			w.mustOpen()
			other := &world{t: t, now: t0, files: files, set: func(o *persistence.Options) { appendOnly(o); o.LockWait = 10 * time.Second }}
			began, opened := time.Now(), make(chan error, 1)
			go func() { opened <- other.open() }()
			if stops {
				synctest.Wait()
				other.m.Stop()
			}
			err := <-opened
			took := time.Since(began)
			switch {
			case stops && (!errors.Is(err, persistence.ErrStopping) || took > time.Second):
				t.Errorf("it stops: %v after %v", err, took)
			case !stops && (!errors.Is(err, dir.ErrInUse) || took != 10*time.Second || !strings.Contains(err.Error(), "waited 10s")):
				t.Errorf("%v after %v", err, took)
			}
			if err := w.close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A file system without locks keeps nobody from starting, and is logged.
func TestAFileSystemWithoutLocks(t *testing.T) {
	w, files := inMemory(t, always)
	files.noLocks = true
	if w.mustOpen(); strings.Count(w.log.String(), "cannot be locked") != 1 {
		t.Errorf("%s", w.log)
	}
	w.throttle("a")
	w.mustWrite()
	w.tick(second)
	if strings.Count(w.log.String(), "cannot be locked") != 1 || w.m.Refusal() != nil {
		t.Errorf("%v, %s", w.m.Refusal(), w.log)
	}
	want := w.states()
	w.reopen().expect(want)
}

// A lock whose file is removed is taken anew before others can take it.
func TestALockThatIsRemoved(t *testing.T) {
	w := newWorld(t, always).mustOpen()
	os.Remove(w.path(lockName))
	w.tick(second)
	if err := w.beside(always).open(); !errors.Is(err, dir.ErrInUse) {
		t.Errorf("%v", err)
	}
	if w.m.Refusal() != nil || strings.Contains(w.log.String(), "ERROR") {
		t.Errorf("%v, %s", w.m.Refusal(), w.log)
	}
}

// A rewrite or a snapshot that began before the directory was lost does not replace the file of another process.
func TestADirectoryThatIsLostDuringARewrite(t *testing.T) {
	for name, begin := range map[string]func(w *world) error{
		"rewrite": func(w *world) error { return w.m.Rewrite() }, "snapshot": func(w *world) error { return w.m.BackgroundSave(false) },
	} {
		w, files := inMemory(t, always)
		w.mustOpen()
		w.throttle("a")
		w.mustWrite()
		other := &world{t: t, now: t0, files: files, set: always}
		files.during("write", func() {
			_ = errors.Join(files.Remove(w.path(lockName)), files.Remove(w.path("appendonly.aof")))
			other.mustOpen().throttle("other")
			other.mustWrite()
		})
		if err := begin(w); err != nil {
			t.Fatal(err)
		}
		w.settle()
		if st := w.m.Status(); !errors.Is(errors.Join(st.RewriteErr, st.SaveErr), dir.ErrInUse) || files.text("dump.rdb") != "" {
			t.Errorf("%s: %+v", name, st)
		}
		want := other.states()
		other.reopen().expect(want)
	}
}

// A process that has lost the directory to another writes nothing there until that one has ended.
func TestADirectoryThatIsLost(t *testing.T) {
	for name, set := range map[string]func(*persistence.Options){"always": always, "every second": appendOnly} {
		w := newWorld(t, func(o *persistence.Options) { set(o); snapshots(o) }).mustOpen()
		w.throttle("a")
		w.mustWrite()
		os.Remove(w.path(lockName))
		other := w.beside(always).mustOpen()
		other.throttle("other")
		other.mustWrite()
		text := w.read("appendonly.aof")
		for range 20 {
			w.tick(second)
			w.settle()
		}
		if err := w.m.Status().AOFErr; !errors.Is(err, dir.ErrInUse) || (w.m.Refusal() != nil) != (name == "always") {
			t.Errorf("%s: %v, %v", name, err, w.m.Refusal())
		}
		if n := strings.Count(w.log.String(), "ERROR"); n != 1 {
			t.Errorf("%s: %d errors are told: %s", name, n, w.log)
		}
		for call, f := range map[string]func() error{"Save": w.m.Save, "Rewrite": w.m.Rewrite} {
			if err := f(); !errors.Is(err, dir.ErrInUse) {
				t.Errorf("%s: %s: %v", name, call, err)
			}
		}
		if w.read("appendonly.aof") != text || w.read("dump.rdb") != "" {
			t.Errorf("%s: it has written into the files of the other", name)
		}
		if err := other.close(); err != nil {
			t.Error(err)
		}
		w.tick(10 * second) // past the pause after a failed rewrite
		w.settle()
		if err := w.m.Status().AOFErr; err != nil || w.m.Refusal() != nil {
			t.Errorf("%s: the other has ended: %v, %v", name, err, w.m.Refusal())
		}
		w.throttle("b")
		w.mustWrite()
		w.crashed().expect(w.states())
	}
}

// If nobody can tell whether the lock is still in place, nothing is written.
func TestALockThatCannotBeLookedFor(t *testing.T) {
	w, files := inMemory(t, snapshots)
	w.mustOpen()
	files.failing(func(call, _ string) error {
		if call == "names" {
			return syscall.EIO
		}
		return nil
	})
	if err := w.m.Save(); !errors.Is(err, syscall.EIO) || len(files.list()) != 0 {
		t.Errorf("%v, %q", err, files.list())
	}
}
