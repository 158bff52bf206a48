package integration_test

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// slowKeys are so many that a KEYS takes some milliseconds.
const slowKeys = 100_000

func fillForSlow(t *testing.T, addr string) {
	t.Helper()
	c := dial(t, addr)
	var b []byte
	for i := range slowKeys {
		b = append(b, frame("SET", strconv.Itoa(i), "9000000000000000000")...)
	}
	go func() { _, _ = c.Write(b) }()
	for range slowKeys {
		if got := c.reply(); got != "+OK\r\n" {
			t.Fatal(got)
		}
	}
}

// whileServed runs a test with celld and with redis-server, both with many keys.
func whileServed(t *testing.T, test func(t *testing.T, addr string)) {
	t.Parallel()
	for name, server := range map[string]func(t *testing.T) string{
		"celld":        func(t *testing.T) string { return start(t).addr },
		"redis-server": func(t *testing.T) string { return startRedis(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr := server(t)
			fillForSlow(t, addr)
			test(t, addr)
		})
	}
}

// What arrives before the peer closes its half is answered, however long that takes.
func TestHalfCloseLikeRedis(t *testing.T) {
	whileServed(t, func(t *testing.T, addr string) {
		c := dial(t, addr)
		c.send(slices.Concat(slices.Repeat(frame("KEYS", "none"), 20), frame("MULTI"), frame("KEYS", "none"), frame("EXEC"), frame("SET", "last", "9000000000000000000"), []byte("*1\r\n$4\r\nPI")))
		if err := c.Conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		for i, want := range append(slices.Repeat([]string{"*0\r\n"}, 20), "+OK\r\n", "+QUEUED\r\n", "*1\r\n*0\r\n", "+OK\r\n") {
			if got := c.reply(); got != want {
				t.Fatalf("reply %d is %q, want %q", i+1, got, want)
			}
		}
		c.closed()
		if got := dial(t, addr).do("EXISTS", "last"); got != ":1\r\n" {
			t.Errorf("EXISTS last: %q", got)
		}
	})
}

// A client whose commands wait for their turn is neither idle nor over the limit of an unfinished command.
func TestLongPipelineLikeRedis(t *testing.T) {
	whileServed(t, func(t *testing.T, addr string) {
		for _, setting := range [][]string{{"client-query-buffer-limit", "1mb"}, {"timeout", "1"}} {
			if got := dial(t, addr).do("CONFIG", "SET", setting[0], setting[1]); got != "+OK\r\n" {
				t.Fatal(got)
			}
		}
		const n = 600
		again(t, func(string) string { // a machine that keeps the client from sending for a second makes it idle
			c := dial(t, addr)
			defer c.Close()
			go func() { _, _ = c.Write(slices.Repeat(frame("KEYS", strings.Repeat("n", 5_000)), n)) }()
			for i := range n {
				if got, err := c.tryReply(replyTimeout); got != "*0\r\n" {
					return fmt.Sprintf("reply %d is %q, %v", i+1, got, err)
				}
			}
			c.closed() // for being idle
			return ""
		})
	})
}

var monitorAddr = regexp.MustCompile(`\+\d+\.\d+ \[0 [^\]]*\]`)

// Who stops to watch and begins again is shown what Redis shows.
func TestMonitorAgainLikeRedis(t *testing.T) {
	t.Parallel()
	var got [2][]string
	for i, addr := range []string{start(t).addr, startRedis(t)} {
		m, c := dial(t, addr), dial(t, addr)
		m.do("MONITOR")
		m.send(slices.Concat(frame("PING"), frame("RESET"), frame("PING")))
		for range 4 {
			got[i] = append(got[i], monitorAddr.ReplaceAllString(m.reply(), "+"))
		}
		m.do("MONITOR")
		c.do("ECHO", "hi")
		got[i] = append(got[i], monitorAddr.ReplaceAllString(m.reply(), "+"))
	}
	if !slices.Equal(got[0], got[1]) {
		t.Errorf("celld  %q\nredis  %q", got[0], got[1])
	}
}

// TestShutdownAnswersSlowPipeline ends celld while it is at the start of a pipeline: what has arrived is answered.
func TestShutdownAnswersSlowPipeline(t *testing.T) {
	t.Parallel()
	srv := start(t, "--io-threads", "1", "--shutdown-timeout", "60")
	fillForSlow(t, srv.addr)
	const n = 40
	var conns []*conn
	for range 3 {
		c := dial(t, srv.addr)
		c.send(slices.Repeat(frame("KEYS", "none"), n))
		conns = append(conns, c)
	}
	conns[0].reply()
	srv.cmd.Process.Signal(syscall.SIGTERM)
	for i, c := range conns {
		for j := range n {
			if i == 0 && j == 0 {
				continue
			}
			if raw, err := c.tryReply(replyTimeout); raw != "*0\r\n" {
				t.Fatalf("connection %d, reply %d: %q, %v", i, j+1, raw, err)
			}
		}
		if raw, err := c.tryReply(replyTimeout); err != io.EOF {
			t.Errorf("after the last reply: %q, %v", raw, err)
		}
	}
	srv.wait(0)
}
