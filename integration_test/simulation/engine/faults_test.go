package engine

import (
	"errors"
	"testing"
	"time"

	"celld/internal/celldtest"
	"celld/internal/enginetest"
	"celld/store"
)

func TestPause(t *testing.T) {
	faulty(t, enginetest.Options{}, func(t *testing.T, e *enginetest.Engine, u *user) {
		n := e.Nodes()[0]
		u.leaves("k", 99)
		celldtest.Pass(100 * time.Millisecond) // what celld asks at its start is answered, or the call would wait behind it, unsent
		n.Pause()
		u.fails("k", "has not answered in time", true)
		celldtest.Pass(time.Second)
		began := time.Now()
		u.fails("k", "has not answered in time", false)
		if d := time.Since(began); d > 0 {
			t.Errorf("a call waited %v for an engine that is known to be away", d)
		}
		n.Resume()
		if left := u.recovers("k", 3*time.Second); left != 98 && left != 97 { // the call that was sent may count
			t.Errorf("%d left", left)
		}
	})
}

func TestKill(t *testing.T) {
	for _, test := range []struct {
		files enginetest.Fsync
		want  int64
	}{{enginetest.NoFiles, 99}, {enginetest.EachWrite, 97}, {enginetest.EachSecond, 98}} {
		faulty(t, enginetest.Options{Files: test.files}, func(t *testing.T, e *enginetest.Engine, u *user) {
			n := e.Nodes()[0]
			u.leaves("k", 99)
			celldtest.Pass(2 * time.Second)
			u.leaves("k", 98)
			n.Kill()
			if e.Listens(n.Addr) {
				t.Error("it listens")
			}
			if left, err := u.take("k"); err == nil {
				t.Errorf("%d left by a node that is dead", left)
			}
			celldtest.Pass(2 * time.Second)
			u.fails("k", "cannot be reached", false)
			if u.Away() == nil {
				t.Error("it is not away")
			}
			n.Start()
			if left := u.recovers("k", 3*time.Second); left != test.want {
				t.Errorf("with files %d: %d left, want %d", test.files, left, test.want)
			}
		})
	}
}

// What a node answers in place of a decision.
func TestRefusals(t *testing.T) {
	for cause, fault := range map[string]func(*enginetest.Node, bool){
		"read-only replica": (*enginetest.Node).ReadOnly, "loading": (*enginetest.Node).Loading,
		"busy with a script": (*enginetest.Node).Busy,
	} {
		faulty(t, enginetest.Options{}, func(t *testing.T, e *enginetest.Engine, u *user) {
			u.leaves("k", 99)
			fault(e.Nodes()[0], true)
			u.fails("k", cause, false)
			celldtest.Pass(2 * time.Second)
			if u.Away() == nil {
				t.Errorf("%s: it is not away", cause)
			}
			fault(e.Nodes()[0], false)
			if left := u.recovers("k", 3*time.Second); left != 98 {
				t.Errorf("%s: %d left", cause, left)
			}
		})
	}
}

func TestMemory(t *testing.T) {
	faulty(t, enginetest.Options{}, func(t *testing.T, e *enginetest.Engine, u *user) {
		u.leaves("k", 99)
		e.Nodes()[0].OOM(true)
		if _, err := u.take("k"); !errors.Is(err, store.ErrFull) {
			t.Error(err)
		}
		e.Nodes()[0].OOM(false)
		u.leaves("k", 98)
	})
	keys := func(u *user, more int) (err error) {
		for i := range more {
			if _, failed := u.take(string(rune('a' + i))); failed != nil {
				err = failed
			}
		}
		return err
	}
	faulty(t, enginetest.Options{MaxMemory: 2000}, func(t *testing.T, e *enginetest.Engine, u *user) {
		if err := keys(u, 10); err != nil {
			t.Error(err)
		}
		if err := keys(u, 100); !errors.Is(err, store.ErrFull) {
			t.Error(err)
		}
	})
	faulty(t, enginetest.Options{MaxMemory: 2000, Evicts: true}, func(t *testing.T, e *enginetest.Engine, u *user) {
		if err := keys(u, 100); err != nil {
			t.Error(err)
		}
	})
}

func TestKeysAndScriptsGo(t *testing.T) {
	faulty(t, enginetest.Options{}, func(t *testing.T, e *enginetest.Engine, u *user) {
		n := e.Nodes()[0]
		u.leaves("k", 99)
		u.leaves("k", 98)
		n.FlushScripts()
		u.leaves("k", 97)
		n.Evict(1000)
		u.leaves("k", 99)
		n.Flush()
		u.leaves("k", 99)
	})
}

func TestClock(t *testing.T) {
	faulty(t, enginetest.Options{}, func(t *testing.T, e *enginetest.Engine, u *user) {
		for want := int64(99); want >= 90; want-- {
			u.leaves("k", want)
		}
		e.Nodes()[0].SetClock(5000 * time.Second)
		celldtest.Pass(2 * time.Second) // as long as an answer may bound the clock
		u.leaves("k", 94)
		e.Nodes()[0].SetClock(0)
		celldtest.Pass(2 * time.Second)
		u.leaves("k", 88)
	})
}

func TestDropReplies(t *testing.T) {
	faulty(t, enginetest.Options{}, func(t *testing.T, e *enginetest.Engine, u *user) {
		u.leaves("k", 99)
		e.Nodes()[0].DropReplies(1)
		u.fails("k", "connection to the engine was lost", true)
		if left := u.recovers("k", time.Second); left != 97 {
			t.Errorf("%d left: the call whose reply was lost is to count once", left)
		}
	})
}
