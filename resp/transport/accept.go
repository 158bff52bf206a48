package transport

import (
	"context"
	"errors"
	"net"
	"time"
)

// Listener says how its connections are carried.
type Listener struct {
	net.Listener
	Goroutines bool // a goroutine for each, as TLS needs; false: by event loops, where there are any
}

// Accept takes connections in until the listener is closed. Once ctx ends, no new one waits for a place. When the process is out of file descriptors it waits for
// some to come free, and serves those it has meanwhile.
func (t *Transport) Accept(ctx context.Context, ln Listener) {
	var by carrier = t.goroutines
	if t.loops != nil && !ln.Goroutines {
		by = t.loops
	}
	for {
		conn, err := ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			t.server.Warn("cannot accept a connection", nil, err)
			time.Sleep(50 * time.Millisecond)
			continue
		}
		t.take(ctx, conn, by)
	}
}

// take has a connection carried. A panic before it is ends the connection alone.
func (t *Transport) take(ctx context.Context, conn net.Conn, by carrier) {
	carried := false
	defer func() {
		if cause := recover(); cause != nil {
			t.server.Panicked(cause, "accept", nil)
		}
	}()
	defer func() {
		if !carried {
			conn.Close()
		}
	}()
	t.accepting.Lock() // else other acceptors take the places that come free before this one does
	defer t.accepting.Unlock()
	by.carry(ctx, conn)
	carried = true
}

// fullNS is how long a server that is full is taken to stay so.
const fullNS = 50_000_000

// admit makes the session of a new connection. One that may not be served is told so and closed, and gets none.
//
// Peers come and go while an event loop is in a round, and are counted until it has seen that they went. Before one is refused
// they are not counted any more: with 8 peers that connected and closed beside a loop that waited for its disk, and a
// limit of 100, half of 106,142 connections were refused. Where that brought nothing, the next are refused at once for a
// while: it takes a round of each loop, and meanwhile the queue of those to be accepted fills up.
func (t *Transport) admit(ctx context.Context, conn net.Conn, c Conn) Session {
	remote, local := conn.RemoteAddr(), conn.LocalAddr()
	session, refusal, full := t.server.Admit(c, remote, local)
	if full && t.server.NowNS() >= t.fullUntilNS {
		for _, c := range t.carriers() {
			c.settle(ctx)
		}
		if session, refusal, full = t.server.Admit(c, remote, local); full {
			t.fullUntilNS = t.server.NowNS() + fullNS
		}
	}
	if full {
		t.server.Rejected()
	}
	if session == nil {
		refuse(conn, refusal)
		return nil
	}
	t.setKeepAlive(conn)
	return session
}

// refuse tells a peer why it is not served. The line fits any socket buffer, so that the write does not wait.
func refuse(conn net.Conn, line string) {
	_ = conn.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	_, _ = conn.Write([]byte(line))
	conn.Close()
}

func (t *Transport) setKeepAlive(conn net.Conn) {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	idle := t.server.KeepAlive()
	if idle == 0 {
		_ = tcp.SetKeepAlive(false)
		return
	}
	// Redis's proportions: the first probe after the interval, then three more, a third of it apart.
	_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{
		Enable: true, Idle: idle, Interval: max(time.Second, (idle / 3).Truncate(time.Second)), Count: 3,
	})
}

// lingerNS is how long the peer of a connection that is to be closed may take nothing of what it was sent. Every lingerLook it
// is tried whether the peer takes more.
const (
	lingerNS   = 10_000_000_000
	lingerLook = 250 * time.Millisecond
)
