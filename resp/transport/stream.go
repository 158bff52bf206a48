package transport

import "sync/atomic"

// stream is what a connection holds of its session's input and output, whichever way it is carried.
type stream struct {
	session Session
	secure  *secure // TLS, whose handshake is done; nil: none

	out   []byte // replies that have not been written (with TLS: sealed), from sent on
	sent  int
	fresh int // where in out this round's replies begin, while they wait for the disk

	life
	more   bool // the session has more to serve before the next read
	paused bool // Serve is not called until Wake
	leaves bool // while paused, it ends when its peer closes its half
}

// open gives the session its Conn, and tells it whose certificate has been verified, in this handshake or in the one that it resumes.
// Others do not count.
func (s *stream) open(c Conn, fd int) {
	s.session.Open(c, fd)
	if s.secure == nil {
		return
	}
	if chains := s.secure.ConnectionState().VerifiedChains; len(chains) > 0 {
		s.session.Identify(chains[0][0])
	}
}

func (s *stream) Pause(abandons bool) { s.paused, s.leaves = true, abandons }

// arrived returns the input to serve before anything is read: the rest of the last read, for which data is nil, or what TLS has
// decrypted while the session waited.
func (s *stream) arrived() (data []byte, ok bool) {
	switch {
	case s.paused:
		return nil, false
	case s.more:
		return nil, true
	case s.hasBehind():
		data, s.secure.behind = s.secure.behind, nil
		return data, true
	}
	return nil, false
}

func (s *stream) hasBehind() bool { return s.secure != nil && len(s.secure.behind) > 0 }

// confirm passes the round's replies through Confirm.
func (s *stream) confirm(err error) {
	s.out = append(s.out[:s.fresh], s.session.Confirm(s.out[s.fresh:], err)...)
	s.fresh = len(s.out)
}

// pending is how many bytes the socket has not taken.
func (s *stream) pending() int {
	n := len(s.out) - s.sent
	if s.secure != nil {
		n += len(s.secure.sealed())
	}
	return n
}

// next returns what the socket is to take next. With TLS, replies are sealed when it has taken those before, at most writeSize of them.
func (s *stream) next() (p []byte, err error) {
	if s.secure == nil {
		return s.out[s.sent:], nil
	}
	if len(s.secure.sealed()) == 0 && s.sent < len(s.out) {
		if b := s.secure.below; b.toWrite == nil {
			b.toWrite = b.spares.borrow()
		}
		var n int
		n, err = s.secure.Write(s.out[s.sent:min(len(s.out), s.sent+writeSize)])
		s.sent += n
	}
	return s.secure.sealed(), err
}

// took notes that the socket has taken the first n bytes of next's. An idle connection with TLS holds no buffer.
func (s *stream) took(n int) {
	if s.secure == nil {
		s.sent += n
		return
	}
	b := s.secure.below
	if b.sent += n; b.sent == len(b.toWrite) {
		b.spares.giveBack(b.toWrite)
		b.sent, b.toWrite = 0, nil
	}
}

// writeSize is the most that is sealed, or that a goroutine writes, at once.
const writeSize = 64 << 10

// flushAt is how many reply bytes a connection has that writes before the end of the round.
const flushAt = 64 << 10

// spares are output buffers between uses. A connection with a goroutine has none: nil.
type spares [][]byte

// borrow returns an empty buffer.
func (s *spares) borrow() (buf []byte) {
	if s == nil || len(*s) == 0 {
		return nil
	}
	last := len(*s) - 1
	buf, *s = (*s)[last], (*s)[:last]
	return buf
}

// giveBack keeps a buffer, unless it has become large.
func (s *spares) giveBack(buf []byte) {
	if s != nil && buf != nil && cap(buf) <= 2*flushAt && len(*s) < 64 {
		*s = append(*s, buf[:0])
	}
}

// phase is the state of a connection. It only goes up.
type phase int32

const (
	fresh   phase = iota // nobody reads from it yet
	open                 // it is served
	closing              // it ends when its replies have left, or when its peer reads nothing for 10 s
	cut                  // it ends as soon as Serve returns, and unsent replies are lost
	gone                 // its socket is closed, and its session knows
)

// life is a connection's phase. Any goroutine may read it and raise it.
type life struct{ phase atomic.Int32 }

func (l *life) at() phase { return phase(l.phase.Load()) }

// reach raises the phase to p, and reports whether it was lower before.
func (l *life) reach(p phase) bool {
	for {
		old := l.phase.Load()
		if old >= int32(p) {
			return false
		}
		if l.phase.CompareAndSwap(old, int32(p)) {
			return true
		}
	}
}
