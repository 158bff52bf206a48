package wire

import (
	"strconv"
	"strings"

	"github.com/tidwall/redcon"
)

// Each function appends one reply, or the head of one whose elements are to follow. resp3 says whether the client has chosen
// RESP3 by HELLO 3: what RESP2 has no type for, it gets in the form that Redis gives it there
// (https://github.com/redis/redis-specifications/blob/master/protocol/RESP3.md). Lines may not have line breaks in them: those
// of a text become spaces, so that no reply can be smuggled in.

// AppendStatus appends a line for machines, such as OK.
func AppendStatus(out []byte, text string) []byte { return redcon.AppendString(out, text) }

// AppendError appends an error: its code in upper case, a blank, and what is wrong. Line breaks at the end go, as in Redis.
func AppendError(out []byte, text string) []byte {
	return redcon.AppendError(out, strings.TrimRight(text, "\r\n"))
}

// AppendInt appends an integer. -1 to 99 are what the replies to limits mostly have: by redcon alone, one to CL.THROTTLE takes 15 ns,
// and not 8.
func AppendInt(out []byte, n int64) []byte {
	switch {
	case uint64(n) < 10:
		return append(out, ':', '0'+byte(n), '\r', '\n')
	case uint64(n) < 100:
		return append(out, ':', '0'+byte(n/10), '0'+byte(n%10), '\r', '\n')
	case n == -1:
		return append(out, ":-1\r\n"...)
	}
	return redcon.AppendInt(out, n)
}

// AppendBulk appends a string of any bytes.
func AppendBulk(out, text []byte) []byte { return redcon.AppendBulk(out, text) }

// AppendString is AppendBulk of a string.
func AppendString(out []byte, text string) []byte { return redcon.AppendBulkString(out, text) }

// AppendArray begins an array of n elements.
func AppendArray(out []byte, n int) []byte { return redcon.AppendArray(out, n) }

// AppendNull appends the absent value: in RESP2 a string of length -1.
func AppendNull(out []byte, resp3 bool) []byte {
	if resp3 {
		return append(out, "_\r\n"...)
	}
	return redcon.AppendNull(out)
}

// AppendNullArray appends the absent array: in RESP2 one of length -1.
func AppendNullArray(out []byte, resp3 bool) []byte {
	if resp3 {
		return append(out, "_\r\n"...)
	}
	return append(out, "*-1\r\n"...)
}

// AppendBool appends a truth value: in RESP2 1 or 0.
func AppendBool(out []byte, yes, resp3 bool) []byte {
	switch {
	case resp3 && yes:
		return append(out, "#t\r\n"...)
	case resp3:
		return append(out, "#f\r\n"...)
	case yes:
		return append(out, ":1\r\n"...)
	}
	return append(out, ":0\r\n"...)
}

// AppendDouble appends a number with a fraction, written as the caller has it: in RESP2 a string.
func AppendDouble(out []byte, number string, resp3 bool) []byte {
	if resp3 {
		return append(append(append(out, ','), number...), "\r\n"...)
	}
	return AppendString(out, number)
}

// AppendBigNumber appends an integer of any size, written in decimal: in RESP2 a string.
func AppendBigNumber(out []byte, number string, resp3 bool) []byte {
	start := len(out)
	if out = AppendStatus(out, number); resp3 {
		out[start] = '('
		return out
	}
	return AppendString(out[:start], string(out[start+1:len(out)-2]))
}

// AppendVerbatim appends a text to be shown as it is; format is of 3 letters, such as txt. In RESP2 it is a string.
func AppendVerbatim(out []byte, format, text string, resp3 bool) []byte {
	if resp3 {
		out = appendHead(out, '=', len(text)+4)
		out = append(append(out, format...), ':')
		return append(append(out, text...), "\r\n"...)
	}
	return AppendString(out, text)
}

// AppendMap begins a map of n pairs, each a key and its value: in RESP2 an array of 2n elements.
func AppendMap(out []byte, n int, resp3 bool) []byte {
	if resp3 {
		return appendHead(out, '%', n)
	}
	return AppendArray(out, 2*n)
}

// AppendSet begins a set of n elements: in RESP2 an array.
func AppendSet(out []byte, n int, resp3 bool) []byte {
	if resp3 {
		return appendHead(out, '~', n)
	}
	return AppendArray(out, n)
}

// AppendPush begins a message of n elements that answers no command. RESP2 has none.
func AppendPush(out []byte, n int) []byte { return appendHead(out, '>', n) }

func appendHead(out []byte, kind byte, n int) []byte {
	out = strconv.AppendInt(append(out, kind), int64(n), 10)
	return append(out, '\r', '\n')
}
