package resp

import (
	"bytes"
	"fmt"
)

// maxLine bounds an inline command and each length line, as PROTO_INLINE_MAX_SIZE does in Redis.
const maxLine = 64 << 10

// A peer that has not authenticated may not make the server hold much: Redis's bounds.
const (
	unauthedMaxArgs = 10
	unauthedMaxBulk = 16 << 10
)

// frameLimits bound what one command may be.
type frameLimits struct {
	maxArgs int
	maxBulk int
	authed  bool
}

// frameReader cuts commands out of the bytes of a connection, in the framing of RESP (an array of bulk strings) or
// inline (a line of words). It keeps where it stopped, so that a command that arrives a byte at a time costs no more than
// one that arrives whole: without that, a peer could have megabytes scanned anew for each byte it sends.
//
// redcon 1.6.2 has such a reader, but not a safe one: of `*1\r\n$9223372036854775807\r\n` its server panics with an index
// out of range, of `*1\r\n$-2\r\n` ReadNextCommand with a slice out of bounds. Both end the process.
type frameReader struct {
	spans   []span // arguments found so far, relative to the start of the command
	args    [][]byte
	pos     int // bytes of the command that are parsed
	scanned int // bytes of the current line in which there is no end of line
	missing int // arguments still to come
	bulk    int // length of the argument to come, or noBulk when its length line is to come
	inFrame bool
}

type span struct{ start, end int }

const noBulk = -1

// protocolError is an error after which the rest of the stream has no meaning: it is answered, and the connection closed.
type protocolError string

func (e protocolError) Error() string { return string(e) }

// next returns the arguments of the command at the start of buf and the length of the command. A length of 0 means that
// it is not whole: call again with the same bytes and those that followed. No arguments with a length is an empty
// command, to be skipped. The arguments lie in buf, or for an inline command in memory of their own, until the next call.
func (r *frameReader) next(buf []byte, limits frameLimits) (args [][]byte, n int, err error) {
	if r.idle() {
		if n := r.whole(buf, limits); n > 0 {
			return r.args, n, nil
		}
	}
	if !r.inFrame {
		if len(buf) == 0 {
			return nil, 0, nil
		}
		if buf[0] != '*' {
			return r.inline(buf)
		}
		line, ok, err := r.line(buf, errProtoMultibulkLine)
		if !ok {
			return nil, 0, err
		}
		count, isInt := parseInt(line[1:])
		switch {
		case !isInt || count > int64(limits.maxArgs):
			return nil, 0, protocolError(errProtoMultibulkLen)
		case count > unauthedMaxArgs && !limits.authed:
			return nil, 0, protocolError(errProtoMultibulkUnauthed)
		case count <= 0:
			return nil, r.done(), nil
		}
		r.inFrame, r.missing, r.bulk = true, int(count), noBulk
	}
	for r.missing > 0 {
		if r.bulk == noBulk {
			line, ok, err := r.line(buf, errProtoBulkLine)
			if !ok {
				return nil, 0, err
			}
			if len(line) == 0 || line[0] != '$' {
				return nil, 0, protocolError(fmt.Sprintf(errProtoBulkExpected, firstByte(line)))
			}
			length, isInt := parseInt(line[1:])
			switch {
			case !isInt || length < 0 || length > int64(limits.maxBulk):
				return nil, 0, protocolError(errProtoBulkLen)
			case length > unauthedMaxBulk && !limits.authed:
				return nil, 0, protocolError(errProtoBulkUnauthed)
			}
			r.bulk = int(length)
		}
		if len(buf)-r.pos < r.bulk+2 { // the two bytes after an argument are skipped unseen, as in Redis
			return nil, 0, nil
		}
		r.spans = append(r.spans, span{r.pos, r.pos + r.bulk})
		r.pos += r.bulk + 2
		r.bulk = noBulk
		r.missing--
	}
	r.args = r.args[:0]
	for _, s := range r.spans {
		r.args = append(r.args, buf[s.start:s.end:s.end])
	}
	return r.args, r.done(), nil
}

// whole reads a command that is all there and as clients write it, in one pass, and returns its length. For anything else
// it returns 0 and leaves the reader as it was. It is tried once a command: what it did is not kept.
func (r *frameReader) whole(buf []byte, limits frameLimits) int {
	if len(buf) == 0 || buf[0] != '*' || !limits.authed {
		return 0
	}
	count, i, ok := readLength(buf, 1)
	if !ok || count == 0 || count > limits.maxArgs {
		return 0
	}
	if r.args = r.args[:0]; cap(r.args) > 1024 {
		r.args = nil
	}
	for range count {
		if i >= len(buf) || buf[i] != '$' {
			return 0
		}
		length, start, ok := readLength(buf, i+1)
		if !ok || length > limits.maxBulk || len(buf)-start < length+2 {
			return 0
		}
		r.args = append(r.args, buf[start:start+length:start+length])
		i = start + length + 2
	}
	return i
}

// readLength reads a length as Redis writes them and the line end behind it, and returns the place after that. It is
// not ok for anything unusual, which the frame reader then looks at.
func readLength(buf []byte, at int) (length, next int, ok bool) {
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

// idle says that no part of a command has been read.
func (r *frameReader) idle() bool { return !r.inFrame && r.pos == 0 && r.scanned == 0 }

// held is the memory that the unfinished command costs beside its bytes, for the query buffer's limit.
func (r *frameReader) held() int { return cap(r.spans) * 16 }

// line returns the line at pos without its end. Redis looks for the CR and takes the byte after it as LF unseen.
func (r *frameReader) line(buf []byte, tooLong string) (line []byte, ok bool, err error) {
	rest := buf[r.pos:]
	i := bytes.IndexByte(rest[r.scanned:], '\r')
	if i < 0 {
		if r.scanned = len(rest); r.scanned > maxLine {
			return nil, false, protocolError(tooLong)
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
func (r *frameReader) inline(buf []byte) (args [][]byte, n int, err error) {
	i := bytes.IndexByte(buf[r.scanned:], '\n')
	if i < 0 {
		if r.scanned = len(buf); r.scanned > maxLine {
			return nil, 0, protocolError(errProtoInline)
		}
		return nil, 0, nil
	}
	if i += r.scanned; i > maxLine {
		return nil, 0, protocolError(errProtoInline)
	}
	r.pos = i + 1
	args, ok := splitInline(bytes.TrimSuffix(buf[:i], []byte{'\r'}))
	if !ok {
		return nil, 0, protocolError(errProtoQuotes)
	}
	return args, r.done(), nil
}

// done forgets the command that was just read and returns its length. Room for very many arguments is given back.
func (r *frameReader) done() int {
	n := r.pos
	spans := r.spans[:0]
	if cap(spans) > 1024 {
		spans = nil
	}
	if cap(r.args) > 1024 && len(r.args) < 64 {
		r.args = nil
	}
	*r = frameReader{spans: spans, args: r.args}
	return n
}

func firstByte(line []byte) []byte {
	if len(line) == 0 {
		return []byte{'\r'}
	}
	return line[:1]
}
