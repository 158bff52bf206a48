package transport

import (
	"crypto/x509"
	"net"
	"time"
)

// Session is one connection's state machine, as its transport knows it: bytes in, reply bytes out. Open is called first. One
// goroutine at a time calls the methods, except Overdue.
type Session interface {
	// Open gives the session its Conn, which it and any goroutine may use from now on. fd is its file descriptor, or -1 where it has
	// none of its own.
	Open(c Conn, fd int)
	// Identify is called after Open where TLS has verified a certificate of the peer.
	Identify(cert *x509.Certificate)
	// Serve answers data by Conn.Send. data may hold any part of any number of commands; Serve does not keep it. more asks for
	// Serve(nil) before anything else is read. data is also nil after Wake.
	Serve(data []byte) (more bool)
	// Confirm is called at the end of a round whose replies wait for the disk. It takes the session's replies and Commit's error,
	// and returns what to send to the peer.
	Confirm(replies []byte, err error) []byte
	// Wrote reports whether the session has changed something since the last Confirm. If not, Confirm need not wait for the disk.
	Wrote() bool
	// Unsent is called with the number of reply bytes that the peer has not taken, whenever that changes. A smaller number is a
	// sign of life.
	Unsent(bytes int)
	// Overdue reports whether the connection is to be closed as idle. It is called while the peer takes nothing, so that Serve
	// cannot be.
	Overdue() bool
	// Closed is called once, when the connection is gone.
	Closed()
}

// Conn is a connection as its session knows it.
type Conn interface {
	// Send takes reply bytes for the peer. It does not block and does not keep p. It returns how many bytes the peer has not
	// taken yet. Only Serve may call it.
	Send(p []byte) (pending int)
	// Close ends the connection: now, or when all replies have left or the peer has taken nothing for 10 s. Any goroutine may
	// call it.
	Close(now bool)
	// Hold lets the peer of a plain connection see its end not before release is called. Outside Linux it does nothing. Only Serve may
	// call it.
	Hold() (release func())
	// Wake asks for Serve(nil) soon, for output from elsewhere or to go on after Pause. Any goroutine may call it.
	Wake()
	// Pause stops reading and calls of Serve until the next Wake. A Wake since this Serve began counts. A session that still
	// waits after a Wake pauses again. Only Serve may call Pause.
	//
	// A connection that breaks meanwhile is closed. With abandons, it is also closed when its peer has closed its half, which is all
	// that TCP tells of a peer that has closed or died. TCP tells that only when all that the peer has sent is in the socket. With
	// TLS, the peer's farewell counts as that; it is met when it stands behind no more than mostBehind bytes. Without abandons, such
	// a peer still gets its replies.
	Pause(abandons bool)
	// ServeOthers serves other connections while a long command runs in Serve. The command calls it every now and then. If it has
	// changed nothing yet (wrote is false), it leaves the round that waits for the disk until Resume.
	ServeOthers(wrote bool)
	// RoundNS is when the round began in which Serve is called, by Server.NowNS. It is 2.5 ms earlier where others wait for their
	// turn in the round, and 0 where the connection is in no round with others.
	RoundNS() int64
	// Resume joins a round again. The command calls it before it changes something, and at its end.
	Resume()
}

// Server is what all connections share, as their transport knows it. Any goroutine may call its methods.
type Server interface {
	// Admit returns the session of a new connection, whose Open follows, or Closed alone. s is nil if the connection may not be
	// served. Then the transport sends the refusal and closes it. full says that there may be a place once other connections have
	// ended.
	Admit(remote, local net.Addr) (s Session, refusal string, full bool)
	// KeepAlive returns how long a new TCP connection is idle before its first probe; 0: no probes.
	KeepAlive() time.Duration
	// NowNS returns a time in nanoseconds that never goes back.
	NowNS() int64

	// Begin and Commit enclose a round where replies wait for the disk. Commit returns when the round's changes are on the disk,
	// or an error that says why they are not. Leave ends a round without waiting; its changes are in the next Commit.
	Begin()
	Commit() error
	Leave()

	// Rejected counts a connection that is not served, as there is no place for it.
	Rejected(remote net.Addr)
	// HandshakeFailed counts a TLS connection whose handshake failed, and logs why. s may be nil.
	HandshakeFailed(s Session, err error)
	// Warn logs an event that peers can cause at any rate. s may be nil.
	Warn(text string, s Session, err error)
	// Panicked logs a panic that has ended a connection. The deferred function that recovered it calls Panicked. s may be nil.
	Panicked(cause any, where string, s Session)
	// Fatal ends the process.
	Fatal(text string, about ...any)
}
