package wire

import (
	"bytes"
	"fmt"
	"strconv"
)

// maxLine is the longest inline command and the longest length line, in bytes: Redis's PROTO_INLINE_MAX_SIZE.
const maxLine = 64 << 10

// Redis's limits for peers that have not authenticated, which must not make the server hold much.
const (
	unauthedMaxArgs = 10
	unauthedMaxBulk = 16 << 10
)

// Limits bound one command that is an array. An inline command has at most 64 KB, whatever they say. The zero value refuses
// every array that has arguments.
type Limits struct {
	MaxArgs int  // arguments, the command's name included
	MaxBulk int  // bytes of one argument
	Authed  bool // false: the peer has not authenticated, so at most 10 arguments of 16 KB each
}

// FrameReader finds the commands in the bytes of a connection: arrays of bulk strings, or lines of words (inline). Its zero
// value is ready to use. It remembers where it stopped, so a command that arrives byte by byte costs no more than one that
// arrives whole. Otherwise a peer could make the server scan megabytes again for each byte it sends.
type FrameReader struct {
	first   int // where the command's first argument begins, with its length line
	pos     int // bytes of the command that are parsed
	scanned int // bytes of the current line in which there is no end of line
	missing int // arguments still to come
	bulk    int // length of the argument to come, or noBulk when its length line is to come
	inFrame bool
	count   int32 // arguments of the command

	gathering *gathering // nil: the bytes of the command are not all there, or it has few arguments
}

// gathering is how far Next has come with the arguments of a command whose bytes are all there.
type gathering struct {
	args [][]byte
	in   *byte // the first of the bytes that the arguments are slices of
	pos  int
}

// gatherStep is how many arguments Next returns at once: more take it several calls, of some 0.2 ms each.
const gatherStep = 1 << 14

// Gathering reports that a command is whole, and that Next only needs to be called again with the same bytes.
func (r *FrameReader) Gathering() bool { return r.gathering != nil }

const noBulk = -1

// ProtocolError means that the rest of the stream cannot be read. Its text is that of the error reply, without the minus sign,
// which Redis sends before it closes the connection.
type ProtocolError string

func (e ProtocolError) Error() string { return string(e) }

// ErrTLS is for a client that speaks TLS to a port without. It reads this as a bad record. Redis would wait for a line.
const ErrTLS ProtocolError = "ERR Protocol error: this port takes no TLS"

// The errors of a FrameReader, in Redis's words (networking.c). The only other one is "expected '$', got 'x'".
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

// Next returns the arguments of the command at the start of buf, and its length n in bytes.
//
//   - n is 0 and err nil: the command is incomplete. Call Next again with the same bytes and those that follow them. Where Gathering is
//     true, it is whole, and has so many arguments that others may be served before Next is called again.
//   - n is positive without arguments: the command is empty (`*0`, a blank line), and has no reply.
//   - err is a ProtocolError: the reader cannot go on.
//
// The arguments of an array are slices of buf; those of an inline command are copies. Next uses the memory of room for the
// slice that it returns, if that is large enough; room may be nil.
func (r *FrameReader) Next(buf []byte, room [][]byte, limits Limits) (args [][]byte, n int, err error) {
	if r.Idle() {
		if args, n := Whole(buf, room, limits); n > 0 {
			return args, n, nil
		}
	}
	if r.Gathering() {
		return r.gather(buf, room)
	}
	if !r.inFrame {
		switch {
		case len(buf) == 0:
			return nil, 0, nil
		case buf[0] != '*':
			return r.inline(buf)
		}
		if err := r.begin(buf, limits); err != nil || !r.inFrame {
			return nil, 0, err
		}
		if r.missing == 0 {
			return nil, r.done(), nil
		}
	}
	for r.missing > 0 {
		if passed, err := r.passArgument(buf, limits); !passed {
			return nil, 0, err
		}
	}
	return r.gather(buf, room)
}

// begin reads the line of an array that says how many arguments there are, if it is all there.
func (r *FrameReader) begin(buf []byte, limits Limits) error {
	line, ok, err := r.line(buf, ErrMultibulkLine)
	if !ok {
		return err
	}
	count, isInt := parseInt(line[1:])
	switch {
	case !isInt || count > limits.MaxArgs:
		return ErrMultibulkLen
	case count > unauthedMaxArgs && !limits.Authed:
		return ErrMultibulkUnauthed
	}
	count = max(count, 0)
	r.inFrame, r.count, r.missing, r.bulk, r.first = true, int32(count), count, noBulk, r.pos
	return nil
}

// passArgument goes past the next argument with its length line. It returns false where a part of it is missing, or wrong.
func (r *FrameReader) passArgument(buf []byte, limits Limits) (passed bool, err error) {
	if r.bulk == noBulk {
		line, ok, err := r.line(buf, ErrBulkLine)
		if !ok {
			return false, err
		}
		if r.bulk, err = bulkLength(line, limits); err != nil {
			return false, err
		}
	}
	if len(buf)-r.pos < r.bulk+2 { // the two bytes after an argument are skipped unseen, as in Redis
		return false, nil
	}
	r.pos += r.bulk + 2
	r.bulk = noBulk
	r.missing--
	return true, nil
}

// bulkLength reads the length line of an argument.
func bulkLength(line []byte, limits Limits) (int, error) {
	if len(line) == 0 || line[0] != '$' {
		return 0, ProtocolError(fmt.Sprintf("ERR Protocol error: expected '$', got '%s'", firstByte(line)))
	}
	length, isInt := parseInt(line[1:])
	switch {
	case !isInt || length < 0 || length > limits.MaxBulk:
		return 0, ErrBulkLen
	case length > unauthedMaxBulk && !limits.Authed:
		return 0, ErrBulkUnauthed
	}
	return length, nil
}

// gather goes through the arguments again, as to remember where they are took more memory than one-byte arguments do.
func (r *FrameReader) gather(buf []byte, room [][]byte) (args [][]byte, n int, err error) {
	buf = buf[:r.pos]
	g := gathering{room[:0], &buf[0], r.first}
	switch {
	case r.gathering != nil && r.gathering.in == g.in:
		g = *r.gathering
	case int(r.count) > cap(room): // or the bytes have been moved, and it begins again
		g.args = make([][]byte, 0, r.count)
	}
	for range gatherStep {
		if g.pos == len(buf) {
			return g.args, r.done(), nil
		}
		length, start, ok := ReadLength(buf, g.pos+1)
		if !ok { // it has many digits, or is not written as clients write it
			end := g.pos + bytes.IndexByte(buf[g.pos:], '\r')
			length, _ = parseInt(buf[g.pos+1 : end])
			start = end + 2
		}
		g.args = append(g.args, buf[start:start+length:start+length])
		g.pos = start + length + 2
	}
	left := g
	r.gathering = &left
	return nil, 0, nil
}

// Whole reads in one pass a command that is complete and written as clients write it, and returns its arguments as Next does, and
// its length in bytes. For anything else the length is 0, and Next is to look at it. It keeps no state, so it is tried only at the
// start of a command.
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

// ReadLength reads a length of up to 6 digits that begins at buf[at], and the CR LF behind it. next is the index after these.
// ok is false where anything else stands there, or a part of it is missing: FrameReader tells which.
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

// parseInt reads a number as Redis's string2ll does. strconv alone would accept +5 and 007, which are not lengths.
func parseInt(b []byte) (int, bool) {
	n, err := strconv.Atoi(string(b))
	return n, err == nil && strconv.Itoa(n) == string(b)
}

// Idle reports whether the reader is between two commands.
func (r *FrameReader) Idle() bool { return !r.inFrame && r.pos == 0 && r.scanned == 0 }

// line returns the line at pos without its end. Like Redis it looks for CR only, and skips the byte behind it unseen.
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
		switch r.scanned = len(buf); {
		case r.scanned > maxLine:
			return nil, 0, ErrInline
		case len(buf) >= 3 && buf[0] == 0x16 && buf[1] == 3 && buf[2] <= 4: // TLS's handshake
			return nil, 0, ErrTLS
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

// done resets the reader after a command, and returns the length of that.
func (r *FrameReader) done() int {
	n := r.pos
	*r = FrameReader{}
	return n
}

func firstByte(line []byte) []byte {
	if len(line) == 0 {
		return []byte{'\r'}
	}
	return line[:1]
}
