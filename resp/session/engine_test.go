package session

import (
	"testing"

	"celld/resp/session/sessiontest"
	"celld/store/memory"
)

// engineWorld is a world whose keys are in a FakeEngine.
func engineWorld(t testing.TB, later bool, settings ...string) (*world, *sessiontest.Engine) {
	w := newWorld(t, settings...)
	return w, withEngine(w, later)
}

func withEngine(w *world, later bool) *sessiontest.Engine {
	home := memory.New(memory.Options{Shards: 1, Policies: w.Store.Set, Now: func() int64 { return w.Clock() }})
	e := &sessiontest.Engine{Store: home, Now: func() int64 { return w.Clock() }, Later: later}
	w.UseEngine(e)
	return e
}

// answerAll answers until nothing is due, and returns what a peer is sent.
func answerAll(e *sessiontest.Engine, p *peer) string {
	for e.Due() > 0 || p.unserved {
		if e.Due() > 0 {
			e.Answer()
		}
		p.Serve(nil)
	}
	return p.tr.Take()
}

// What others set on the engine changes here while no command or script runs.
func TestEngineChangesAlone(t *testing.T) {
	w, e := engineWorld(t, false)
	end := e.Begin()
	if w.Execution.TryLock() {
		t.Error("scripts run while settings change")
	}
	end()
	if !w.Execution.TryLock() {
		t.Error("scripts cannot run when settings have changed")
	}
}
