//go:build linux

package main

import (
	"bufio"
	"errors"
	"net"
	"strings"
	"time"

	"celld/resp/wire"
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
	if _, err := conn.Write(wire.AppendCommand(nil, words...)); err != nil {
		return "", err
	}
	return readReply(bufio.NewReader(conn))
}

// readReply reads one reply with all that is nested in it.
func readReply(r *bufio.Reader) (string, error) {
	reply, err := wire.ReadReply(r)
	if err != nil {
		return "", err
	}
	if reply.Kind == '-' {
		return "", errors.New(string(reply.Text))
	}
	if reply.Kind != '*' {
		return string(reply.Text), nil
	}
	elements := make([]string, reply.N)
	for i := range elements {
		if elements[i], err = readReply(r); err != nil {
			return "", err
		}
	}
	return strings.Join(elements, "\n"), nil
}
