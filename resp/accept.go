package resp

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"celld/persistence"
)

// carrier moves the bytes of connections between their sockets and sessions.
type carrier interface {
	// carry takes a connection over. It may wait a moment, but not for the peer.
	carry(conn net.Conn)
	// background runs step, over and over until it returns false, where it keeps no connection waiting for longer than
	// one step takes. It may return before that.
	background(step func() (more bool))
	// owes reports whether something is unanswered that had been sent when it was first asked, or a reply has not left. A
	// command that runs keeps it waiting, for as long as its patience lasts.
	owes(patience time.Duration) bool
	// stop closes all connections and returns when they are.
	stop()
}

// Serve accepts from the listeners and serves until ctx ends, then stops: no new connections, what has arrived is
// answered, and all is closed within --shutdown-timeout. What is on the disk is read first, and commands that need it are
// refused until it calls ready. The error tells what kept it from serving, or from writing the last changes.
func (srv *Server) Serve(ctx context.Context, listeners []net.Listener, ready func()) error {
	carrier, err := newCarrier(srv)
	if err != nil {
		return err
	}
	return srv.serve(ctx, listeners, carrier, ready)
}

func (srv *Server) serve(ctx context.Context, listeners []net.Listener, carrier carrier, ready func()) error {
	cronCtx, stopCron := context.WithCancel(context.Background())
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	var cron, acceptors sync.WaitGroup
	var loadErr error
	srv.loading.Store(srv.persist.On())
	cron.Go(func() {
		if loadErr = srv.loadAll(carrier); loadErr != nil {
			if errors.Is(loadErr, persistence.ErrStopping) {
				loadErr = nil
			}
			giveUp()
			return
		}
		ready()
		srv.cron(cronCtx, carrier)
	})
	for _, ln := range listeners {
		acceptors.Go(func() { srv.accept(ln, carrier) })
	}
	select {
	case <-ctx.Done():
	case <-srv.stop:
	}
	for _, ln := range listeners {
		ln.Close()
	}
	acceptors.Wait()
	srv.drain(carrier)
	stopCron()
	srv.persist.Stop()
	cron.Wait()
	carrier.stop()
	if loadErr != nil {
		return loadErr
	}
	return srv.closeFiles()
}

// accept takes connections in until the listener is closed. When the process is out of file descriptors it waits for
// some to come free, and serves those it has meanwhile.
func (srv *Server) accept(ln net.Listener, carrier carrier) {
	for {
		conn, err := ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			srv.warnSeldom("cannot accept a connection", "error", err)
			time.Sleep(50 * time.Millisecond)
			continue
		}
		srv.take(conn, carrier)
	}
}

// take has a connection carried. A panic before it is ends the connection alone.
func (srv *Server) take(conn net.Conn, carrier carrier) {
	carried := false
	defer srv.survive("accept")
	defer func() {
		if !carried {
			conn.Close()
		}
	}()
	carrier.carry(conn)
	carried = true
}

// admitConn makes the session of a new connection. One that may not be served is told so and closed, and gets none.
func (srv *Server) admitConn(conn net.Conn, tr Transport) *Session {
	session, refusal := srv.NewSession(tr, Peer{Remote: conn.RemoteAddr(), Local: conn.LocalAddr()})
	if session == nil {
		refuse(conn, refusal)
		return nil
	}
	srv.setKeepAlive(conn)
	return session
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

// lingerNS is how long the peer of a connection that is to be closed may take nothing of what it was sent. Every lingerLook it
// is tried whether the peer takes more.
const (
	lingerNS   = 10_000_000_000
	lingerLook = 250 * time.Millisecond
)
