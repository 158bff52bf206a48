package resp

import (
	"bytes"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"celld/persistence/dir"
	"celld/resp/client"
	"celld/resp/session"
	"celld/resp/session/sessiontest"
	"celld/store/memory"
)

// world is a server with a clock that tests turn.
type world struct {
	*Server
	t     testing.TB
	nowNS int64
	ahead int64 // of it the wall clock is
	log   *bytes.Buffer
}

func newWorld(t testing.TB, settings ...string) *world {
	t.Helper()
	return newWorldIn(t, t.TempDir(), settings...)
}

// newWorldIn is newWorld with its files in a directory.
func newWorldIn(t testing.TB, dir string, settings ...string) *world {
	t.Helper()
	return newWorldOn(t, nil, dir, settings...)
}

// newWorldOn is newWorldIn on a file system, with an append-only file that replies wait for; nil is no file.
func newWorldOn(t testing.TB, files dir.FileSystem, dir string, settings ...string) *world {
	t.Helper()
	w := &world{t: t, nowNS: sessiontest.StartNS, log: &bytes.Buffer{}}
	cfg := sessiontest.Settings(t, append([]string{"dir", dir}, settings...)...)
	clock, log := func() int64 { return w.nowNS }, slog.New(slog.NewTextHandler(w.log, nil))
	keys, disk := sessiontest.Keep(sessiontest.Bounds(cfg, func() int64 { return w.sessions.Clock() }), cfg, files, clock, log)
	w.Server = NewServer(Options{
		Config: cfg, Store: keys, Log: log, Clock: clock, Version: "test", Persistence: disk, Scripts: sessiontest.Scripts,
		ReadClocks: func() (int64, int64, bool) { return w.nowNS + w.ahead, w.nowNS, true },
	})
	t.Cleanup(disk.Stop) // a snapshot may still be under way in the folder, which is removed
	return w
}

func (w *world) sleepMS(ms int64) { w.nowNS += ms * 1e6 }

// setWall sets the wall clock, which the server then notices.
func (w *world) setWall(by time.Duration) {
	w.ahead += int64(by)
	w.followWall()
}

// engineWorld is a world whose keys are in an engine that answers at once, or when a test says so.
func engineWorld(t testing.TB, later bool, settings ...string) (*world, *sessiontest.Engine) {
	w := newWorld(t, settings...)
	now := func() int64 { return w.sessions.Clock() }
	e := &sessiontest.Engine{Store: memory.New(memory.Options{Shards: 1, Policies: w.sessions.Store.Set, Now: now}), Now: now, Later: later}
	w.sessions.UseEngine(e)
	return w, e
}

// peer is one connection of a test.
type peer struct {
	*session.Session
	t  testing.TB
	tr *sessiontest.Conn
}

func (w *world) connect() *peer {
	w.t.Helper()
	tr := &sessiontest.Conn{}
	s, refusal := w.sessions.NewSession(sessiontest.RemoteAddr, sessiontest.LocalAddr)
	if s == nil {
		w.t.Fatalf("refused: %s", refusal)
	}
	s.Open(tr, -1)
	return &peer{s, w.t, tr}
}

// send gives the session bytes as they are, and returns its answer. Where a goroutine does what takes long, it waits for that.
func (p *peer) send(raw string) string {
	for more := p.serve([]byte(raw)); more || p.tr.HasMore(); more = p.serve(nil) {
		runtime.Gosched() // a sleep would let fake time pass
	}
	return p.tr.Take()
}

// serve is a turn of the session.
func (p *peer) serve(data []byte) (more bool) {
	p.tr.Turn()
	return p.Serve(data)
}

// do sends one command and returns its reply.
func (p *peer) do(words ...string) string { return p.send(sessiontest.Frame(words...)) }

// want fails the test when a command, written as blank-separated words, is not answered so.
func (p *peer) want(command, reply string) {
	p.t.Helper()
	if got := p.do(strings.Fields(command)...); got != reply {
		p.t.Errorf("%s\n got %q\nwant %q", command, got, reply)
	}
}

// look looks as the cron does, and serves the connection if that wakes it.
func look(w *world, p *peer) {
	wakes := p.tr.Wakes
	if w.sessions.WakeIdle(); p.tr.Wakes > wakes {
		p.Serve(nil)
	}
}

// clientOf is what others see of a peer.
func clientOf(w *world, p *peer) *client.Client {
	for _, c := range w.sessions.Clients.All() {
		if c.Conn == p.tr {
			return c
		}
	}
	w.t.Fatal("no such client")
	return nil
}
