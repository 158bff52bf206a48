package resp

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"celld/resp/door"
	"celld/resp/gate"
	"celld/resp/metrics"
	"celld/resp/session/sessiontest"
	"celld/store"
)

// ready holds Ready to an error that has these words, or to none.
func (w *world) ready(t *testing.T, want string) {
	t.Helper()
	switch err := w.Ready(); {
	case (err == nil) != (want == ""), err != nil && !strings.Contains(err.Error(), want),
		err != nil && strings.ContainsAny(err.Error(), "\r\n"):
		t.Errorf("%v, want %q", err, want)
	}
}

// A server is ready exactly when calls are decided, whatever its clients must do first.
func TestReady(t *testing.T) {
	w := newWorld(t, "requirepass", "secret", "max-keys", "1", "maxmemory-policy", "noeviction")
	p := w.connect()
	p.want("AUTH secret", "+OK\r\n")
	w.ready(t, "")
	p.want("DBSIZE", ":0\r\n")
	p.do("CL.TAKE", "k", "1/1h")
	w.ready(t, "") // it is full
	p.want("DEL k", ":1\r\n")
	p.want("SET celld:readyz 1800000000000000000", "+OK\r\n")
	w.ready(t, "")
	w.sessions.Gate.Set(gate.Loading, true)
	w.ready(t, "LOADING")
	_, err := w.Door.TakeOne(t.Context(), door.Caller{Trusted: true}, door.Ask{Key: "k", Limits: []string{"@not-read-yet"}})
	if err == nil || !strings.HasPrefix(err.Error(), "LOADING ") {
		t.Errorf("a check of a policy that may be in the files: %v", err)
	}
	w.sessions.Gate.Set(gate.Loading, false)
	w.sessions.Gate.Set(gate.Busy, true)
	w.ready(t, "BUSY")
	if !slices.ContainsFunc(w.Metrics(), func(m metrics.Metric) bool { return m.Name == "celld_script_busy" && m.Value == true }) {
		t.Error("the metrics do not say so")
	}
	if troubles := w.Overview().Troubles; len(troubles) != 1 || !strings.Contains(troubles[0], "script") {
		t.Errorf("the live page says %q", troubles)
	}
	w.sessions.Gate.Set(gate.Busy, false)
	w.life.leaving.Store(true)
	w.ready(t, "the server is stopping")
	if got := p.do("INFO", "server"); !strings.Contains(got, "\r\nnot_ready_because:the server is stopping\r\n") {
		t.Errorf("INFO says %q", got)
	}
	w.life.leaving.Store(false)
	w.ready(t, "")
	if got := p.do("INFO", "server"); strings.Contains(got, "not_ready_because") {
		t.Errorf("INFO says %q", got)
	}
	if got := p.do("INFO", "clients"); !strings.Contains(got, "connected_clients:1\r\n") {
		t.Errorf("the inside counts as a client: %q", got)
	}
}

// A server is ready while its Cluster serves a part of the keys, and the live page says what it lacks. Another engine that does not decide
// on this call decides on none.
func TestReadyWithAPartOfACluster(t *testing.T) {
	w, e := engineWorld(t, false)
	e.Known = store.Facts{Kind: "cluster", SlotsKnown: true, SlotsWithoutMaster: 5461}
	w.sessions.UseEngine(limited{e, refuses{e.Store}})
	w.ready(t, "")
	if troubles := w.Overview().Troubles; len(troubles) != 1 || troubles[0] != "5461 slots of the engine's Cluster have no master" {
		t.Errorf("the live page says %q", troubles)
	}
	e.Known.Away = errors.New("the Cluster is down")
	w.ready(t, "the Cluster is down")
	e.Known = store.Facts{Kind: "standalone"}
	w.ready(t, "STOREDOWN")
	if troubles := w.Overview().Troubles; len(troubles) != 0 {
		t.Errorf("the live page says %q", troubles)
	}
}

// limited is an engine whose limits another decides on.
type limited struct {
	*sessiontest.Engine
	store.Limiter
}

// refuses decides on nothing.
type refuses struct{ store.Limiter }

func (refuses) TakeBatch(reqs []store.TakeRequest, _ store.Access, _ store.Waker) bool {
	reqs[0].Err = &store.DownError{Cause: "a test says so"}
	return true
}

// Where replies wait for the disk, and it refuses, nobody is ready.
func TestReadyNeedsTheDisk(t *testing.T) {
	disk := &sessiontest.Disk{}
	w := newWorldOn(t, disk, t.TempDir())
	if err := w.loadAll(nil); err != nil {
		t.Fatal(err)
	}
	w.ready(t, "")
	disk.Full.Store(true)
	take := door.Ask{Key: "k", Limits: []string{"1/1h"}}
	if _, err := w.Door.TakeOne(t.Context(), door.Caller{Trusted: true}, take); err == nil || !strings.HasPrefix(err.Error(), "MISCONF ") {
		t.Errorf("decided without the disk: %v", err)
	}
	w.ready(t, "MISCONF")
	if got := w.connect().do("INFO", "server"); !strings.Contains(got, "\r\nnot_ready_because:MISCONF Errors writing to the AOF file: ") {
		t.Errorf("INFO says %q", got)
	}
}

// Who was told of the end is waited for.
func TestOnStop(t *testing.T) {
	w := newWorld(t)
	ended := false
	w.OnStop(func(ctx context.Context) {
		_, bounded := ctx.Deadline()
		ended = bounded
	})
	w.stopOthers()()
	if !ended {
		t.Error("it did not wait, or may wait for ever")
	}
}

// While a write waits for a slow disk, probes are answered: new connections, those that are there, systemd's and those over HTTP.
func TestProbesOnASlowDisk(t *testing.T) {
	disk := &sessiontest.Disk{}
	carrierTest{files: disk, settings: []string{"io-threads", "1"}}.run(t, func(t *testing.T, srv *Server, addr string) {
		writer, old := sessiontest.Dial(t, addr), sessiontest.Dial(t, addr)
		old.Ask("PING\r\n", "+PONG\r\n")
		disk.Holds(writer, func() {
			syncs := disk.Syncs.Load()
			writer.Send("SET k 1800000000000000000\r\nPING\r\n")
			eventually(t, "write", func() bool { return disk.Syncs.Load() > syncs })
			for range 3 {
				old.Ask("PING\r\n", "+PONG\r\n")
				sessiontest.Dial(t, addr).Ask("PING\r\n", "+PONG\r\n")
				if err := srv.Decides(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
		writer.Ask("", "+OK\r\n+PONG\r\n")
	})
}
