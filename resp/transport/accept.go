package transport

import (
	"context"
	"errors"
	"net"
	"os"
	"time"
)

// Listener says how its connections are carried.
type Listener struct {
	net.Listener
	TLS *TLS // nil: none. Each handshake has a goroutine, before the connection is carried as all are
}

// Accept accepts connections until the listener is closed. After ctx has ended, no new connection waits for a place. If the
// process is out of file descriptors, Accept tries again every 50 ms; open connections are served meanwhile.
func (t *Transport) Accept(ctx context.Context, ln Listener) {
	carry := t.carry
	if ln.TLS != nil {
		carry = func(ctx context.Context, conn net.Conn) { t.shake(ctx, conn, ln.TLS) }
	}
	for {
		conn, err := ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.acceptQueue(ctx, ln, carry)
			return
		}
		if err != nil {
			t.server.Warn("cannot accept a connection", nil, err)
			time.Sleep(50 * time.Millisecond)
			continue
		}
		t.handOver(ctx, conn, carry)
	}
}

// deadlined is a listener whose Accept can be told to return.
type deadlined interface{ SetDeadline(t time.Time) error }

// StopAccepting makes Accept return once it has accepted what waits in the listener's queue: those peers may have sent commands, and would
// meet a reset. On a loaded machine two of three connections waited there, and 80 commands were not answered. The listener is not closed,
// unless it knows no deadline.
func StopAccepting(ln net.Listener) {
	if of, ok := ln.(deadlined); !ok || of.SetDeadline(time.Unix(1, 0)) != nil {
		ln.Close()
	}
}

// mostQueued bounds a queue to which peers go on to come. It is as long as Linux lets it become by default.
const mostQueued = 4096

// acceptQueue accepts what waits in the queue of a listener.
func (t *Transport) acceptQueue(ctx context.Context, ln Listener, carry func(context.Context, net.Conn)) {
	_ = ln.Listener.(deadlined).SetDeadline(time.Now().Add(time.Second)) // a peer may go before it is accepted
	for range mostQueued {
		if !hasInput(ln.Listener) {
			return
		}
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		t.handOver(ctx, conn, carry)
	}
}

// handOver gives a connection to its carrier. A panic in that ends this connection alone.
func (t *Transport) handOver(ctx context.Context, conn net.Conn, carry func(context.Context, net.Conn)) {
	defer func() {
		if cause := recover(); cause != nil {
			conn.Close()
			t.server.Panicked(cause, "accept", nil)
		}
	}()
	t.accepting.Lock() // otherwise another acceptor could take the place that this one has waited for
	defer t.accepting.Unlock()
	carry(ctx, conn)
}

// carry takes a connection over. It may wait for a moment, until ctx ends, but not for the peer.
func (t *Transport) carry(ctx context.Context, conn net.Conn) {
	session, refusal, _ := t.admit(ctx, conn)
	if session == nil {
		refuse(conn, refusal)
		return
	}
	t.carrier.adopt(conn, session, nil)
}

// fullNS is how long a full server is assumed to stay full.
const fullNS = 50_000_000

// admit makes the session of a new connection. If the connection may not be served, admit returns nil and the text for the peer.
// full is the server's.
//
// A connection counts until its carrier has seen its end, and an event loop sees that only in its next round. So before admit
// refuses a connection, it lets the carriers notice which have ended. Without that, with a limit of 100 and 8 peers that
// connected and closed beside a loop that waited for its disk, half of 106,142 connections were refused. If no place came
// free, admit refuses at once for the next 50 ms: to notice takes a round of each loop, while the accept queue fills up.
func (t *Transport) admit(ctx context.Context, conn net.Conn) (session Session, refusal string, full bool) {
	remote, local := conn.RemoteAddr(), conn.LocalAddr()
	session, refusal, full = t.server.Admit(remote, local)
	if full && t.server.NowNS() >= t.fullUntilNS {
		t.Settle(ctx)
		if session, refusal, full = t.server.Admit(remote, local); full {
			t.fullUntilNS = t.server.NowNS() + fullNS
		}
	}
	if full {
		t.server.Rejected(remote)
	}
	if session != nil {
		t.setKeepAlive(conn)
	}
	return session, refusal, full
}

// refuse tells a peer why it is not served. The line fits any socket buffer, so the write does not wait.
func refuse(conn net.Conn, line string) {
	_ = conn.SetWriteDeadline(time.Now().Add(refusalTime))
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

// A closing connection waits until its peer has read the last replies. It ends early if the peer reads nothing for lingerNS.
// Every lingerLook it tries to write more.
const (
	lingerNS   = 10_000_000_000
	lingerLook = 250 * time.Millisecond
)
