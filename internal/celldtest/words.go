package celldtest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// SplitQuoted splits a line into words as redis-cli does for plain and "quoted" ones.
func SplitQuoted(t testing.TB, line string) (words []string) {
	t.Helper()
	for rest := strings.TrimLeft(line, " "); rest != ""; rest = strings.TrimLeft(rest, " ") {
		if rest[0] == '\'' {
			word, after, found := strings.Cut(rest[1:], "'")
			if !found {
				t.Fatalf("unbalanced quotes: %s", line)
			}
			words, rest = append(words, word), after
			continue
		}
		if rest[0] == '"' {
			quoted, err := strconv.QuotedPrefix(rest)
			if err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			word, err := strconv.Unquote(quoted)
			if err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			words, rest = append(words, word), rest[len(quoted):]
			continue
		}
		word, after, _ := strings.Cut(rest, " ")
		words, rest = append(words, word), after
	}
	return words
}

// clockTolerance is a second in the replies to these commands, which run with the clock.
var clockTolerance = map[string]int64{"TTL": 1, "PTTL": 1000, "EXPIRETIME": 1, "PEXPIRETIME": 1000}

// BothSoon says that line is such a command, and two replies to it are no further apart than a loaded machine may bring them: a tenth,
// but a second at least and ten at most.
func BothSoon(line, got, want string) bool {
	var a, b int64
	name, _, _ := strings.Cut(line, " ")
	if _, err := fmt.Sscanf(got+want, ":%d\r\n:%d\r\n", &a, &b); err != nil || a < 0 || b < 0 {
		return false
	}
	second := clockTolerance[name]
	return max(a-b, b-a) <= max(second, min(10*second, a/10))
}
