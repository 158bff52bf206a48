package transport

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"celld/internal/celldtest"
)

// fakeSession answers each line by itself, or as its server's handle does.
type fakeSession struct {
	server *fakeServer
	conn   Conn
	in     []byte
	out    []byte
	ending bool
	rest   bool   // of this Serve: another is to go on
	held   int    // the most bytes that waited here
	round  []byte // sent and not confirmed, where replies wait for the disk
	wrote  bool   // since the last Confirm
	unsent atomic.Int64
	opened atomic.Bool
	closed atomic.Int64

	waits    bool
	leaves   bool
	answer   string
	finished atomic.Bool
}

// Wrote reports whether something was asked since the last Confirm but "look".
func (s *fakeSession) Wrote() bool { return s.wrote }

func (s *fakeSession) Overdue() bool  { return s.server.overdue.Load() }
func (s *fakeSession) reply(p string) { s.out = append(s.out, p...) }

func (s *fakeSession) Open(c Conn, _ int) {
	s.conn = c
	s.opened.Store(true)
	if s.server.onOpen != nil {
		s.server.onOpen()
	}
}

func (s *fakeSession) Identify(*x509.Certificate) {
	s.server.identified.Add(1)
	if s.server.onIdentify != nil {
		s.server.onIdentify(s)
	}
	s.mustBeOpen()
}

func (s *fakeSession) Unsent(n int) {
	s.mustBeOpen()
	s.unsent.Store(int64(n))
}

func (s *fakeSession) mustBeOpen() {
	if s.closed.Load() > 0 {
		s.server.faults.Add(1)
	}
}

func (s *fakeSession) Closed() {
	s.closed.Add(1)
	s.server.left.Add(1)
}

func (s *fakeSession) Serve(data []byte) (more bool) {
	if s.waits && len(data) > 0 {
		s.server.faults.Add(1) // nothing is to be read
	}
	s.in, s.rest = append(s.in, data...), false
	s.held = max(s.held, len(s.in))
	if s.waits && !s.finished.Load() {
		s.conn.Pause(s.leaves)
		return false
	}
	if s.waits {
		s.waits = false
		s.reply(s.answer)
	}
	if data == nil && s.server.onWake != nil {
		s.server.onWake(s)
	}
	for !s.ending && !s.rest && !s.waits {
		line, rest, found := bytes.Cut(s.in, []byte("\n"))
		if !found {
			break
		}
		s.in = rest
		s.wrote = s.wrote || string(line) != "look"
		if s.server.handle == nil || !s.server.handle(s, string(line)) {
			s.reply(string(line) + "\n")
		}
	}
	s.flush()
	if s.ending {
		s.conn.Close(false)
	}
	return s.rest && !s.ending
}

func (s *fakeSession) flush() (pending int) {
	if len(s.out) == 0 {
		return 0
	}
	if s.server.confirming {
		s.round = append(s.round, s.out...)
	}
	pending = s.conn.Send(s.out)
	s.out = s.out[:0]
	return pending
}

// wait pauses the session, which answers when it is woken and somebody has set finished.
func (s *fakeSession) wait(leaves bool, answer string) {
	s.waits, s.leaves, s.answer = true, leaves, answer
	s.finished.Store(false)
	s.conn.Pause(leaves)
}

func (s *fakeSession) finish() {
	s.finished.Store(true)
	s.conn.Wake()
}

// Confirm says what has failed in place of the replies, which are those since the last Confirm.
func (s *fakeSession) Confirm(replies []byte, err error) []byte {
	s.mustBeOpen()
	if !s.server.confirming || !bytes.Equal(replies, s.round) {
		s.server.faults.Add(1)
	}
	s.round, s.wrote = s.round[:0], false
	s.server.confirms.Add(1)
	if err != nil && len(replies) > 0 {
		return []byte(err.Error() + "\n")
	}
	return replies
}

// fakeServer admits connections to fake sessions. Its fields are set before the test's first connection.
type fakeServer struct {
	*Transport
	handle     func(s *fakeSession, line string) (done bool) // nil: each line is answered by itself
	onWake     func(s *fakeSession)
	onOpen     func()
	onIdentify func(s *fakeSession)
	places     int64  // 0: any number
	confirming bool   // replies wait for the disk
	denied     string // nobody is served, and told this; empty: everybody is
	keepAlive  time.Duration
	exit       func(text string)

	skewNS     atomic.Int64
	still      atomic.Bool // its clock goes only by skew
	overdue    atomic.Bool
	gate       atomic.Pointer[chan error] // each commit takes its outcome from there; nil: they succeed
	begins     atomic.Int64
	confirms   atomic.Int64
	commits    atomic.Int64
	leaves     atomic.Int64 // rounds that ended without a commit
	rejected   atomic.Int64
	failed     atomic.Pointer[error] // the last handshake
	warnings   atomic.Int64
	identified atomic.Int64
	panics     atomic.Int64
	faults     atomic.Int64 // of the transport
	left       atomic.Int64 // sessions that were told that they are closed

	mu       sync.Mutex
	sessions []*fakeSession
}

var began = time.Now()

func (f *fakeServer) Admit(remote, _ net.Addr) (Session, string, bool) {
	_ = remote.String()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.denied != "" {
		return nil, f.denied, false
	}
	if f.places > 0 && int64(len(f.sessions))-f.left.Load() >= f.places {
		return nil, "full\n", true
	}
	s := &fakeSession{server: f}
	f.sessions = append(f.sessions, s)
	return s, "", false
}

func (f *fakeServer) KeepAlive() time.Duration             { return f.keepAlive }
func (f *fakeServer) skew(by time.Duration)                { f.skewNS.Add(int64(by)) }
func (f *fakeServer) Begin()                               { f.begins.Add(1) }
func (f *fakeServer) Leave()                               { f.leaves.Add(1) }
func (f *fakeServer) Rejected(net.Addr)                    { f.rejected.Add(1) }
func (f *fakeServer) HandshakeFailed(_ Session, err error) { f.failed.Store(&err) }
func (f *fakeServer) Warn(string, Session, error)          { f.warnings.Add(1) }

func (f *fakeServer) NowNS() int64 {
	if f.still.Load() {
		return f.skewNS.Load()
	}
	return int64(time.Since(began)) + f.skewNS.Load()
}

func (f *fakeServer) Commit() error {
	gate := f.gate.Load()
	f.commits.Add(1)
	if gate != nil {
		return <-*gate
	}
	return nil
}

func (f *fakeServer) Panicked(any, string, Session) { f.panics.Add(1) }

func (f *fakeServer) Fatal(text string, about ...any) {
	if f.exit == nil {
		panic(text + fmt.Sprint(about...))
	}
	f.exit(text + fmt.Sprint(about...))
}

// all are the sessions that are open.
func (f *fakeServer) all() (open []*fakeSession) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.sessions {
		if s.opened.Load() && s.closed.Load() == 0 {
			open = append(open, s)
		}
	}
	return open
}

func (f *fakeServer) unsent() (bytes int64) {
	for _, s := range f.all() {
		bytes += s.unsent.Load()
	}
	return bytes
}

// carried is a test's server. Its zero value has no loops, and rounds that are not committed.
type carried struct {
	Options
	fakeServer
	listener func(net.Listener) net.Listener // in place of the real one
	addr     net.Addr
	tls      *TLS // nil: connections are plain
	lingers  atomic.Bool
	stop     func()
}

func (c *carried) byLoops() bool { return c.Loops > 0 }

// eachCarrier runs a test with connections by loops and by goroutines, both with and without TLS.
func eachCarrier(t *testing.T, set func(c *carried), test func(t *testing.T, c *carried)) {
	for _, name := range []string{"loops", "goroutines", "TLS by loops", "TLS by goroutines"} {
		byLoops := strings.HasSuffix(name, "loops")
		if byLoops && !HasLoops {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &carried{}
			if byLoops {
				c.Loops = 2
			}
			if strings.HasPrefix(name, "TLS") {
				c.tls = newTLS(t)
			}
			if set != nil {
				set(c)
			}
			c.start(t)
			c.addr = c.listen(t, "tcp")
			test(t, c)
		})
	}
}

// start makes the transport, and sees at its end that each session was told of its own.
func (c *carried) start(t *testing.T) {
	t.Helper()
	c.confirming = c.Sync
	var err error
	if c.Transport, err = New(&c.fakeServer, c.Options); err != nil {
		t.Fatal(err)
	}
	c.stop = sync.OnceFunc(c.Stop)
	t.Cleanup(func() {
		c.stop()
		c.wantNoFaults(t)
		if begins, ends := c.begins.Load(), c.commits.Load()+c.leaves.Load(); begins != ends {
			t.Errorf("%d rounds began and %d ended", begins, ends)
		}
	})
}

// wantNoFaults is called when all connections are closed.
func (f *fakeServer) wantNoFaults(t *testing.T) {
	t.Helper()
	for _, s := range f.sessions {
		if n := s.closed.Load(); n != 1 {
			t.Errorf("a session was told %d times that it is closed", n)
		}
	}
	if n := f.faults.Load(); n > 0 {
		t.Errorf("%d times the transport did what it may not", n)
	}
}

// listen accepts on a socket until the end of the test.
func (c *carried) listen(t *testing.T, network string) net.Addr {
	t.Helper()
	at := "127.0.0.1:0"
	if network == "unix" {
		at = filepath.Join(t.TempDir(), "s")
	}
	ln, err := net.Listen(network, at)
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr()
	if c.listener != nil {
		ln = c.listener(ln)
	}
	ctx, stop := context.WithCancel(context.Background())
	var accepting sync.WaitGroup
	accepting.Go(func() { c.Accept(ctx, Listener{Listener: ln, TLS: c.tls}) })
	t.Cleanup(func() {
		stop()
		ln.Close()
		accepting.Wait()
	})
	return addr
}

const patience = celldtest.Patience

var eventually = celldtest.Eventually

// peer is the other end of a connection.
type peer struct {
	net.Conn
	*bufio.Reader
	t *testing.T
}

func (p peer) Read(b []byte) (int, error) { return p.Reader.Read(b) }

func (c *carried) dial(t *testing.T) peer {
	t.Helper()
	if c.tls == nil {
		return dial(t, c.addr)
	}
	return newPeer(t, tls.Client(connect(t, c.addr), &tls.Config{InsecureSkipVerify: true}))
}

func dial(t *testing.T, to net.Addr) peer {
	t.Helper()
	return newPeer(t, connect(t, to))
}

// connect makes a connection whose receiving buffer does not grow, so that big is more than sockets hold.
func connect(t *testing.T, to net.Addr) net.Conn {
	t.Helper()
	conn, err := net.Dial(to.Network(), to.String())
	if err != nil {
		t.Fatal(err)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		if err := tcp.SetReadBuffer(64 << 10); err != nil {
			t.Fatal(err)
		}
	}
	return conn
}

func newPeer(t *testing.T, conn net.Conn) peer {
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return peer{conn, bufio.NewReader(conn), t}
}

// send waits for as long as want does, however long the peer has been there: a test of many steps is slow on a busy machine.
func (p peer) send(raw string) {
	p.t.Helper()
	_ = p.SetWriteDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(p.Conn, raw); err != nil {
		p.t.Fatal(err)
	}
}

func (p peer) want(text string) {
	p.t.Helper()
	_ = p.SetReadDeadline(time.Now().Add(patience))
	got := make([]byte, len(text))
	if n, err := io.ReadFull(p, got); err != nil || string(got) != text {
		p.t.Fatalf("%.60q, %v; want %.60q", got[:n], err, text)
	}
}

func (p peer) ask(raw, want string) {
	p.t.Helper()
	p.send(raw)
	p.want(want)
}

func (p peer) wantClosed() {
	p.t.Helper()
	if rest, err := io.ReadAll(p); len(rest) > 0 || errors.Is(err, context.DeadlineExceeded) {
		p.t.Errorf("%.60q, %v before the end", rest, err)
	}
}

// wantNothing sees that nothing comes for a moment, in which it would.
func (p peer) wantNothing() {
	p.t.Helper()
	_ = p.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if got, err := p.Peek(1); err == nil {
		p.t.Errorf("%q came too soon", got)
	}
	_ = p.SetReadDeadline(time.Now().Add(patience))
}

func (p peer) closeWrite() {
	_ = p.Conn.(interface{ CloseWrite() error }).CloseWrite()
	if over, ok := p.Conn.(*tls.Conn); ok {
		_ = over.NetConn().(*net.TCPConn).CloseWrite()
	}
}

// farewell ends what the peer sends in TLS, and leaves its socket open. Plain TCP has only the end of the socket's half.
func (p peer) farewell() {
	if over, ok := p.Conn.(*tls.Conn); ok {
		_ = over.CloseWrite()
	} else {
		p.closeWrite()
	}
}

// socket is what TLS, if there is any, goes by.
func (p peer) socket() *net.TCPConn {
	if over, ok := p.Conn.(*tls.Conn); ok {
		return over.NetConn().(*net.TCPConn)
	}
	return p.Conn.(*net.TCPConn)
}
