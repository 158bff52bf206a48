package transport

import (
	"context"
	"net"
	"runtime"
	"sync"
	"time"
)

// Options say how a Transport works. The zero value gives each connection a goroutine.
type Options struct {
	Loops int  // event loops, where this system has them (Linux); 0: none
	Sync  bool // replies wait for Server.Commit
}

// Transport carries connections.
type Transport struct {
	server     Server
	synced     bool // rounds are committed
	carrier    carrier
	handshakes handshakes // of TLS; then carrier has the connection

	accepting   sync.Mutex // held while a connection is taken in
	fullUntilNS int64      // guarded by accepting
}

// carrier moves the bytes of connections between their sockets and sessions: event loops, or goroutines where there are none.
type carrier interface {
	// adopt serves a session's connection. over is its TLS, whose handshake is done; nil: none.
	adopt(conn net.Conn, session Session, over *secure)
	// settle returns when all connections that have ended by now have been noticed, or when ctx ends.
	settle(ctx context.Context)
	// owes is Owes for the carrier's connections.
	owes(patience time.Duration) bool
	// background runs step over and over until it returns false. It may return before that.
	background(step func() (more bool))
	// stop closes all connections and returns when they are.
	stop()
}

// New returns a transport without connections. The error says which system call for the event loops failed.
func New(server Server, o Options) (t *Transport, err error) {
	t = &Transport{server: server, synced: o.Sync}
	t.handshakes.permits.free = max(1, runtime.GOMAXPROCS(0)/2)
	if t.carrier = (&goroutineCarrier{t: t}); o.Loops > 0 && HasLoops {
		t.carrier, err = newLoops(t, o.Loops)
	}
	return t, err
}

// Background runs step over and over until it returns false. No connection waits for longer than one step takes. It may return
// before the last step.
func (t *Transport) Background(step func() (more bool)) { t.carrier.background(step) }

// Owes reports whether input that had arrived at the first call of Owes is unanswered, or a reply has not left. It waits for
// running commands until patience has passed, and then returns true.
func (t *Transport) Owes(patience time.Duration) bool {
	shaking := t.handshakes.owe(false) // each is asked each time
	return t.carrier.owes(patience) || shaking
}

// onItsWay bounds the input, in bytes, that a stopping server still answers on a connection that had input when it was told to
// stop. Two sockets hold about as much: input that a peer can have sent and that is not read yet.
const onItsWay = 8 << 20

// Settle returns when each event loop has gone round, or when ctx ends.
func (t *Transport) Settle(ctx context.Context) {
	t.carrier.settle(ctx)
	t.handshakes.settle(ctx)
}

// Stop closes all connections and returns when they are closed. All calls of Accept must have returned before.
func (t *Transport) Stop() {
	t.handshakes.stop() // first, as the end of a handshake hands a connection to the carrier
	t.carrier.stop()
}
