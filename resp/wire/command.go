package wire

import (
	"fmt"

	"github.com/tidwall/redcon"
)

// AppendCommand appends a request as clients send it: an array of bulk strings, of which the first is the command's name.
func AppendCommand[T string | []byte](out []byte, words ...T) []byte {
	return AppendBulks(redcon.AppendArray(out, len(words)), words...)
}

// AppendBulks appends bulk strings, one behind the other: elements of an array.
func AppendBulks[T string | []byte](out []byte, texts ...T) []byte {
	for _, text := range texts {
		out = redcon.AppendBulk(out, []byte(text))
	}
	return out
}

// The most words, and bytes of a word, that ParseCommand accepts: Redis's own limits for a request.
const (
	maxWords   = 1 << 20
	maxWordLen = 512 << 20
)

// ParseCommand reads the command at the start of b: a count of words, then each word behind its length. CR LF must stand behind
// every number and every word. It appends the words, which are slices of b, to args, and returns the length n of the command
// in bytes. n is 0 where b ends before the command does, or where something is wrong: then the text says what, such as
// 'x' in a number.
func ParseCommand(b []byte, args [][]byte) (_ [][]byte, n int, wrong string) {
	words, n, wrong := parseCount(b, '*', maxWords)
	if n == 0 {
		return nil, 0, wrong
	}
	if words == 0 {
		return nil, 0, "a command without words"
	}
	for range words {
		length, header, wrong := parseCount(b[n:], '$', maxWordLen)
		if header == 0 {
			return nil, 0, wrong
		}
		n += header
		if len(b)-n < length+2 {
			return args, 0, ""
		}
		if b[n+length] != '\r' || b[n+length+1] != '\n' {
			return nil, 0, "a word that does not end where its length says"
		}
		args = append(args, b[n:n+length])
		n += length + 2
	}
	return args, n, ""
}

// parseCount reads a line such as *3 or $16. It may have leading zeros, as Redis reads these lines by strtol (aof.c).
func parseCount(b []byte, mark byte, most int) (count, n int, wrong string) {
	if len(b) == 0 {
		return 0, 0, ""
	}
	if b[0] != mark {
		return 0, 0, fmt.Sprintf("%q where %q should be", b[0], mark)
	}
	for n = 1; n < len(b); n++ {
		c := b[n]
		if c == '\r' && n > 1 {
			switch {
			case n+1 == len(b):
				return 0, 0, ""
			case b[n+1] != '\n':
				return 0, 0, "a line that does not end as it should"
			}
			return count, n + 2, ""
		}
		if c < '0' || c > '9' {
			return 0, 0, fmt.Sprintf("%q in a number", c)
		}
		if count = count*10 + int(c-'0'); count > most {
			return 0, 0, "a number that is too large"
		}
	}
	return 0, 0, ""
}
