package wire

import (
	"bytes"
	"strconv"
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
		if text, line, ok = appendInlineArg(text, line); !ok {
			return nil, false
		}
		args = append(args, text[start:len(text):len(text)])
	}
}

// appendInlineArg appends the argument that line begins with to dst, and returns what follows it in rest.
func appendInlineArg(dst, line []byte) (arg, rest []byte, ok bool) {
	for len(line) > 0 {
		c := line[0]
		switch c {
		case '"', '\'':
			if c == '"' {
				dst, line, ok = appendDoubleQuoted(dst, line[1:])
			} else {
				dst, line, ok = appendSingleQuoted(dst, line[1:])
			}
			return dst, line, ok && (len(line) == 0 || isSpace(line[0]))
		case ' ', '\n', '\r', '\t': // not \v and \f: Redis skips them before a word and keeps them inside one
			return dst, line, true
		}
		dst, line = append(dst, c), line[1:]
	}
	return dst, line, true
}

// appendDoubleQuoted appends the text up to the closing quote; ok is false where there is none.
func appendDoubleQuoted(dst, line []byte) (arg, rest []byte, ok bool) {
	for len(line) > 0 {
		c := line[0]
		if len(line) >= 4 && c == '\\' && line[1] == 'x' {
			if b, err := strconv.ParseUint(string(line[2:4]), 16, 8); err == nil {
				dst, line = append(dst, byte(b)), line[4:]
				continue
			}
		}
		switch {
		case c == '"':
			return dst, line[1:], true
		case c == '\\' && len(line) >= 2:
			dst, line = append(dst, unescape(line[1])), line[2:]
		default:
			dst, line = append(dst, c), line[1:]
		}
	}
	return dst, line, false
}

// appendSingleQuoted appends the text up to the closing quote; ok is false where there is none.
func appendSingleQuoted(dst, line []byte) (arg, rest []byte, ok bool) {
	for len(line) > 0 {
		c := line[0]
		switch {
		case c == '\'':
			return dst, line[1:], true
		case c == '\\' && len(line) >= 2 && line[1] == '\'':
			dst, line = append(dst, '\''), line[2:]
		default:
			dst, line = append(dst, c), line[1:]
		}
	}
	return dst, line, false
}

// unescape returns what \c stands for in double quotes.
func unescape(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'b':
		return '\b'
	case 'a':
		return '\a'
	}
	return c
}

// isSpace is C's isspace in the C locale.
func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }
