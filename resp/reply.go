package resp

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tidwall/redcon"
)

// Replies are appended to the session's output. RESP2 is written by redcon's Append functions; redcon knows no RESP3,
// so the shapes in which the two differ here (null, map, set, double, verbatim string) are written below
// (https://github.com/redis/redis-specifications/blob/master/protocol/RESP3.md).

func (s *Session) replyOK()                { s.out = append(s.out, "+OK\r\n"...) }
func (s *Session) replyStatus(text string) { s.out = redcon.AppendString(s.out, text) }
func (s *Session) replyInt(n int64)        { s.out = redcon.AppendInt(s.out, n) }
func (s *Session) replyBulk(b []byte)      { s.out = redcon.AppendBulk(s.out, b) }
func (s *Session) replyString(text string) { s.out = redcon.AppendBulkString(s.out, text) }
func (s *Session) replyArray(n int)        { s.out = redcon.AppendArray(s.out, n) }

func (s *Session) replyBool(yes bool) {
	if yes {
		s.replyInt(1)
	} else {
		s.replyInt(0)
	}
}

// replyDouble is a number with a fraction, which RESP2 sees as text.
func (s *Session) replyDouble(f float64) {
	text := strconv.FormatFloat(f, 'g', -1, 64)
	if s.resp3 {
		s.out = append(append(append(s.out, ','), text...), "\r\n"...)
	} else {
		s.replyString(text)
	}
}

// replyError appends one error line. Line breaks in what a client sent become spaces, and go at the end, as in Redis, so
// that a reply cannot be smuggled in.
func (s *Session) replyError(format string, args ...any) {
	text := format
	if len(args) > 0 {
		text = fmt.Sprintf(format, args...)
	}
	text = strings.TrimRight(text, "\r\n")
	s.out = append(s.out, '-')
	for i := range len(text) {
		if c := text[i]; c == '\r' || c == '\n' {
			s.out = append(s.out, ' ')
		} else {
			s.out = append(s.out, c)
		}
	}
	s.out = append(s.out, '\r', '\n')
}

// replyNull is the absent value: the null bulk string of RESP2, `_` of RESP3.
func (s *Session) replyNull() {
	if s.resp3 {
		s.out = append(s.out, "_\r\n"...)
	} else {
		s.out = append(s.out, "$-1\r\n"...)
	}
}

// replyNullArray is the absent array: what EXEC answers when a watched key changed.
func (s *Session) replyNullArray() {
	if s.resp3 {
		s.out = append(s.out, "_\r\n"...)
	} else {
		s.out = append(s.out, "*-1\r\n"...)
	}
}

// replyMap starts a map of n pairs, which RESP2 sees as an array of 2n.
func (s *Session) replyMap(n int) {
	if s.resp3 {
		s.replyHeader('%', n)
	} else {
		s.replyArray(2 * n)
	}
}

// replySet starts a set of n elements, which RESP2 sees as an array.
func (s *Session) replySet(n int) {
	if s.resp3 {
		s.replyHeader('~', n)
	} else {
		s.replyArray(n)
	}
}

func (s *Session) replyHeader(kind byte, n int) {
	s.out = append(s.out, kind)
	s.out = strconv.AppendInt(s.out, int64(n), 10)
	s.out = append(s.out, '\r', '\n')
}

// replyText is text for people (INFO, CLIENT LIST): RESP3 marks it as a verbatim string, so that a tool prints it as it is.
func (s *Session) replyText(text string) {
	if s.resp3 {
		s.replyHeader('=', len(text)+4)
		s.out = append(s.out, "txt:"...)
		s.out = append(s.out, text...)
		s.out = append(s.out, '\r', '\n')
	} else {
		s.replyString(text)
	}
}

func (s *Session) replyStrings(list []string) {
	s.replyArray(len(list))
	for _, text := range list {
		s.replyString(text)
	}
}
