//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// ask sends one command over a connection of its own and returns the reply's text; of an array, that of its elements,
// a line each. An error reply is an error.
func ask(addr string, words ...string) (string, error) {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Minute)) // SAVE takes a while
	if _, err := conn.Write(appendRequest(nil, words...)); err != nil {
		return "", err
	}
	return readReply(bufio.NewReader(conn))
}

func appendRequest(b []byte, words ...string) []byte {
	return appendWords(fmt.Appendf(b, "*%d\r\n", len(words)), words...)
}

func appendWords(b []byte, words ...string) []byte {
	for _, w := range words {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(w), w)
	}
	return b
}

func readReply(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimSuffix(line, "\r\n")
	if line == "" {
		return "", errors.New("an empty line where a reply starts")
	}
	kind, rest := line[0], line[1:]
	switch kind {
	case '+', ':':
		return rest, nil
	case '-':
		return "", errors.New(rest)
	}
	n, err := strconv.Atoi(rest)
	switch {
	case err != nil || kind != '$' && kind != '*':
		return "", fmt.Errorf("no reply: %q", line)
	case n < 0:
		return "", nil
	case kind == '$':
		text := make([]byte, n+2)
		_, err := io.ReadFull(r, text)
		return string(text[:n]), err
	}
	elements := make([]string, n)
	for i := range elements {
		if elements[i], err = readReply(r); err != nil {
			return "", err
		}
	}
	return strings.Join(elements, "\n"), nil
}
