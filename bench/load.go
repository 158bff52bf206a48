//go:build linux

package main

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"time"

	"celld/resp/wire"
)

// load asks a server once about each of keys keys, pipelined, over loadConnections connections. The keys are key:000…0, key:000…1
// and so on, of keyLen bytes. A peer that is only pinged gets as many PINGs.
type load struct {
	server *server
	keys   int
	keyLen int
	// limit appends burst, count and period, as words of a request.
	limit  func(request []byte) []byte
	fresh  bool   // all keys are new, so a limited call is an error
	head   []byte // what stands before a key's length; nil: the peer's own command
	passed *int   // out: how many calls passed; nil: it is not asked
}

const (
	loadConnections = 4
	loadBatch       = 32 // commands a write
	loadWindow      = 2  // batches sent before the first is answered
)

// fixedLimit is 30 a minute, 16 at once.
func fixedLimit(request []byte) []byte {
	return append(request, "$2\r\n15\r\n$2\r\n30\r\n$2\r\n60\r\n"...)
}

// untilLimit makes all keys expire at end: with a count of 1000 and a period of as many seconds as milliseconds are left, one call
// takes exactly these milliseconds.
func untilLimit(end time.Time) func([]byte) []byte {
	return func(request []byte) []byte {
		ms := strconv.Itoa(int(max(time.Until(end).Milliseconds(), 1)))
		return wire.AppendBulks(request, "15", "1000", ms)
	}
}

// untilLiteral is the same for CL.TAKE.
func untilLiteral(end time.Time) func([]byte) []byte {
	return func(request []byte) []byte {
		return wire.AppendBulks(request, fmt.Sprintf("1000/%ds,burst=16", max(time.Until(end).Milliseconds(), 1)))
	}
}

// run uses one thread. More would take the processors from the server and the probe, and the scheduler's pauses would look like
// the server's.
func (l load) run(ctx context.Context) (err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer func() {
		if err != nil {
			err = fmt.Errorf("load %d keys: %w", l.keys, err)
		}
	}()
	l = l.withHead()
	var parts []*part
	for i := range loadConnections {
		conn, err := dialSocket(l.server.addr)
		if err != nil {
			return err
		}
		defer conn.Close()
		parts = append(parts, &part{load: l, conn: conn, in: newReplies(conn, l.server.peer), next: l.keys * i / loadConnections,
			end: l.keys * (i + 1) / loadConnections})
	}
	for busy := true; busy; {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		busy = false
		for _, p := range parts {
			more, err := p.turn()
			if err != nil {
				return err
			}
			busy = busy || more
		}
	}
	return nil
}

// part is the work of one connection: the keys from next up to end.
type part struct {
	load
	conn       socket
	in         replies
	next, end  int
	unanswered []int // commands in each batch that is under way
	request    []byte
	words      []byte // the limit
}

// turn reads one batch of replies if the window is full, or nothing is left to send, and sends one batch. It reports
// whether there is more to do.
func (p *part) turn() (more bool, err error) {
	if len(p.unanswered) == loadWindow || p.next == p.end && len(p.unanswered) > 0 {
		for range p.unanswered[0] {
			allowed, err := p.in.next()
			if err != nil {
				return false, err
			}
			if allowed && p.passed != nil {
				*p.passed++
			}
			if p.fresh && !allowed {
				return false, fmt.Errorf("a key that is new is limited")
			}
		}
		p.unanswered = append(p.unanswered[:0], p.unanswered[1:]...)
	}
	if n := min(loadBatch, p.end-p.next); n > 0 {
		p.request, p.words = p.request[:0], p.limit(p.words[:0])
		for i := range n {
			p.request = p.appendCommand(p.request, p.next+i, p.words)
		}
		if _, err := p.conn.Write(p.request); err != nil {
			return false, err
		}
		p.next += n
		p.unanswered = append(p.unanswered, n)
	}
	return p.next < p.end || len(p.unanswered) > 0, nil
}

// withHead adds the head of the peer's own command where none is given.
func (l load) withHead() load {
	if p := l.server.peer; l.head == nil && !p.pings() {
		l.head, _ = splitAtKey(p.words())
	}
	return l
}

func (l load) appendCommand(b []byte, key int, limit []byte) []byte {
	if l.server.peer.pings() {
		return append(b, "*1\r\n$4\r\nPING\r\n"...)
	}
	b = append(b, l.head...)
	b = strconv.AppendInt(b, int64(l.keyLen), 10)
	b = append(b, "\r\n"...)
	b = appendKey(b, key, l.keyLen)
	b = append(b, "\r\n"...)
	return append(b, limit...)
}

// appendKey writes key: and the number, with zeros in front up to the length.
func appendKey(b []byte, n, length int) []byte {
	b = append(b, "key:"...)
	digits := length - len("key:")
	start := len(b)
	for range digits {
		b = append(b, '0')
	}
	for i := start + digits - 1; n > 0 && i >= start; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
	return b
}
