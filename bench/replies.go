//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
)

// replies reads answers to a peer's command, or PONGs, one after the other.
type replies struct {
	r       *bufio.Reader
	pongs   bool
	allowed byte
}

func newReplies(r io.Reader, p *peer) replies {
	return replies{bufio.NewReaderSize(r, 64<<10), p.pings(), p.allowed}
}

// next reads one reply: +PONG, or five integers of which the first says whether the call was allowed.
func (r replies) next() (allowed bool, err error) {
	if r.pongs {
		return true, r.line("+PONG\r\n")
	}
	if err := r.line("*5\r\n"); err != nil {
		return false, err
	}
	for i := range 5 {
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
