package transport

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// TLS says how a Listener's connections are encrypted.
type TLS struct {
	Config   func() *tls.Config // of a new connection
	Most     func() int64       // most unfinished handshakes: one more ends the oldest
	Plainly  string             // what a peer is told in plain text that speaks no TLS; empty: nothing
	ongoing  list.List          // *goroutineConn whose handshake is unfinished, oldest first
	mu       sync.Mutex         // guards the fields around it
	refusing int                // how many of them are only to hear why they are not served
}

// handshakeTime is the longest that a handshake may take, in all.
const handshakeTime = 10 * time.Second

// mostRefusing bounds connections that have no place and only wait to hear that in TLS. Descriptors are kept for 32.
const mostRefusing = 16

// mostSealed bounds what TLS answers by itself to a peer that reads nothing, but changes its keys over and over. Replies are sealed
// when the socket has taken those before, and are less.
const mostSealed = 2 * writeSize

var (
	errOldest       = errors.New("too many handshakes were unfinished, and this was the oldest")
	errSlow         = errors.New("it took longer than 10 seconds")
	errReadsNothing = errors.New("it reads nothing")
)

// secure is a connection's TLS.
//
// After a write that ended in the middle, crypto/tls refuses all later ones: the peer would miss a part of a record. So once the
// handshake is over, TLS writes to memory, where no write fails. The connection sends that to the socket as it sends plain replies.
type secure struct {
	*tls.Conn
	below    *below
	by       *TLS
	place    *list.Element // in by.ongoing
	refusal  string        // what it hears after the handshake, if it is not served
	byLoops  bool          // an event loop carries it after the handshake
	farewell bool          // in a loop: TLS reads nothing any more
	behind   []byte        // decrypted while the session waited, and not served yet
}

// mostBehind bounds what is read of a peer whose session waits. Only TLS itself can see the peer's farewell, and that stands behind all
// that the peer has sent. One that stands behind more than this is met when the session goes on.
const mostBehind = 16 << 10

// listens reports whether a connection is to be read while its session waits.
func (s *secure) listens() bool { return s != nil && !s.farewell && len(s.behind) < mostBehind }

func (s *secure) hasBehind() bool { return s != nil && len(s.behind) > 0 }

func (s *secure) takeBehind() (data []byte) {
	data, s.behind = s.behind, nil
	return data
}

// below is the socket as TLS sees it.
type below struct {
	net.Conn        // an event loop does not use it
	heard    bool   // the peer has sent something
	toWrite  []byte // records
	sent     int    // how many bytes of them the socket has taken
	gather   bool   // writes go to toWrite
	inLoop   bool   // reads come from arrived
	arrived  []byte

	of     *life  // of the connection
	turns  *turns // of handshakes; nil: the handshake is over
	inTurn bool
	begun  bool   // the peer has got an answer
	ahead  []byte // has arrived, and Read has not returned it
}

// mostAhead is for a whole ClientHello, which crypto/tls reads in two parts: each part by itself would wait for a turn.
const mostAhead = 4 << 10

// Read gives the turn back while it waits for the peer. So does Write. In an event loop it waits for nothing: it says that its time is
// over, which is the one error that crypto/tls does not remember.
func (b *below) Read(p []byte) (n int, err error) {
	if b.ahead != nil {
		return b.takeAhead(p), nil
	}
	if b.inLoop {
		if len(b.arrived) == 0 {
			return 0, os.ErrDeadlineExceeded
		}
		n = copy(p, b.arrived)
		b.arrived = b.arrived[n:]
		return n, nil
	}
	b.endTurn()
	if b.turns == nil || b.begun {
		n, err = b.Conn.Read(p)
	} else {
		b.ahead = make([]byte, mostAhead)
		n, err = b.Conn.Read(b.ahead)
		b.ahead = b.ahead[:n]
		n = b.takeAhead(p)
	}
	b.heard = b.heard || n > 0
	b.beginTurn()
	if b.turns != nil && b.of.at() == cut { // while it waited for its turn
		return 0, net.ErrClosed
	}
	return n, err
}

func (b *below) takeAhead(p []byte) int {
	n := copy(p, b.ahead)
	if b.ahead = b.ahead[n:]; len(b.ahead) == 0 {
		b.ahead = nil // an idle connection does without
	}
	return n
}

func (b *below) beginTurn() {
	if b.turns != nil {
		b.turns.take(b.begun)
		b.inTurn = true
	}
}

func (b *below) endTurn() {
	if b.inTurn {
		b.inTurn = false
		b.turns.give()
	}
}

func (b *below) Write(p []byte) (int, error) {
	if !b.gather { // within the handshake
		b.endTurn()
		defer b.beginTurn()
		b.begun = true
		return b.Conn.Write(p)
	}
	if len(b.toWrite)-b.sent > mostSealed {
		return 0, errReadsNothing
	}
	b.toWrite = append(b.toWrite, p...)
	return len(p), nil
}

// SetWriteDeadline does nothing where no write waits. crypto/tls calls it with its farewell.
func (b *below) SetWriteDeadline(t time.Time) error {
	if b.gather {
		return nil
	}
	return b.Conn.SetWriteDeadline(t)
}

// seal encrypts the start of replies, at most writeSize bytes of them, if the socket has taken all that was sealed before.
func (s *secure) seal(replies []byte) (int, error) {
	if len(s.sealed()) > 0 || len(replies) == 0 {
		return 0, nil
	}
	return s.Write(replies[:min(len(replies), writeSize)])
}

// sealed is what the socket is to take.
func (s *secure) sealed() []byte { return s.below.toWrite[s.below.sent:] }

// took tells that the socket has taken n bytes of sealed. An idle connection keeps room for small replies only.
func (s *secure) took(n int) {
	b := s.below
	if b.sent += n; b.sent < len(b.toWrite) {
		return
	}
	if b.sent, b.toWrite = 0, b.toWrite[:0]; cap(b.toWrite) > 4<<10 {
		b.toWrite = nil
	}
}

// carrySecure is carry for a connection with TLS. The handshake is part of the connection's goroutine. Meanwhile the connection has
// its place among maxclients, as in Redis, and nobody sees it. When there is no place, it is closed without a word.
func (g *goroutineCarrier) carrySecure(ctx context.Context, conn net.Conn, ln Listener) {
	below, by := &below{Conn: conn}, ln.TLS
	c := &goroutineConn{carrier: g, socket: conn}
	below.of = &c.life
	c.secure = &secure{Conn: tls.Server(below, by.Config()), below: below, by: by, byLoops: g.t.loops != nil && !ln.Goroutines}
	session, refusal, full := g.t.admit(ctx, conn)
	if session != nil {
		c.session = session
	} else if c.secure.refusal = refusal; full || !by.mayRefuse() {
		conn.Close()
		return
	}
	by.begin(c)
	g.start(c)
}

func (t *TLS) mayRefuse() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.refusing >= mostRefusing {
		return false
	}
	t.refusing++
	return true
}

// begin counts a handshake, and ends the oldest if they are too many.
func (t *TLS) begin(c *goroutineConn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for int64(t.ongoing.Len()) >= t.Most() {
		oldest := t.ongoing.Front()
		t.forget(oldest.Value.(*goroutineConn))
		oldest.Value.(*goroutineConn).Close(true)
	}
	c.secure.place = t.ongoing.PushBack(c)
}

// finish takes a handshake from the unfinished ones. It returns false if begin has done so.
func (t *TLS) finish(c *goroutineConn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.forget(c)
}

func (t *TLS) forget(c *goroutineConn) bool {
	s := c.secure
	if s.place == nil {
		return false
	}
	t.ongoing.Remove(s.place)
	s.place = nil
	if c.session == nil {
		t.refusing--
	}
	return true
}

// handshake reports whether the connection may be served now.
func (c *goroutineConn) handshake() bool {
	s := c.secure
	defer s.by.finish(c)
	_ = c.socket.SetDeadline(time.Now().Add(handshakeTime))
	if c.at() == cut { // SetDeadline may just have overwritten Close's deadline
		return false
	}
	err := s.shake(c.carrier.turns)
	tooOld := !s.by.finish(c)
	switch plain := (tls.RecordHeaderError{}); {
	case tooOld:
		err = errOldest
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = errSlow
	case errors.As(err, &plain) && plain.Conn != nil && s.by.Plainly != "":
		_ = c.socket.SetWriteDeadline(time.Now().Add(refusalTime))
		_, _ = c.socket.Write([]byte(s.by.Plainly))
	}
	switch {
	case err == nil:
	case errors.Is(err, io.EOF) && !s.below.heard: // a look whether the port is open
		return false
	default:
		c.carrier.t.server.HandshakeFailed(c.session, err)
		return false
	}
	s.below.gather = true
	_ = c.socket.SetDeadline(time.Time{})
	if c.session == nil {
		_, _ = s.Write([]byte(s.refusal))
	}
	return c.session != nil && c.at() != cut
}

// shake does the handshake. It computes only in its turns: that takes 1 ms, and a thousand at once would leave nothing for others.
func (s *secure) shake(by *turns) error {
	s.below.turns = by
	defer func() {
		s.below.endTurn()
		s.below.turns = nil
	}()
	return s.Handshake()
}

// identify tells the session whose certificate has been verified, in this handshake or in the one that it resumes. Others do not count.
func (s *secure) identify(session Session) {
	if chains := s.ConnectionState().VerifiedChains; len(chains) > 0 {
		session.Identify(chains[0][0])
	}
}

// handOver ends the goroutine of a connection whose handshake is over. An event loop carries it from here on.
func (c *goroutineConn) handOver() {
	session, over := c.session, c.secure
	c.session, c.secure = nil, nil // no longer this one's to close
	over.below.inLoop, over.below.Conn = true, nil
	c.carrier.t.loops.adopt(c.socket, session, over)
}

// hangUp closes the socket. A peer with TLS is told so, as far as it takes that at once: to some, such as OpenSSL, an end without a
// word is an attack. What the peer has sent meanwhile, such as its own farewell, is read: otherwise the kernel would break the
// connection, and what has not been read at the other end would be lost.
func (c *goroutineConn) hangUp() {
	if s := c.secure; s != nil && s.below.gather && (c.at() != cut || len(s.sealed()) == 0) {
		_ = s.CloseWrite()
		_ = c.socket.SetWriteDeadline(time.Now().Add(refusalTime))
		_, _ = c.socket.Write(s.sealed())
		if half, ok := c.socket.(interface{ CloseWrite() error }); ok && c.at() != cut && !c.paused {
			_ = half.CloseWrite()
			_ = c.socket.SetReadDeadline(time.Now().Add(refusalTime))
			_, _ = io.CopyN(io.Discard, c.socket, writeSize)
		}
	}
	c.socket.Close()
}
