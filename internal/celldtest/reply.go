package celldtest

import (
	"crypto/sha1"
	"fmt"
	"strconv"
	"strings"
)

// BulkOf is a text as a bulk string.
func BulkOf(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

// BulksOf is an array of bulk strings.
func BulksOf(texts ...string) string {
	replies := make([]string, len(texts))
	for i, text := range texts {
		replies[i] = BulkOf(text)
	}
	return ArrayOf(replies...)
}

// ArrayOf is an array of replies.
func ArrayOf(replies ...string) string {
	return fmt.Sprintf("*%d\r\n%s", len(replies), strings.Join(replies, ""))
}

// IntOf is a number as an integer.
func IntOf(n int64) string { return fmt.Sprintf(":%d\r\n", n) }

// IntReply reads an integer reply, -1 where it is none.
func IntReply(raw string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimPrefix(raw, ":")), 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// Digest is the SHA-1 by which EVALSHA knows a script.
func Digest(script string) string { return fmt.Sprintf("%x", sha1.Sum([]byte(script))) }
