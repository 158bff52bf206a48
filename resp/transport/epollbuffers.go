//go:build linux

package transport

// flushAt is how many reply bytes a connection has that writes before the end of the round.
const flushAt = 64 << 10

// buffers are what a loop reads into. Its connections share them.
type buffers struct {
	sealed []byte // as it comes from the socket
	plain  []byte // what TLS makes of that; nil: no connection has had TLS yet
}

// spares are output buffers between uses.
type spares [][]byte

// borrow returns an empty buffer.
func (s *spares) borrow() (buf []byte) {
	if last := len(*s) - 1; last >= 0 {
		buf, *s = (*s)[last], (*s)[:last]
	}
	return buf
}

// giveBack keeps a buffer, unless it has become large.
func (s *spares) giveBack(buf []byte) {
	if buf != nil && cap(buf) <= 2*flushAt && len(*s) < 64 {
		*s = append(*s, buf[:0])
	}
}
