package session

import (
	"bytes"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"testing"

	"celld/persistence/dir"
	"celld/resp/command"
	"celld/resp/command/admin"
	"celld/resp/command/spec"
	"celld/resp/config"
	"celld/resp/door"
	"celld/resp/gate"
	"celld/resp/loglimit"
	"celld/resp/metrics"
	"celld/resp/session/sessiontest"
	"celld/resp/stats"
)

// world is a server with a clock that tests turn.
type world struct {
	*Service
	t     testing.TB
	nowNS int64
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
	keys, disk := sessiontest.Keep(sessiontest.Bounds(cfg, func() int64 { return w.Clock() }), cfg, files, clock, log)
	w.Service = New(Parts{Rows: serverRows, Scripts: sessiontest.Scripts, Parts: door.Parts{
		Config: cfg, Store: keys, Log: loglimit.New(log, clock), Clock: clock, Persist: disk, Stats: stats.NewServer(),
	}})
	t.Cleanup(disk.Stop) // a snapshot may still be under way in the folder, which is removed
	return w
}

// serverRows are the rows of CONFIG, and of operators, which a server has.
func serverRows(srv *Service) []*command.Row {
	shown := metrics.New(srv.Sections()...)
	settings := config.Commands{
		Config: srv.Config, Secrets: func(c *command.Call) bool { return c.Connection().Client().User.Load().Rights().MayAll() },
		ResetStat: func(c *command.Call) { c.CountDecisions(); shown.Reset(c.NowNS); srv.ResetCommands() },
	}
	operators := func() admin.Server {
		return admin.Server{Config: srv.Config, Metrics: shown, Heap: &srv.Heap, Table: srv.Store, Life: unending{srv}, Disk: srv.Persist,
			Log: srv.Log.Logger, ClientBytes: srv.Clients.Bytes}
	}
	return append(admin.Rows(operators), &command.Row{Name: "config", Arity: -2, Flags: spec.Loading, Sub: config.Rows(settings)})
}

// unending is a server that does not stop.
type unending struct{ srv *Service }

func (unending) AbortShutdown() bool             { return false }
func (unending) PrepareShutdown(bool, bool) bool { return true }
func (unending) Shutdown(func())                 {}
func (l unending) Busy() bool                    { return l.srv.Gate.Has(gate.Busy) }

func (w *world) sleepMS(ms int64) { w.nowNS += ms * 1e6 }

// peer is one connection of a test.
type peer struct {
	*Session
	t  testing.TB
	tr *sessiontest.Conn
}

func (w *world) connect() *peer {
	w.t.Helper()
	tr := &sessiontest.Conn{}
	s, refusal := w.NewSession(sessiontest.RemoteAddr, sessiontest.LocalAddr)
	if s == nil {
		w.t.Fatalf("refused: %s", refusal)
	}
	s.Open(tr, -1)
	return &peer{s, w.t, tr}
}

// send gives the session bytes as they are, and returns what it answers.
func (p *peer) send(raw string) string {
	p.Serve([]byte(raw))
	// a goroutine wakes it
	for w, aside := p.waits.(*elsewhere); aside && !w.asks; w, aside = p.waits.(*elsewhere) {
		runtime.Gosched() // a sleep would let fake time pass
		p.Serve(nil)
	}
	return p.tr.Take()
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

func TestPipelineIsAnsweredInOrder(t *testing.T) {
	c := newWorld(t).connect()
	got := c.send("PING\r\n" + sessiontest.Frame("ECHO", "a") + "\r\n*0\r\n*-1\r\n" +
		sessiontest.Frame("CL.THROTTLE", "k", "15", "30", "60"))
	if want := "+PONG\r\n$1\r\na\r\n*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLongPipelineIsSentInParts(t *testing.T) {
	w := newWorld(t)
	c := w.connect()
	payload := strings.Repeat("x", 10_000)
	got := c.send(strings.Repeat(sessiontest.Frame("ECHO", payload), 50))
	if want := strings.Repeat("$10000\r\n"+payload+"\r\n", 50); got != want {
		t.Errorf("%d bytes of replies, want %d", len(got), len(want))
	}
}

func TestThrottleRunsOutAndRecovers(t *testing.T) {
	w := newWorld(t)
	c := w.connect()
	c.want("CL.THROTTLE k 1 1 60", "*5\r\n:0\r\n:2\r\n:1\r\n:-1\r\n:60\r\n")
	c.want("CL.THROTTLE k 1 1 60", "*5\r\n:0\r\n:2\r\n:0\r\n:-1\r\n:120\r\n")
	c.want("CL.THROTTLE k 1 1 60", "*5\r\n:1\r\n:2\r\n:0\r\n:60\r\n:120\r\n")
	w.sleepMS(59_999)
	c.want("CL.THROTTLE k 1 1 60", "*5\r\n:1\r\n:2\r\n:0\r\n:1\r\n:61\r\n")
	w.sleepMS(1)
	c.want("CL.THROTTLE k 1 1 60", "*5\r\n:0\r\n:2\r\n:0\r\n:-1\r\n:120\r\n")
	w.sleepMS(120_000)
	c.want("EXISTS k", ":0\r\n")
}

func TestPanicCostsOneConnection(t *testing.T) {
	w := newWorld(t)
	w.Commands.Add(&command.Row{Name: "boom", Arity: 1, Run: onSession(func(*Session, [][]byte) { panic("at the disco") })})
	a, b := w.connect(), w.connect()
	if got := a.send("BOOM\r\nPING\r\n"); got != "-"+door.ErrInternal+"\r\n" || !a.tr.Closed {
		t.Errorf("answer %q, closed %v", got, a.tr.Closed)
	}
	b.want("PING", "+PONG\r\n")
	b.want("SET k 5", "+OK\r\n") // nothing is left locked
	if n := w.Stats.Panics.Load(); n != 1 {
		t.Errorf("%d panics counted", n)
	}
	for _, part := range []string{"at the disco", "session_test.go", "command=boom"} {
		if !strings.Contains(w.log.String(), part) {
			t.Errorf("%q is not in the log: %s", part, w.log)
		}
	}
}

func TestPanicInsideExecLeavesTheWorldFree(t *testing.T) {
	w := newWorld(t)
	w.Commands.Add(&command.Row{Name: "boom", Arity: 1, Run: onSession(func(*Session, [][]byte) { panic("inside") })})
	a, b := w.connect(), w.connect()
	a.send("MULTI\r\nBOOM\r\nEXEC\r\n")
	b.send("MULTI\r\nPING\r\n")
	b.want("EXEC", "*1\r\n+PONG\r\n")
}

func TestClosedSessionRunsNothingMore(t *testing.T) {
	w := newWorld(t)
	c := w.connect()
	c.Closed()
	if got := c.send("SET k 5\r\n"); got != "" {
		t.Errorf("answered %q", got)
	}
	if n := w.Clients.Count(); n != 0 {
		t.Errorf("%d clients", n)
	}
}

func TestOutputLimit(t *testing.T) {
	w := newWorld(t, "client-output-buffer-limit", "128kb")
	c := w.connect()
	c.tr.Pending = 128<<10 + 1
	c.send("PING\r\n")
	if !c.tr.Closed || w.Stats.OutputLimitCloses.Load() != 1 {
		t.Error("a peer that does not read stays")
	}
}

func TestQueryBufferLimit(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{
		"an unfinished argument": "*2\r\n$4\r\nECHO\r\n$1000000\r\n" + strings.Repeat("x", 200_000),
		"many arguments":         "*1000000\r\n" + strings.Repeat("$0\r\n\r\n", 30_000),
		"a transaction":          "MULTI\r\n" + strings.Repeat("PING\r\n", 2_000),
		"watched keys":           strings.Repeat("WATCH key\r\n", 600),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "client-query-buffer-limit", "128kb", "proto-max-bulk-len", "1mb")
			c := w.connect()
			for len(raw) > 0 && !c.tr.Closed {
				n := min(len(raw), 16<<10)
				c.Serve([]byte(raw[:n]))
				raw = raw[n:]
			}
			if !c.tr.Closed || w.Stats.QueryLimitCloses.Load() != 1 {
				t.Errorf("closed %v, counted %d", c.tr.Closed, w.Stats.QueryLimitCloses.Load())
			}
		})
	}
}

// A pipeline of slow commands gives its loop back, and goes on when its turn comes.
func TestSlowPipelineYields(t *testing.T) {
	w := newWorld(t)
	w.Commands.Add(&command.Row{Name: "slow", Arity: 1, Run: onSession(func(s *Session, _ [][]byte) { w.sleepMS(4); s.call.OK() })})
	c := w.connect()
	c.Serve([]byte(strings.Repeat("SLOW\r\n", 6)))
	answered := strings.Count(c.tr.Take(), "+OK")
	if answered != 2 || !c.unserved {
		t.Errorf("%d answered, unserved %v", answered, c.unserved)
	}
	for c.unserved {
		c.Serve(nil)
		answered += strings.Count(c.tr.Take(), "+OK")
	}
	if answered != 6 {
		t.Errorf("%d of 6 answered", answered)
	}
}

// Whole commands that wait for their turn are not an unfinished one.
func TestWholeCommandsDoNotCount(t *testing.T) {
	w := newWorld(t, "client-query-buffer-limit", "128kb")
	w.Commands.Add(&command.Row{Name: "slow", Arity: 1, Run: onSession(func(s *Session, _ [][]byte) { w.sleepMS(6); s.call.OK() })})
	c := w.connect()
	c.Serve([]byte("SLOW\r\n" + strings.Repeat(sessiontest.Frame("ECHO", strings.Repeat("x", 50_000)), 3)))
	if !c.unserved {
		t.Fatal("nothing waits")
	}
	for c.unserved && !c.tr.Closed {
		c.Serve(nil)
	}
	if got := strings.Count(c.tr.Take(), "$50000\r\n"); got != 3 || c.tr.Closed {
		t.Errorf("%d of 3 answered, closed %v", got, c.tr.Closed)
	}
}

func TestIdleConnectionHoldsNoBuffers(t *testing.T) {
	c := newWorld(t).connect()
	c.send(sessiontest.Frame("ECHO", strings.Repeat("x", 50_000)))
	if c.in != nil || c.call != nil {
		t.Errorf("holds %d bytes of input, a call %v", cap(c.in), c.call != nil)
	}
	c.Serve([]byte("*2\r\n$4\r\nEC"))
	if got := c.send("HO\r\n$2\r\nhi\r\n"); got != "$2\r\nhi\r\n" || c.in != nil {
		t.Errorf("got %q, holds %d bytes", got, cap(c.in))
	}
}

func TestMaxClients(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "maxclients", "1")
	c := w.connect()
	s, refusal := w.NewSession(sessiontest.RemoteAddr, sessiontest.LocalAddr)
	if s != nil || refusal != "-ERR max number of clients reached\r\n" {
		t.Errorf("session %v, refusal %q", s, refusal)
	}
	c.Closed()
	w.connect()
}

func TestProtectedMode(t *testing.T) {
	t.Parallel()
	stranger := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}
	cases := []struct {
		settings []string
		served   bool
	}{
		{nil, false},
		{[]string{"protected-mode", "no"}, true},
		{[]string{"requirepass", "x"}, true},
	}
	for _, c := range cases {
		w := newWorld(t, c.settings...)
		s, refusal := w.NewSession(stranger, sessiontest.LocalAddr)
		if served := s != nil; served != c.served || !served && !strings.HasPrefix(refusal, "-DENIED ") {
			t.Errorf("%v: served %v, refusal %q", c.settings, served, refusal)
		}
	}
	for _, remote := range []net.Addr{&net.TCPAddr{IP: net.IPv6loopback}, &net.TCPAddr{IP: net.ParseIP("127.9.9.9")}, &net.UnixAddr{}} {
		local := net.Addr(sessiontest.LocalAddr)
		if _, ok := remote.(*net.UnixAddr); ok {
			local = &net.UnixAddr{Name: "/run/celld.sock", Net: "unix"}
		}
		if s, _ := newWorld(t).NewSession(remote, local); s == nil {
			t.Errorf("%v is refused", remote)
		}
	}
}

// onSession is a handler that still reaches its session.
func onSession(run func(*Session, [][]byte)) func(*command.Call) {
	return func(c *command.Call) { run(sessionOf(c), c.Args) }
}
