package wire

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// splitInline splits a line typed by hand (telnet, nc), without its line end, into arguments as Redis does
// (sdssplitargs, sds.c):
//
//	SET k  v              blanks separate arguments
//	SET k "a b\n\x00"     in double quotes \n \r \t \b \a and \xHH are escapes, any other \c is c
//	SET k 'it\'s \n'      in single quotes only \' is one
//	SET k ""              is an empty argument
//	SET k a"b c"          is ab c: a quote may open anywhere
//
// ok is false, and args nil, where a quote is not closed, or closed and not followed by a blank or the end; Redis then
// answers "Protocol error: unbalanced quotes in request". An empty line has no arguments and is ok. A NUL ends the
// line, as it ends a C string. Time is linear. The arguments are copies: they neither share bytes with line nor grow
// into one another.
//
// It is ours because redcon's parser of such lines knows no \xHH, \b or \a, separates arguments at spaces only, refuses a
// quote inside a word and reads escapes in single quotes.
func splitInline(line []byte) (args [][]byte, ok bool) {
	line, _, _ = bytes.Cut(line, []byte{0})
	text := make([]byte, 0, len(line)) // every argument in turn: none is longer than what it was read from
	for {
		for len(line) > 0 && isSpace(line[0]) {
			line = line[1:]
		}
		if len(line) == 0 {
			return args, true
		}
		start := len(text)
		if text, line, ok = CutWord(text, line); !ok {
			return nil, false
		}
		args = append(args, text[start:len(text):len(text)])
	}
}

// AppendWord appends a word in quotes, as Redis's sdscatrepr does: printable ASCII as it is, the rest escaped. CutWord reads it.
func AppendWord(dst, word []byte) []byte {
	dst = append(dst, '"')
	for _, c := range word {
		switch at := strings.IndexByte("\\\"\n\r\t\a\b", c); {
		case at >= 0:
			dst = append(dst, '\\', `\"nrtab`[at])
		case c >= ' ' && c <= '~':
			dst = append(dst, c)
		default:
			dst = fmt.Appendf(dst, `\x%02x`, c)
		}
	}
	return append(dst, '"')
}

// CutWord appends the word that line begins with to dst, and returns what follows it in rest. ok is false where a quote is not closed, or
// closed and not followed by a blank or the end.
func CutWord(dst, line []byte) (word, rest []byte, ok bool) {
	for len(line) > 0 {
		c := line[0]
		switch c {
		case '"', '\'':
			dst, line, ok = appendQuoted(dst, line[1:], c)
			return dst, line, ok && (len(line) == 0 || isSpace(line[0]))
		case ' ', '\n', '\r', '\t': // not \v and \f: Redis skips them before a word and keeps them inside one
			return dst, line, true
		}
		dst, line = append(dst, c), line[1:]
	}
	return dst, line, true
}

// appendQuoted appends the text up to the closing quote; ok is false where there is none.
func appendQuoted(dst, line []byte, quote byte) (arg, rest []byte, ok bool) {
	for len(line) > 0 {
		c, n := line[0], 1
		switch escaped := c == '\\' && len(line) >= 2; {
		case c == quote:
			return dst, line[1:], true
		case escaped && quote == '"':
			c, n = unescape(line[1:])
		case escaped && line[1] == quote:
			c, n = quote, 2
		}
		dst, line = append(dst, c), line[n:]
	}
	return dst, line, false
}

// unescape returns what a backslash before text stands for in double quotes, and how many bytes that takes, the backslash included.
func unescape(text []byte) (c byte, n int) {
	if len(text) >= 3 && text[0] == 'x' {
		if b, err := strconv.ParseUint(string(text[1:3]), 16, 8); err == nil {
			return byte(b), 4
		}
	}
	if i := strings.IndexByte("nrtba", text[0]); i >= 0 {
		return "\n\r\t\b\a"[i], 2
	}
	return text[0], 2
}

// isSpace is C's isspace in the C locale.
func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }
