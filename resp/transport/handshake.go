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
	"sync/atomic"
	"time"
)

// TLS says how a Listener's connections are encrypted.
type TLS struct {
	Config   func() *tls.Config // of a new connection
	Most     func() int64       // most unfinished handshakes: one more ends the oldest
	Plainly  string             // what a peer is told in plain text that speaks no TLS; empty: nothing
	ongoing  list.List          // *handshake that are unfinished, oldest first
	mu       sync.Mutex         // guards the fields around it
	refusing int                // how many of them are only to hear why they are not served
}

// handshakeTime is the longest that a handshake may take, in all.
const handshakeTime = 10 * time.Second

// mostRefusing bounds connections that have no place and only wait to hear that in TLS. Descriptors are kept for 32.
const mostRefusing = 16

var (
	errOldest = errors.New("too many handshakes were unfinished, and this was the oldest")
	errSlow   = errors.New("it took longer than 10 seconds")
)

// handshakes are those of all connections.
type handshakes struct {
	goroutines
	permits permits
}

// handshake is a connection whose handshake is not over. It computes only with a permit: that takes 1 ms, and a thousand at once would
// leave nothing for others. To crypto/tls it is the socket.
type handshake struct {
	net.Conn
	t       *Transport
	by      *TLS
	session Session // nil: it is only told why it is not served
	refusal string
	over    *secure
	place   *list.Element // in by.ongoing
	cut     atomic.Bool
	heard   bool // the peer has sent something
	begun   bool // the peer has got an answer
	inTurn  bool
}

// shake takes over a connection with TLS. The handshake has a goroutine. Meanwhile the connection has its place among maxclients, as in
// Redis, and nobody sees it. When there is no place, it is closed without a word.
func (t *Transport) shake(ctx context.Context, conn net.Conn, by *TLS) {
	h := &handshake{Conn: conn, t: t, by: by}
	below := &below{Conn: h}
	h.over = &secure{Conn: tls.Server(below, by.Config()), below: below}
	var full bool
	if h.session, h.refusal, full = t.admit(ctx, conn); h.session == nil && (full || !by.mayRefuse()) {
		conn.Close()
		return
	}
	by.begin(h)
	t.handshakes.start(h, h.run, h.giveUp)
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
func (t *TLS) begin(h *handshake) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for int64(t.ongoing.Len()) >= t.Most() {
		oldest := t.ongoing.Front().Value.(*handshake)
		t.forget(oldest)
		oldest.giveUp()
	}
	h.place = t.ongoing.PushBack(h)
}

// finish takes a handshake from the unfinished ones. It returns false if begin has done so.
func (t *TLS) finish(h *handshake) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.forget(h)
}

func (t *TLS) forget(h *handshake) bool {
	if h.place == nil {
		return false
	}
	t.ongoing.Remove(h.place)
	h.place = nil
	if h.session == nil {
		t.refusing--
	}
	return true
}

func (h *handshake) giveUp() {
	h.cut.Store(true)
	_ = h.SetDeadline(time.Unix(1, 0))
}

// run does the handshake, and hands the connection to the carrier.
func (h *handshake) run() {
	defer h.t.handshakes.ended(h)
	served := false
	defer func() {
		if cause := recover(); cause != nil {
			h.t.server.Panicked(cause, "connection", h.session)
		}
		if served {
			return
		}
		h.Conn.Close()
		if h.session != nil {
			h.session.Closed()
		}
	}()
	if !h.succeeds() {
		return
	}
	h.over.below.Conn, h.over.below.gather = h.Conn, true
	_ = h.SetDeadline(time.Time{})
	switch {
	case h.session == nil:
		_, _ = h.over.Write([]byte(h.refusal))
		h.over.sayFarewell(h.Conn, h.cut.Load(), true)
	case !h.cut.Load():
		served = true
		h.t.carrier.adopt(h.Conn, h.session, h.over)
	}
}

// succeeds does the handshake. It returns false after it has said what failed.
func (h *handshake) succeeds() bool {
	defer h.by.finish(h)
	defer h.endTurn()
	_ = h.SetDeadline(time.Now().Add(handshakeTime))
	if h.cut.Load() { // SetDeadline may just have overwritten giveUp's deadline
		if !h.by.finish(h) { // it was the oldest before it has run
			h.t.server.HandshakeFailed(h.session, errOldest)
		}
		return false
	}
	err := h.over.Handshake()
	tooOld := !h.by.finish(h)
	switch plain := (tls.RecordHeaderError{}); {
	case tooOld:
		err = errOldest
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = errSlow
	case errors.As(err, &plain) && plain.Conn != nil && h.by.Plainly != "":
		refuse(h.Conn, h.by.Plainly)
	}
	if err != nil && (h.heard || !errors.Is(err, io.EOF)) { // else a look whether the port is open
		h.t.server.HandshakeFailed(h.session, err)
	}
	return err == nil
}

// mostAhead is for a whole ClientHello, which crypto/tls reads in two parts: each part by itself would wait for a permit.
const mostAhead = 4 << 10

// Read releases the permit while it waits for the peer. So does Write.
func (h *handshake) Read(p []byte) (n int, err error) {
	h.endTurn()
	if h.begun {
		n, err = h.Conn.Read(p)
	} else {
		ahead := make([]byte, mostAhead)
		n, err = h.Conn.Read(ahead)
		ahead = ahead[:n]
		n = copy(p, ahead)
		h.over.below.arrived = ahead[n:]
	}
	h.heard = h.heard || n > 0
	h.beginTurn()
	if h.cut.Load() { // while it waited for a permit
		return 0, net.ErrClosed
	}
	return n, err
}

func (h *handshake) Write(p []byte) (int, error) {
	h.endTurn()
	defer h.beginTurn()
	h.begun = true
	return h.Conn.Write(p)
}

func (h *handshake) beginTurn() {
	h.t.handshakes.permits.acquire(h.begun)
	h.inTurn = true
}

func (h *handshake) endTurn() {
	if h.inTurn {
		h.inTurn = false
		h.t.handshakes.permits.release()
	}
}

// permits bounds how many handshakes compute at a time. Those that have begun to answer their peer go first: their
// work would be lost if newer ones kept them waiting for too long. Within both kinds the first to come goes first.
type permits struct {
	mu      sync.Mutex
	free    int
	waiting [2][]chan struct{} // those that have begun, and the others
}

// acquire waits for a permit, which ends with release.
func (t *permits) acquire(begun bool) {
	t.mu.Lock()
	if t.free > 0 {
		t.free--
		t.mu.Unlock()
		return
	}
	kind, permit := 1, make(chan struct{})
	if begun {
		kind = 0
	}
	t.waiting[kind] = append(t.waiting[kind], permit)
	t.mu.Unlock()
	<-permit
}

func (t *permits) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, waiting := range t.waiting {
		if len(waiting) > 0 {
			close(waiting[0])
			t.waiting[i] = waiting[1:]
			return
		}
	}
	t.free++
}
