package wire

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Reply is one reply, or the head of one with elements. Each element follows as a Reply of its own, behind which come its
// own elements.
type Reply struct {
	Kind byte   // its first byte: + - : $ * in RESP2; in RESP3 also _ # , ( ! = % ~ >
	Text []byte // of a line or a string. Never empty for : # , ( and for = it begins with its format, as in txt:
	N    int    // how many elements follow; for a map (%), keys and values
	Null bool   // it has neither text nor elements
}

// maxReply is the longest string in a reply, in bytes: Redis's default for proto-max-bulk-len.
const maxReply = 512 << 20

// ReadReply reads the next Reply from r. Its text is valid until the next read from r. The error is io.EOF where r ends before
// a Reply, io.ErrUnexpectedEOF where it ends within one, bufio.ErrBufferFull for a line that is longer than r's buffer,
// another error of r, or one that quotes what is no reply.
func ReadReply(r *bufio.Reader) (Reply, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		if err == io.EOF && len(line) > 0 {
			err = io.ErrUnexpectedEOF
		}
		return Reply{}, err
	}
	reply, length, err := parseHead(line)
	if err != nil || length < 0 {
		return reply, err
	}
	text, err := io.ReadAll(io.LimitReader(r, int64(length)+2)) // it grows as bytes come
	if err != nil {
		return Reply{}, err
	}
	return reply.withText(text, length)
}

// ParseReply reads the Reply at the start of b, and returns what follows it. Its text is a slice of b. The error is
// io.ErrUnexpectedEOF where b ends before the Reply does, or quotes what is no reply.
func ParseReply(b []byte) (reply Reply, rest []byte, err error) {
	end := bytes.IndexByte(b, '\n') + 1
	if end == 0 {
		return Reply{}, nil, io.ErrUnexpectedEOF
	}
	reply, length, err := parseHead(b[:end])
	if err != nil || length < 0 {
		return reply, b[end:], err
	}
	text := b[end:min(len(b), end+length+2)]
	reply, err = reply.withText(text, length)
	return reply, b[end+len(text):], err
}

// parseHead reads the first line of a reply. length is that of the string behind it, or -1 where there is none.
func parseHead(line []byte) (reply Reply, length int, err error) {
	last := len(line) - 2
	if last < 1 || line[last] != '\r' {
		return Reply{}, -1, fmt.Errorf("not a reply of Redis: %.200q", line)
	}
	reply = Reply{Kind: line[0]}
	text := line[1:last]
	switch reply.Kind {
	case '+', '-':
		reply.Text = text
		return reply, -1, nil
	case ':', '#', ',', '(':
		if reply.Text = text; len(text) > 0 {
			return reply, -1, nil
		}
	case '_':
		reply.Null = true
		return reply, -1, nil
	}
	n, err := strconv.Atoi(string(text))
	if err == nil && -1 <= n && n <= maxReply && reply.counts(n) {
		if n >= 0 && strings.IndexByte("$!=", reply.Kind) >= 0 {
			return reply, n, nil
		}
		return reply, -1, nil
	}
	return Reply{}, -1, fmt.Errorf("not a reply of Redis: %.200q", line)
}

// counts takes the number in the first line of a reply: a length or a count, and -1 for a null. It returns false where the kind has no
// such number.
func (r *Reply) counts(n int) bool {
	switch r.Kind {
	case '$', '*':
		r.Null = n < 0
	case '=':
		return n >= len("txt:")
	}
	switch r.Kind {
	case '*', '~', '>':
		r.N = max(n, 0)
	case '%':
		r.N = 2 * n
	case '$', '!':
	default:
		return false
	}
	return n >= 0 || r.Null
}

// withText checks the string of a reply, with its CR LF, and adds it.
func (r Reply) withText(text []byte, length int) (Reply, error) {
	if len(text) < length+2 {
		return Reply{}, io.ErrUnexpectedEOF
	}
	if text[length] != '\r' || text[length+1] != '\n' {
		return Reply{}, fmt.Errorf("not a reply of Redis: a string of %d bytes with %q behind it", length, text[length:])
	}
	r.Text = text[:length:length]
	return r, nil
}
