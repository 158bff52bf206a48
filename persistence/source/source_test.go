package source

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// readFile is a file whose reads in order differ from those at a place.
type readFile struct {
	io.Reader
	io.ReaderAt
}

// Take returns the bytes of the file and their checksum, whatever is taken, and in whatever pieces it is read.
func TestTake(t *testing.T) {
	if sum := Checksum(0, []byte("123456789")); sum != 0xe9c6d914c4b8d9ca { // the check value of CRC-64/REDIS
		t.Errorf("%x", sum)
	}
	rapid.Check(t, func(t *rapid.T) {
		file := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "file")
		var read atomic.Int64
		r := readFile{bytes.NewReader(file), bytes.NewReader(file)}
		if rapid.Bool().Draw(t, "bytewise") {
			r.Reader = iotest.OneByteReader(r.Reader)
		}
		s := New(r, int64(len(file)), &read)
		s.buf = make([]byte, 0, rapid.IntRange(1, 20).Draw(t, "buffer"))
		at, began := 0, 0
		for s.Left() > 0 {
			n := rapid.IntRange(1, len(file)-at+1).Draw(t, "n")
			switch rapid.IntRange(0, 3).Draw(t, "how") {
			case 0:
				s.StartChecksum()
				began, n = at, 0
			case 1:
				if b, err := s.Byte(); err != nil || b != file[at] {
					t.Fatalf("byte %d: %d, %v", at, b, err)
				}
				n = 1
			case 2:
				if err := s.Fill(n); err != nil && len(s.Rest()) == 0 {
					t.Fatal(err)
				}
				n = min(n, len(s.Rest()))
				if got := s.Rest()[:n]; !slices.Equal(got, file[at:at+n]) {
					t.Fatalf("%d bytes from %d: %q", n, at, got)
				}
				s.Skip(n)
			default:
				b, err := s.Take(uint64(n))
				if n > len(file)-at {
					if !errors.Is(err, ErrEnd) {
						t.Fatalf("more than there is: %v", err)
					}
					n = 0
				} else if err != nil || !slices.Equal(b, file[at:at+n]) {
					t.Fatalf("%d bytes from %d: %q, %v", n, at, b, err)
				}
			}
			if at += n; s.At() != int64(at) || s.Left() != int64(len(file)-at) || s.Size() != int64(len(file)) {
				t.Fatalf("at %d, %d are left; want %d", s.At(), s.Left(), at)
			}
			ahead := s.Ahead()
			rest, err := ahead.Take(uint64(len(file) - at))
			if err != nil || !slices.Equal(rest, file[at:]) || ahead.At() != int64(len(file)) {
				t.Fatalf("ahead of %d: %q, %v, at %d", at, rest, err, ahead.At())
			}
			if sum := s.Checksum(); sum != Checksum(0, file[began:at]) {
				t.Fatalf("the checksum of %d to %d is %x", began, at, sum)
			}
		}
		if read.Load() != int64(len(file)) {
			t.Errorf("%d bytes are told to be read, of %d", read.Load(), len(file))
		}
	})
}

// A file may become shorter while it is read, and a disk may fail.
func TestWhatCannotBeRead(t *testing.T) {
	if _, err := New(bytes.NewReader([]byte("abc")), 5, nil).Take(5); !errors.Is(err, ErrEnd) {
		t.Errorf("a file that has become shorter: %v", err)
	}
	lost := errors.New("a bad sector")
	if _, err := New(readFile{iotest.ErrReader(lost), nil}, 5, nil).Byte(); !errors.Is(err, lost) {
		t.Errorf("%v", err)
	}
}

// The checksum is Redis's.
func TestJones(t *testing.T) {
	if got := Checksum(0, []byte("123456789")); got != 0xe9c6d914c4b8d9ca {
		t.Errorf("%016x", got)
	}
	if got := Checksum(Checksum(0, []byte("1234")), []byte("56789")); got != 0xe9c6d914c4b8d9ca {
		t.Errorf("in two parts %016x", got)
	}
}
