package wire

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
)

// Reply is one reply, or the head of one that has elements: those follow as replies of their own, each with its own.
type Reply struct {
	Kind byte   // the byte that it begins with: + - : $ * of RESP2, _ # , ( ! = % ~ > of RESP3 besides
	Text []byte // of a line or a string; it is not empty for : # , ( and begins with txt: or another format for =
	N    int    // how many elements follow: of a map (%) keys and values
	Null bool   // the absent value; it has neither text nor elements
}

// maxReply is the longest string that a reply may have, in bytes: Redis's default.
const maxReply = 512 << 20

// ReadReply reads the next reply, or the next head or element of one, from r. Its text is valid until r is read again. An
// error is r's, io.ErrUnexpectedEOF where the connection ends within a reply, or says what came that is none.
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

// ParseReply is ReadReply of bytes in memory, and returns what follows the reply. Its text lies in b.
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

// parseHead reads the first line of a reply. length is that of the string which follows, -1 where none does.
func parseHead(line []byte) (reply Reply, length int, err error) {
	last := len(line) - 2
	if last < 1 || line[last] != '\r' {
		return Reply{}, -1, fmt.Errorf("no reply of Redis: %.200q", line)
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
	switch {
	case err != nil || n < -1:
	case n == -1 && (reply.Kind == '$' || reply.Kind == '*'):
		reply.Null = true
		return reply, -1, nil
	case n < 0 || n > maxReply:
	case reply.Kind == '$' || reply.Kind == '!' || reply.Kind == '=' && n >= len("txt:"):
		return reply, n, nil
	case reply.Kind == '*' || reply.Kind == '~' || reply.Kind == '>':
		reply.N = n
		return reply, -1, nil
	case reply.Kind == '%':
		reply.N = 2 * n
		return reply, -1, nil
	}
	return Reply{}, -1, fmt.Errorf("no reply of Redis: %.200q", line)
}

// withText takes the string of a reply, and the two bytes behind it.
func (r Reply) withText(text []byte, length int) (Reply, error) {
	if len(text) < length+2 {
		return Reply{}, io.ErrUnexpectedEOF
	}
	if text[length] != '\r' || text[length+1] != '\n' {
		return Reply{}, fmt.Errorf("no reply of Redis: a string of %d bytes with %q behind it", length, text[length:])
	}
	r.Text = text[:length:length]
	return r, nil
}
