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
	// carry takes a connection over. It may wait a moment, but not for the peer. When ctx ends, nothing more is worth waiting for.
	carry(ctx context.Context, conn net.Conn)
	// settle returns when those connections that have ended by now are known to have, or when ctx ends.
	settle(ctx context.Context)
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
	acceptCtx, stopAccepting := context.WithCancel(context.Background())
	defer stopAccepting()
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	var cron, acceptors sync.WaitGroup
	var loadErr error
	srv.gate.set(gateLoading, srv.persist.On())
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
		acceptors.Go(func() { srv.accept(acceptCtx, ln, carrier) })
	}
	select {
	case <-ctx.Done():
	case <-srv.stop:
	}
	stopAccepting()
	for _, ln := range listeners {
		ln.Close()
	}
	acceptors.Wait()
	srv.drain(carrier)
	srv.ending.Store(true)
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
func (srv *Server) accept(ctx context.Context, ln net.Listener, carrier carrier) {
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
		srv.take(ctx, conn, carrier)
	}
}

// take has a connection carried. A panic before it is ends the connection alone.
func (srv *Server) take(ctx context.Context, conn net.Conn, carrier carrier) {
	carried := false
	defer srv.survive("accept")
	defer func() {
		if !carried {
			conn.Close()
		}
	}()
	srv.accepting.Lock() // else other acceptors take the places that come free before this one does
	defer srv.accepting.Unlock()
	carrier.carry(ctx, conn)
	carried = true
}

// fullNS is how long a server that is full is taken to stay so.
const fullNS = 50_000_000

// admitConn makes the session of a new connection. One that may not be served is told so and closed, and gets none.
//
// Peers come and go while an event loop is in a round, and are counted until it has seen that they went. Before one is refused
// they are not counted any more: with 8 peers that connected and closed beside a loop that waited for its disk, and a
// limit of 100, half of 106,142 connections were refused. Where that brought nothing, the next are refused at once for a
// while: it takes a round of each loop, and meanwhile the queue of those to be accepted fills up.
func (srv *Server) admitConn(ctx context.Context, conn net.Conn, tr Transport, carrier carrier) *Session {
	peer := Peer{Remote: conn.RemoteAddr(), Local: conn.LocalAddr()}
	session, refusal := srv.NewSession(tr, peer)
	if refusal == fullLine && srv.clock() >= srv.fullUntilNS {
		carrier.settle(ctx)
		if session, refusal = srv.NewSession(tr, peer); refusal == fullLine {
			srv.fullUntilNS = srv.clock() + fullNS
		}
	}
	if refusal == fullLine {
		srv.stats.rejectedClients.Add(1)
	}
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
