package wire

import (
	"strconv"
	"strings"

	"github.com/tidwall/redcon"
)

// Each function appends one reply to out, or the head of one whose elements the caller appends next. resp3 says whether the
// client has chosen RESP3 (HELLO 3). Types that RESP2 lacks have the form there that Redis gives them
// (https://github.com/redis/redis-specifications/blob/master/protocol/RESP3.md). In a status, an error and a big number, each
// CR and LF of the text becomes a space, so that no text can forge a reply.

// AppendStatus appends a simple string, such as OK.
func AppendStatus(out []byte, text string) []byte { return redcon.AppendString(out, text) }

// AppendError appends an error. The text begins with its code, such as ERR. CR and LF at its end are cut off, as in Redis.
func AppendError(out []byte, text string) []byte {
	return redcon.AppendError(out, strings.TrimRight(text, "\r\n"))
}

// AppendInt appends an integer. Replies mostly hold -1 to 9999, which it writes without redcon: a CL.THROTTLE takes 8 ns instead of 15
// that way, and an INCR 2 instead of 11.
func AppendInt(out []byte, n int64) []byte {
	switch {
	case uint64(n) < 10:
		return append(out, ':', '0'+byte(n), '\r', '\n')
	case uint64(n) < 100:
		return append(out, ':', '0'+byte(n/10), '0'+byte(n%10), '\r', '\n')
	case uint64(n) < 1000:
		return append(out, ':', '0'+byte(n/100), '0'+byte(n/10%10), '0'+byte(n%10), '\r', '\n')
	case uint64(n) < 10_000:
		return append(out, ':', '0'+byte(n/1000), '0'+byte(n/100%10), '0'+byte(n/10%10), '0'+byte(n%10), '\r', '\n')
	case n == -1:
		return append(out, ":-1\r\n"...)
	}
	return redcon.AppendInt(out, n)
}

// AppendBulk appends a bulk string, of any bytes.
func AppendBulk(out, text []byte) []byte { return redcon.AppendBulk(out, text) }

// AppendString is AppendBulk for a string.
func AppendString(out []byte, text string) []byte { return redcon.AppendBulkString(out, text) }

// AppendArray appends the head of an array of n elements.
func AppendArray(out []byte, n int) []byte { return redcon.AppendArray(out, n) }

// AppendNull appends null: in RESP2, the bulk string of length -1.
func AppendNull(out []byte, resp3 bool) []byte {
	if resp3 {
		return append(out, "_\r\n"...)
	}
	return redcon.AppendNull(out)
}

// AppendNullArray appends null in place of an array: in RESP2, the array of length -1.
func AppendNullArray(out []byte, resp3 bool) []byte {
	if resp3 {
		return append(out, "_\r\n"...)
	}
	return append(out, "*-1\r\n"...)
}

// AppendBool appends a boolean: in RESP2, the integer 1 or 0.
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

// AppendDouble appends a floating-point number, which the caller has formatted: in RESP2, a bulk string.
func AppendDouble(out []byte, number string, resp3 bool) []byte {
	if resp3 {
		return append(append(append(out, ','), number...), "\r\n"...)
	}
	return AppendString(out, number)
}

// AppendBigNumber appends an integer of any size, in decimal: in RESP2, a bulk string.
func AppendBigNumber(out []byte, number string, resp3 bool) []byte {
	start := len(out)
	if out = AppendStatus(out, number); resp3 {
		out[start] = '('
		return out
	}
	return AppendString(out[:start], string(out[start+1:len(out)-2]))
}

// AppendVerbatim appends a text that clients show as it is. format has 3 letters, such as txt. In RESP2 it is a bulk string,
// without its format.
func AppendVerbatim(out []byte, format, text string, resp3 bool) []byte {
	if resp3 {
		out = appendHead(out, '=', len(text)+4)
		out = append(append(out, format...), ':')
		return append(append(out, text...), "\r\n"...)
	}
	return AppendString(out, text)
}

// AppendMap appends the head of a map of n pairs, of a key and a value each: in RESP2, an array of 2n elements.
func AppendMap(out []byte, n int, resp3 bool) []byte {
	if resp3 {
		return appendHead(out, '%', n)
	}
	return AppendArray(out, 2*n)
}

// AppendSet appends the head of a set of n elements: in RESP2, an array.
func AppendSet(out []byte, n int, resp3 bool) []byte {
	if resp3 {
		return appendHead(out, '~', n)
	}
	return AppendArray(out, n)
}

// AppendPush appends the head of a push message of n elements, which answers no command. RESP2 has none.
func AppendPush(out []byte, n int) []byte { return appendHead(out, '>', n) }

func appendHead(out []byte, kind byte, n int) []byte {
	out = strconv.AppendInt(append(out, kind), int64(n), 10)
	return append(out, '\r', '\n')
}
