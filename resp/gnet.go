package resp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/panjf2000/gnet/v2"
	"github.com/panjf2000/gnet/v2/pkg/logging"
)

// The plain transport: gnet's event loops carry the connections, the standard library's listeners accept them.
//
// gnet could accept by itself, but its acceptor ends the engine, and so the process, at the first error that is not on
// its short list (acceptor_unix.go: ErrAcceptSocket), such as the EMFILE that any peer can bring about by opening
// connections; it does not say which port it got for port 0, and cannot stop accepting without closing every
// connection. So the loops are those of gnet's Client engine, which has no listener, and connections are enrolled into
// them. Enrolling waits for the loop, which also bounds how far accepting can run ahead of serving.

// Serve accepts from the listeners and serves until ctx ends, then stops: no new connections, what has arrived is
// answered, and all is closed within --shutdown-timeout. The error tells what kept it from serving.
func (srv *Server) Serve(ctx context.Context, listeners []net.Listener) error {
	loops := &gnetLoops{srv: srv}
	client, err := gnet.NewClient(loops,
		gnet.WithNumEventLoop(int(srv.cfg.ioThreads.Get())),
		gnet.WithLogger(gnetLogger{srv.log}),
	)
	if err != nil {
		return err
	}
	if err := client.Start(); err != nil {
		return err
	}
	cronCtx, stopCron := context.WithCancel(context.Background())
	var cron, acceptors sync.WaitGroup
	cron.Go(func() { srv.cron(cronCtx) })
	for _, ln := range listeners {
		acceptors.Go(func() { srv.accept(ln, client) })
	}
	<-ctx.Done()
	for _, ln := range listeners {
		ln.Close()
	}
	acceptors.Wait()
	srv.drain()
	stopCron()
	cron.Wait()
	return client.Stop()
}

// accept takes connections in until the listener is closed. When the process is out of file descriptors it waits for
// some to come free, and serves those it has meanwhile.
func (srv *Server) accept(ln net.Listener, client *gnet.Client) {
	for {
		conn, err := ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			srv.log.Warn("cannot accept a connection", "error", err)
			time.Sleep(50 * time.Millisecond)
			continue
		}
		tr := &gnetTransport{srv: srv}
		session, refusal := srv.NewSession(tr, Peer{Remote: conn.RemoteAddr(), Local: conn.LocalAddr()})
		if session == nil {
			refuse(conn, refusal)
			continue
		}
		tr.session = session
		srv.setKeepAlive(conn)
		if _, err := client.EnrollContext(conn, tr); err != nil || !tr.opened.Load() {
			srv.log.Warn("cannot serve a connection", "client", session.client.addr, "error", err)
			session.Closed()
		}
	}
}

// refuse tells a peer why it is not served. The line fits any socket buffer, so that the write does not wait.
func refuse(conn net.Conn, line string) {
	_ = conn.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	_, _ = conn.Write([]byte(line))
	conn.Close()
}

func (srv *Server) setKeepAlive(conn net.Conn) {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	seconds := srv.cfg.tcpKeepalive.Get()
	if seconds == 0 {
		_ = tcp.SetKeepAlive(false)
		return
	}
	// Redis's proportions: the first probe after the interval, then three more, a third of it apart.
	_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{
		Enable: true, Idle: time.Duration(seconds) * time.Second, Interval: time.Duration(max(1, seconds/3)) * time.Second, Count: 3,
	})
}

// gnetLoops hands gnet's events to the sessions. Each method runs on the loop that owns the connection.
type gnetLoops struct {
	gnet.BuiltinEventEngine
	srv *Server
}

func (l *gnetLoops) OnOpen(c gnet.Conn) ([]byte, gnet.Action) {
	tr := c.Context().(*gnetTransport)
	tr.mu.Lock()
	tr.conn = c
	tr.opened.Store(true)
	closing := tr.closing.Load()
	tr.mu.Unlock()
	tr.session.client.fd.Store(int64(c.Fd()))
	if closing { // killed before it was open
		return nil, gnet.Close
	}
	return nil, gnet.None
}

func (l *gnetLoops) OnTraffic(c gnet.Conn) gnet.Action {
	tr, ok := c.Context().(*gnetTransport)
	if !ok {
		return gnet.Close
	}
	data, _ := c.Next(-1)
	if !tr.closing.Load() {
		tr.session.Serve(data)
	}
	if tr.conn == nil { // a write failed, and gnet has closed it
		return gnet.None
	}
	if n, unsent := int64(c.OutboundBuffered()), &tr.session.client.unsent; n != unsent.Load() {
		unsent.Store(n)
		tr.progressNS.Store(l.srv.clock())
	}
	if tr.closing.Load() {
		return tr.linger(c)
	}
	return gnet.None
}

func (l *gnetLoops) OnClose(c gnet.Conn, _ error) gnet.Action {
	if tr, ok := c.Context().(*gnetTransport); ok {
		tr.mu.Lock()
		tr.conn = nil
		tr.mu.Unlock()
		tr.session.Closed()
	}
	return gnet.None
}

// lingerNS is how long a connection that is to be closed may read nothing of what it was sent.
const lingerNS = 2_000_000_000

// gnetTransport is the Transport of one gnet connection.
type gnetTransport struct {
	srv     *Server
	session *Session

	opened     atomic.Bool
	closing    atomic.Bool
	progressNS atomic.Int64 // when the peer last read, or Close was called

	mu   sync.Mutex // guards conn, which other goroutines ask to wake
	conn gnet.Conn
}

// Send is only called on the connection's loop.
func (t *gnetTransport) Send(p []byte) int {
	if t.conn == nil {
		return 0
	}
	_, _ = t.conn.Write(p) // an error has closed the connection, and OnClose cleared conn
	if t.conn == nil {
		return 0
	}
	return t.conn.OutboundBuffered()
}

func (t *gnetTransport) Close() {
	if t.closing.CompareAndSwap(false, true) {
		t.progressNS.Store(t.srv.clock())
		t.Wake()
	}
}

func (t *gnetTransport) Wake() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conn != nil {
		_ = t.conn.Wake(nil)
	}
}

// linger closes a connection once its replies have left. gnet does not tell when that is, so it looks again and again
// until then, or until the peer reads no more.
func (t *gnetTransport) linger(c gnet.Conn) gnet.Action {
	wanted := t.session.end != atOnce && !t.session.client.killed.Load()
	if wanted && c.OutboundBuffered() > 0 && t.srv.clock()-t.progressNS.Load() < lingerNS {
		time.AfterFunc(20*time.Millisecond, t.Wake)
		return gnet.None
	}
	return gnet.Close
}

// gnetLogger gives gnet's own log lines, which are about descriptors and pollers, the server's form and level.
type gnetLogger struct{ log *slog.Logger }

var _ logging.Logger = gnetLogger{}

func (l gnetLogger) Debugf(format string, args ...any) { l.write(slog.LevelDebug, format, args) }
func (l gnetLogger) Infof(format string, args ...any)  { l.write(slog.LevelDebug, format, args) }
func (l gnetLogger) Warnf(format string, args ...any)  { l.write(slog.LevelDebug, format, args) }
func (l gnetLogger) Errorf(format string, args ...any) { l.write(slog.LevelWarn, format, args) }
func (l gnetLogger) Fatalf(format string, args ...any) { l.write(slog.LevelError, format, args) }

func (l gnetLogger) write(level slog.Level, format string, args []any) {
	if l.log.Enabled(context.Background(), level) {
		l.log.Log(context.Background(), level, "event loop: "+strings.TrimSpace(fmt.Sprintf(format, args...)))
	}
}
