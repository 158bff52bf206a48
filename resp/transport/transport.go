package transport

import (
	"context"
	"net"
	"sync"
	"time"
)

// Session is one connection's state machine, as its transport knows it: bytes in, reply bytes out. All but Overdue are called by
// one goroutine at a time, and first of all Open.
type Session interface {
	// Open says that Conn may be used from now on, by any goroutine. fd is its file descriptor, or -1.
	Open(fd int)
	// Serve answers data, which may hold any part of any number of commands, by Conn.Send. data is not kept. Where it is nil the
	// session was woken, or has asked for it: more says that it has enough to go on with Serve(nil) before anything is read.
	Serve(data []byte) (more bool)
	// Confirm is called at the end of a round whose replies wait for the disk. It takes those of this session, and the error
	// that kept its changes from the disk, and returns what is sent to the peer.
	Confirm(replies []byte, err error) []byte
	// Unsent is told how many bytes of replies the peer has not taken, whenever that changes. Fewer are a sign of life.
	Unsent(bytes int)
	// Overdue reports whether the connection is to be closed as idle. It is asked where Serve cannot be, as the peer takes
	// nothing.
	Overdue() bool
	// Closed is called once, when the connection is gone.
	Closed()
}

// Conn is a connection as its session knows it.
type Conn interface {
	// Send takes reply bytes for the peer without blocking; p may be reused when it returns. It returns how many bytes
	// the peer has not yet taken. Only Serve may call it.
	Send(p []byte) (pending int)
	// Close ends the connection: now, or after what was sent has left or its peer has taken nothing for 10 s. From any goroutine.
	Close(now bool)
	// Wake has Serve called soon with no bytes, for output that came about elsewhere, or to go on after Pause. From any goroutine.
	Wake()
	// Pause has nothing read, and Serve not called, until Wake, whatever that is for: a session that still waits pauses again. A
	// Wake since this Serve began counts. Only Serve may call it.
	//
	// A connection that breaks meanwhile is closed. Where the session would wait for nobody (abandons), so is one whose peer has
	// closed its half, which is all that TCP tells of a peer that has closed or died; it tells that behind what the peer has sent,
	// and so not before all of it is in the socket. Otherwise that peer gets its replies.
	Pause(abandons bool)
	// Meanwhile serves other connections where Serve keeps them from it: a command has been running for long, and asks for it
	// every now and then. Where it has changed nothing (wrote), it is taken out of the round that waits for the disk, until
	// Resume.
	Meanwhile(wrote bool)
	// Resume goes on with that round, before the command changes something, and at its end.
	Resume()
}

// Server is what connections have in common, as their transport knows it. Any goroutine may call it.
type Server interface {
	// Admit returns the session of a new connection. Where it may not be served there is none: the peer is sent the refusal,
	// and the connection closed. full says that it may be served when others have gone.
	Admit(c Conn, remote, local net.Addr) (s Session, refusal string, full bool)
	// KeepAlive is the interval of probes on a new TCP connection; 0 is none.
	KeepAlive() time.Duration
	// NowNS is a time that never goes back.
	NowNS() int64

	// Begin and Commit bracket a round, where replies wait for the disk. Commit returns when the round's changes are there, or why
	// they are not.
	Begin()
	Commit() error

	// Rejected counts a connection that is not served.
	Rejected()
	// Warn logs what peers can cause as often as they like. s may be nil.
	Warn(text string, s Session, err error)
	// Panicked logs a panic that cost a connection. The deferred function that has recovered it calls this. s may be nil.
	Panicked(cause any, where string, s Session)
	// Fatal ends the process.
	Fatal(text string, about ...any)
}

// Options say how a Transport works. The zero value gives each connection a goroutine.
type Options struct {
	Loops int  // event loops, where this system has them (Linux); 0: none
	Sync  bool // replies wait for Server.Commit
}

// Transport carries connections.
type Transport struct {
	server     Server
	synced     bool    // rounds are committed
	loops      carrier // nil: none
	goroutines *goroutineCarrier

	accepting   sync.Mutex // held while a connection is taken in
	fullUntilNS int64      // guarded by accepting
}

// carrier moves the bytes of connections between their sockets and sessions.
type carrier interface {
	// carry takes a connection over. It may wait a moment, but not for the peer. When ctx ends, nothing more is worth waiting for.
	carry(ctx context.Context, conn net.Conn)
	// settle returns when those connections that have ended by now are known to have, or when ctx ends.
	settle(ctx context.Context)
	// owes reports whether something is unanswered that had been sent when it was first asked, or a reply has not left. A
	// command that runs keeps it waiting, for as long as its patience lasts.
	owes(patience time.Duration) bool
	// background runs step over and over until it returns false. It may return before that.
	background(step func() (more bool))
	// stop closes all connections and returns when they are.
	stop()
}

// New returns a transport that carries nothing yet.
func New(server Server, o Options) (*Transport, error) {
	t := &Transport{server: server, synced: o.Sync}
	t.goroutines = &goroutineCarrier{t: t, conns: map[*goroutineConn]struct{}{}}
	if o.Loops > 0 && HasLoops {
		loops, err := newLoops(t, o.Loops)
		if err != nil {
			return nil, err
		}
		t.loops = loops
	}
	return t, nil
}

// carriers are those that there are.
func (t *Transport) carriers() []carrier {
	if t.loops == nil {
		return []carrier{t.goroutines}
	}
	return []carrier{t.loops, t.goroutines}
}

// Background runs step, over and over until it returns false, where it keeps no connection waiting for longer than
// one step takes. It may return before that.
func (t *Transport) Background(step func() (more bool)) {
	t.carriers()[0].background(step)
}

// Owes reports whether something is unanswered that had been sent when it was first asked, or a reply has not left. A
// command that runs keeps it waiting, for as long as its patience lasts.
func (t *Transport) Owes(patience time.Duration) (owes bool) {
	for _, c := range t.carriers() {
		owes = c.owes(patience) || owes // each is asked each time
	}
	return owes
}

// Stop closes all connections and returns when they are. All Accepts have returned before.
func (t *Transport) Stop() {
	for _, c := range t.carriers() {
		c.stop()
	}
}
