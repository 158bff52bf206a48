package wire

import (
	"bytes"
	"fmt"
	"strconv"
)

// maxLine bounds an inline command and each length line, as PROTO_INLINE_MAX_SIZE does in Redis.
const maxLine = 64 << 10

// A peer that has not authenticated may not make the server hold much: Redis's bounds.
const (
	unauthedMaxArgs = 10
	unauthedMaxBulk = 16 << 10
)

// Limits bound what one array may be; a line typed by hand has at most 64 KB whatever they say. The zero value refuses every
// array that has arguments.
type Limits struct {
	MaxArgs int  // arguments, the command's name included
	MaxBulk int  // bytes of one argument
	Authed  bool // false: 10 arguments of 16 KB at most besides, as the peer has not authenticated
}

// FrameReader cuts commands out of the bytes of a connection: arrays of bulk strings, or lines of words (inline). Its zero
// value is ready. It keeps where it stopped, so that a command that arrives a byte at a time costs no more than one that
// arrives whole: without that, a peer could have megabytes scanned anew for each byte it sends.
type FrameReader struct {
	spans   []span // arguments found so far, relative to the start of the command
	pos     int    // bytes of the command that are parsed
	scanned int    // bytes of the current line in which there is no end of line
	missing int    // arguments still to come
	bulk    int    // length of the argument to come, or noBulk when its length line is to come
	inFrame bool
}

type span struct{ start, end int }

const noBulk = -1

// ProtocolError is an error after which the rest of the stream has no meaning: it is the text of the error reply, without
// its minus sign, that Redis sends before it closes the connection.
type ProtocolError string

func (e ProtocolError) Error() string { return string(e) }

// Redis's texts. A byte where a $ should be is the only other error.
const (
	ErrInline            ProtocolError = "ERR Protocol error: too big inline request"
	ErrQuotes            ProtocolError = "ERR Protocol error: unbalanced quotes in request"
	ErrMultibulkLine     ProtocolError = "ERR Protocol error: too big mbulk count string"
	ErrMultibulkLen      ProtocolError = "ERR Protocol error: invalid multibulk length"
	ErrMultibulkUnauthed ProtocolError = "ERR Protocol error: unauthenticated multibulk length"
	ErrBulkLine          ProtocolError = "ERR Protocol error: too big bulk count string"
	ErrBulkLen           ProtocolError = "ERR Protocol error: invalid bulk length"
	ErrBulkUnauthed      ProtocolError = "ERR Protocol error: unauthenticated bulk length"
)

// Next returns the arguments of the command at the start of buf, and the length of the command in bytes. A length of 0 means
// that it is not whole: call again with the same bytes and those that followed. No arguments with a length is an empty
// command, to be skipped. An error is a ProtocolError; the reader is of no use after it.
//
// The arguments lie in buf, but those of an inline command in memory of their own. They are returned in room, or in a larger
// slice where room is too small.
func (r *FrameReader) Next(buf []byte, room [][]byte, limits Limits) (args [][]byte, n int, err error) {
	if r.Idle() {
		if args, n := Whole(buf, room, limits); n > 0 {
			return args, n, nil
		}
	}
	if !r.inFrame {
		if len(buf) == 0 {
			return nil, 0, nil
		}
		if buf[0] != '*' {
			return r.inline(buf)
		}
		line, ok, err := r.line(buf, ErrMultibulkLine)
		if !ok {
			return nil, 0, err
		}
		count, isInt := parseInt(line[1:])
		switch {
		case !isInt || count > limits.MaxArgs:
			return nil, 0, ErrMultibulkLen
		case count > unauthedMaxArgs && !limits.Authed:
			return nil, 0, ErrMultibulkUnauthed
		case count <= 0:
			return nil, r.done(), nil
		}
		r.inFrame, r.missing, r.bulk = true, count, noBulk
	}
	for r.missing > 0 {
		if r.bulk == noBulk {
			line, ok, err := r.line(buf, ErrBulkLine)
			if !ok {
				return nil, 0, err
			}
			if len(line) == 0 || line[0] != '$' {
				return nil, 0, ProtocolError(fmt.Sprintf("ERR Protocol error: expected '$', got '%s'", firstByte(line)))
			}
			length, isInt := parseInt(line[1:])
			switch {
			case !isInt || length < 0 || length > limits.MaxBulk:
				return nil, 0, ErrBulkLen
			case length > unauthedMaxBulk && !limits.Authed:
				return nil, 0, ErrBulkUnauthed
			}
			r.bulk = length
		}
		if len(buf)-r.pos < r.bulk+2 { // the two bytes after an argument are skipped unseen, as in Redis
			return nil, 0, nil
		}
		r.spans = append(r.spans, span{r.pos, r.pos + r.bulk})
		r.pos += r.bulk + 2
		r.bulk = noBulk
		r.missing--
	}
	args = room[:0]
	for _, s := range r.spans {
		args = append(args, buf[s.start:s.end:s.end])
	}
	return args, r.done(), nil
}

// Whole reads an array that is all there and as clients write it, in one pass, and returns its arguments as Next does, and its
// length in bytes. For anything else the length is 0, and Next is to look at it.
func Whole(buf []byte, room [][]byte, limits Limits) (args [][]byte, n int) {
	if len(buf) == 0 || buf[0] != '*' || !limits.Authed {
		return nil, 0
	}
	count, n, ok := ReadLength(buf, 1)
	if !ok || count == 0 || count > limits.MaxArgs {
		return nil, 0
	}
	args = room[:0]
	for range count {
		if n >= len(buf) || buf[n] != '$' {
			return nil, 0
		}
		length, start, ok := ReadLength(buf, n+1)
		if !ok || length > limits.MaxBulk || len(buf)-start < length+2 {
			return nil, 0
		}
		args = append(args, buf[start:start+length:start+length])
		n = start + length + 2
	}
	return args, n
}

// ReadLength reads the length that stands at a place in buf, as Redis writes them and in up to 6 digits, and the line end
// behind it. It returns the place after that. ok is false for anything else, and for what has not all arrived: FrameReader
// tells which.
func ReadLength(buf []byte, at int) (length, next int, ok bool) {
	i := at
	for ; i < len(buf) && i < at+6; i++ {
		digit := buf[i] - '0'
		if digit > 9 {
			break
		}
		length = length*10 + int(digit)
	}
	if i == at || i+1 >= len(buf) || buf[i] != '\r' || buf[i+1] != '\n' || buf[at] == '0' && i > at+1 {
		return 0, 0, false
	}
	return length, i + 2, true
}

// parseInt reads a number as Redis does (string2ll). strconv would let +5 and 007 pass, which must not become a length.
func parseInt(b []byte) (int, bool) {
	n, err := strconv.Atoi(string(b))
	return n, err == nil && strconv.Itoa(n) == string(b)
}

// Idle says that no part of a command has been read.
func (r *FrameReader) Idle() bool { return !r.inFrame && r.pos == 0 && r.scanned == 0 }

// Held is the memory in bytes that the unfinished command costs beside its own bytes.
func (r *FrameReader) Held() int { return cap(r.spans) * 16 }

// line returns the line at pos without its end. Redis looks for the CR and takes the byte after it as LF unseen.
func (r *FrameReader) line(buf []byte, tooLong ProtocolError) (line []byte, ok bool, err error) {
	rest := buf[r.pos:]
	i := bytes.IndexByte(rest[r.scanned:], '\r')
	if i < 0 {
		if r.scanned = len(rest); r.scanned > maxLine {
			return nil, false, tooLong
		}
		return nil, false, nil
	}
	i += r.scanned
	if i+1 >= len(rest) {
		r.scanned = i
		return nil, false, nil
	}
	r.pos += i + 2
	r.scanned = 0
	return rest[:i], true, nil
}

// inline reads a command typed by hand: words in one line.
func (r *FrameReader) inline(buf []byte) (args [][]byte, n int, err error) {
	i := bytes.IndexByte(buf[r.scanned:], '\n')
	if i < 0 {
		if r.scanned = len(buf); r.scanned > maxLine {
			return nil, 0, ErrInline
		}
		return nil, 0, nil
	}
	if i += r.scanned; i > maxLine {
		return nil, 0, ErrInline
	}
	r.pos = i + 1
	args, ok := splitInline(bytes.TrimSuffix(buf[:i], []byte{'\r'}))
	if !ok {
		return nil, 0, ErrQuotes
	}
	return args, r.done(), nil
}

// done forgets the command that was just read and returns its length. Room for very many arguments is given back.
func (r *FrameReader) done() int {
	n := r.pos
	spans := r.spans[:0]
	if cap(spans) > 1024 {
		spans = nil
	}
	*r = FrameReader{spans: spans}
	return n
}

func firstByte(line []byte) []byte {
	if len(line) == 0 {
		return []byte{'\r'}
	}
	return line[:1]
}
