//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
)

// replies reads answers to a peer's command, or PONGs, one after the other. It knows their shape, which takes 50 ns a decision:
// wire.ReadReply takes 170, of the processors that the server is measured on.
type replies struct {
	r       *bufio.Reader
	status  string // the only reply; empty: integers
	allowed byte
}

func newReplies(r io.Reader, p *peer) replies {
	return replies{bufio.NewReaderSize(r, 64<<10), p.status(), p.allowed}
}

// status is the one reply of a peer that is asked for no decision.
func (p *peer) status() string {
	switch {
	case p.pings():
		return "+PONG\r\n"
	case p.sets():
		return "+OK\r\n"
	}
	return ""
}

// next reads one reply: a status, or five integers, of CL.TAKE seven, of which the first says whether the call was allowed.
func (r replies) next() (allowed bool, err error) {
	if r.status != "" {
		return true, r.line(r.status)
	}
	header, err := r.r.ReadSlice('\n')
	if err != nil {
		return false, err
	}
	n := 5
	switch string(header) {
	case "*5\r\n":
	case "*7\r\n":
		n = 7
	default:
		return false, fmt.Errorf("the server answers %q", header)
	}
	for i := range n {
		line, err := r.r.ReadSlice('\n')
		if err != nil {
			return false, err
		}
		if line[0] != ':' {
			return false, fmt.Errorf("the server answers %q", line)
		}
		if i == 0 {
			allowed = line[1] == r.allowed
		}
	}
	return allowed, nil
}

func (r replies) line(want string) error {
	line, err := r.r.ReadSlice('\n')
	if err == nil && string(line) != want {
		return fmt.Errorf("the server answers %q", line)
	}
	return err
}
