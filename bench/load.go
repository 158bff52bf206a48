//go:build linux

package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"
)

// load asks a server once about each of a number of keys, over a few connections, pipelined: key:000…0, key:000…1, and
// so on, each as long as keyLen says. A peer that is only pinged gets as many PINGs.
type load struct {
	server *server
	keys   int
	keyLen int
	// limit appends burst, count and period, as words of a request.
	limit func(request []byte) []byte
	fresh bool // no key was there before: fail where a call is limited
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

// untilLimit makes every key expire at the same instant: count 1000 in as many seconds as ms are left, so that one call
// fills the limit for just these ms.
func untilLimit(end time.Time) func([]byte) []byte {
	return func(request []byte) []byte {
		ms := strconv.Itoa(int(max(time.Until(end).Milliseconds(), 1)))
		request = append(request, "$2\r\n15\r\n$4\r\n1000\r\n$"...)
		request = strconv.AppendInt(request, int64(len(ms)), 10)
		request = append(request, "\r\n"...)
		request = append(request, ms...)
		return append(request, "\r\n"...)
	}
}

func (l load) run(ctx context.Context) error {
	var wg sync.WaitGroup
	errs := make([]error, loadConnections)
	for i := range loadConnections {
		wg.Go(func() { errs[i] = l.connection(ctx, l.keys*i/loadConnections, l.keys*(i+1)/loadConnections) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return fmt.Errorf("load %d keys: %w", l.keys, err)
		}
	}
	return ctx.Err()
}

// connection asks about the keys from first up to end.
func (l load) connection(ctx context.Context, first, end int) error {
	conn, err := dialSocket(l.server.addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	in := newReplies(conn, l.server.peer)
	var request, limit []byte
	var unanswered []int // commands in each batch that is under way
	for first < end || len(unanswered) > 0 {
		if first < end && len(unanswered) < loadWindow {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			n := min(loadBatch, end-first)
			request, limit = request[:0], l.limit(limit[:0])
			for i := range n {
				request = l.appendCommand(request, first+i, limit)
			}
			if _, err := conn.Write(request); err != nil {
				return err
			}
			first += n
			unanswered = append(unanswered, n)
			continue
		}
		for range unanswered[0] {
			allowed, err := in.next()
			if err != nil {
				return err
			}
			if l.fresh && !allowed {
				return fmt.Errorf("a key that is new is limited")
			}
		}
		unanswered = append(unanswered[:0], unanswered[1:]...)
	}
	return nil
}

func (l load) appendCommand(b []byte, key int, limit []byte) []byte {
	p := l.server.peer
	if p.pings() {
		return append(b, "*1\r\n$4\r\nPING\r\n"...)
	}
	b = append(b, "*5\r\n$"...)
	b = strconv.AppendInt(b, int64(len(p.command)), 10)
	b = append(b, "\r\n"...)
	b = append(b, p.command...)
	b = append(b, "\r\n$"...)
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
