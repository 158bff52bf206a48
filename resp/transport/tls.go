package transport

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"time"
)

// mostSealed bounds what TLS answers by itself to a peer that reads nothing, but changes its keys over and over. Replies are sealed
// when the socket has taken those before, and are less.
const mostSealed = 2 * writeSize

// refusalTime is for a line that fits any socket buffer, such as a refusal or the farewell.
const refusalTime = 100 * time.Millisecond

var errReadsNothing = errors.New("it reads nothing")

// secure is the TLS of a connection.
//
// After a write that ended in the middle, crypto/tls refuses all later ones: the peer would miss a part of a record. So once the
// handshake is over, TLS writes to memory, where no write fails. The connection sends that to the socket as it sends plain replies.
type secure struct {
	*tls.Conn
	below    *below
	farewell bool   // in a loop: TLS reads nothing any more
	behind   []byte // decrypted while the session waited, and not served yet
}

// mostBehind bounds what is read of a peer whose session waits. Only TLS itself can see the peer's farewell, and that stands behind all
// that the peer has sent. One that stands behind more than this is met when the session goes on.
const mostBehind = 16 << 10

// listens reports whether a connection is to be read while its session waits.
func (s *secure) listens() bool { return s != nil && !s.farewell && len(s.behind) < mostBehind }

// sealed is what the socket is to take.
func (s *secure) sealed() []byte { return s.below.toWrite[s.below.sent:] }

// below is the socket as TLS sees it.
type below struct {
	net.Conn        // the handshake's, then the socket; an event loop does not use it
	arrived  []byte // is read before the socket is
	inLoop   bool   // nothing else is read
	gather   bool   // writes go to toWrite
	toWrite  []byte // records
	sent     int    // how many bytes of them the socket has taken
	spares   *spares
}

// Read waits for nothing in an event loop: it says that its time is over, which is the one error that crypto/tls does not remember.
func (b *below) Read(p []byte) (n int, err error) {
	switch {
	case len(b.arrived) > 0:
		n = copy(p, b.arrived)
		b.arrived = b.arrived[n:]
		return n, nil
	case b.inLoop:
		return 0, os.ErrDeadlineExceeded
	}
	b.arrived = nil // an idle connection does without
	return b.Conn.Read(p)
}

func (b *below) Write(p []byte) (int, error) {
	if !b.gather {
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

// sayFarewell tells the peer that nothing follows, as far as it takes that at once: to some, such as OpenSSL, an end without a word is an
// attack. With reads, what the peer has sent meanwhile, such as its own farewell, is read: otherwise the kernel would break the connection,
// and what has not been read at the other end would be lost. A connection that is cut says nothing within a record.
func (s *secure) sayFarewell(socket net.Conn, isCut, reads bool) {
	if isCut && len(s.sealed()) > 0 {
		return
	}
	_ = s.CloseWrite()
	_ = socket.SetWriteDeadline(time.Now().Add(refusalTime))
	_, _ = socket.Write(s.sealed())
	if half, ok := socket.(interface{ CloseWrite() error }); ok && !isCut && reads {
		_ = half.CloseWrite()
		_ = socket.SetReadDeadline(time.Now().Add(refusalTime))
		_, _ = io.CopyN(io.Discard, socket, writeSize)
	}
}
