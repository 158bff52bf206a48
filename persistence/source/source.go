// Package source reads a file of Redis's from start to end. It does not know what is in it:
//
//	src := source.New(file, size, &done)
//	args, n := parse(src.Rest())
//	src.Skip(n)
//
// It holds one buffer, and knows the position and the checksum of what was taken. Snapshots and append-only files both prove by such a
// checksum that they are whole.
package source

import (
	"errors"
	"hash/crc64"
	"io"
	"sync/atomic"
)

// jones is the CRC that Redis uses: CRC-64 with the polynomial of Jones, reflected, starting at 0.
var jones = crc64.MakeTable(0x95ac9329ac4bc9b5)

// Checksum returns the CRC-64 of Redis of more bytes. It starts at 0.
func Checksum(crc uint64, more []byte) uint64 { return ^crc64.Update(^crc, jones, more) }

// ErrEnd means that the file ends too early.
var ErrEnd = errors.New("the file ends in the middle")

// File is what a Source reads.
type File interface {
	io.Reader
	io.ReaderAt
}

// Source is a file that is being read.
type Source struct {
	r      File
	size   int64 // of the file
	buf    []byte
	pos    int
	offset int64 // of buf[0]

	crc  uint64 // of what was taken, up to buf[seen]
	seen int

	progress *atomic.Int64 // nil: nobody asks
}

// New returns the Source of a file of so many bytes. It adds the bytes that it has read to progress, unless that is nil.
func New(r File, size int64, progress *atomic.Int64) *Source {
	return &Source{r: r, size: size, buf: make([]byte, 0, 1<<20), progress: progress}
}

// Ahead is another Source of the same file, from the position on. To read it leaves s as it is.
func (s *Source) Ahead() *Source {
	return &Source{r: io.NewSectionReader(s.r, s.At(), s.Left()), size: s.size, offset: s.At(), buf: make([]byte, 0, 1<<20)}
}

// At is the position in bytes: how much was taken.
func (s *Source) At() int64 { return s.offset + int64(s.pos) }

// Left is how many bytes of the file are still to be taken.
func (s *Source) Left() int64 { return s.size - s.At() }

// Size is the size of the whole file in bytes.
func (s *Source) Size() int64 { return s.size }

// Take returns the next n bytes, which are valid until the next call. It checks n against the size of the file first, so a length in a
// damaged file costs no memory. The error is ErrEnd, or the error of the file.
func (s *Source) Take(n uint64) ([]byte, error) {
	if n > uint64(s.Left()) {
		return nil, ErrEnd
	}
	for int(n) > len(s.buf)-s.pos {
		if err := s.Fill(int(n)); err != nil {
			return nil, err
		}
	}
	b := s.buf[s.pos : s.pos+int(n)]
	s.pos += int(n)
	return b, nil
}

// Byte is Take of one byte.
func (s *Source) Byte() (byte, error) {
	if s.pos < len(s.buf) {
		s.pos++
		return s.buf[s.pos-1], nil
	}
	b, err := s.Take(1)
	if err != nil {
		return 0, err
	}
	return b[0], nil
}

// Rest is what was read and not taken. It is valid until the next call of Fill or Take.
func (s *Source) Rest() []byte { return s.buf[s.pos:] }

// Skip takes n bytes of Rest.
func (s *Source) Skip(n int) { s.pos += n }

// Fill reads more of the file into Rest, which then has room for n bytes. The error is ErrEnd where the file has become shorter.
func (s *Source) Fill(n int) error {
	s.Checksum()
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
		return ErrEnd
	}
	return err
}

// Checksum is the checksum of all that was taken since StartChecksum, or since the start.
func (s *Source) Checksum() uint64 {
	s.crc = Checksum(s.crc, s.buf[s.seen:s.pos])
	s.seen = s.pos
	return s.crc
}

// StartChecksum begins the checksum at the position.
func (s *Source) StartChecksum() { s.crc, s.seen = 0, s.pos }
