package persistence

import (
	"errors"
	"io"
	"sync/atomic"
)

// source reads a file from start to end through one buffer, and knows its position and checksum.
type source struct {
	r      io.Reader
	size   int64 // of the file
	buf    []byte
	pos    int
	offset int64 // of buf[0]

	crc  uint64 // of what was taken, up to buf[seen]
	seen int

	progress *atomic.Int64 // nil: nobody asks
}

func newSource(r io.Reader, size int64, progress *atomic.Int64) *source {
	return &source{r: r, size: size, buf: make([]byte, 0, 1<<20), progress: progress}
}

func (s *source) at() int64 { return s.offset + int64(s.pos) }

func (s *source) left() int64 { return s.size - s.at() }

// errEnd means that the file ends too early.
var errEnd = errors.New("the file ends in the middle")

// take returns the next n bytes, which are valid until the next call. It checks n against the size of the file first, so a
// length in a damaged file costs no memory.
func (s *source) take(n uint64) ([]byte, error) {
	if n > uint64(s.left()) {
		return nil, errEnd
	}
	for int(n) > len(s.buf)-s.pos {
		if err := s.fill(int(n)); err != nil {
			return nil, err
		}
	}
	b := s.buf[s.pos : s.pos+int(n)]
	s.pos += int(n)
	return b, nil
}

func (s *source) byte() (byte, error) {
	if s.pos < len(s.buf) {
		s.pos++
		return s.buf[s.pos-1], nil
	}
	b, err := s.take(1)
	if err != nil {
		return 0, err
	}
	return b[0], nil
}

// fill reads more of the file. It makes room for n bytes from pos on.
func (s *source) fill(n int) error {
	s.checksum()
	rest := copy(s.buf, s.buf[s.pos:])
	s.offset += int64(s.pos)
	s.pos, s.seen, s.buf = 0, 0, s.buf[:rest]
	if n > cap(s.buf) {
		s.buf = append(make([]byte, 0, max(n, 2*cap(s.buf))), s.buf...)
	}
	read, err := s.r.Read(s.buf[rest:cap(s.buf)])
	s.buf = s.buf[:rest+read]
	if s.progress != nil {
		s.progress.Add(int64(read))
	}
	switch {
	case read > 0:
		return nil
	case errors.Is(err, io.EOF):
		return errEnd // the file has become shorter
	}
	return err
}

// checksum returns the checksum of all that was taken.
func (s *source) checksum() uint64 {
	s.crc = jonesUpdate(s.crc, s.buf[s.seen:s.pos])
	s.seen = s.pos
	return s.crc
}
