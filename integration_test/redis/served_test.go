package redis

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// slowKeys are so many that a KEYS takes some milliseconds.
const slowKeys = 100_000

func fillForSlow(t *testing.T, addr string) {
	t.Helper()
	c := harness.Dial(t, addr)
	var b []byte
	for i := range slowKeys {
		b = append(b, harness.Frame("SET", strconv.Itoa(i), "9000000000000000000")...)
	}
	go func() { _, _ = c.Write(b) }()
	for range slowKeys {
		if got := c.Reply(); got != "+OK\r\n" {
			t.Fatal(got)
		}
	}
}

// whileServed runs a test with celld and with redis-server, both with many keys.
func whileServed(t *testing.T, test func(t *testing.T, addr string)) {
	t.Parallel()
	for name, server := range map[string]func(t *testing.T) string{
		"celld":        func(t *testing.T) string { return harness.Start(t).Addr },
		"redis-server": func(t *testing.T) string { return celldtest.StartRedis(t) },
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
		c := harness.Dial(t, addr)
		c.Send(slices.Concat(slices.Repeat(harness.Frame("KEYS", "none"), 20), harness.Frame("MULTI"), harness.Frame("KEYS", "none"),
			harness.Frame("EXEC"), harness.Frame("SET", "last", "9000000000000000000"), []byte("*1\r\n$4\r\nPI")))
		if err := c.Conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		for i, want := range append(slices.Repeat([]string{"*0\r\n"}, 20), "+OK\r\n", "+QUEUED\r\n", "*1\r\n*0\r\n", "+OK\r\n") {
			if got := c.Reply(); got != want {
				t.Fatalf("reply %d is %q, want %q", i+1, got, want)
			}
		}
		c.Closed()
		if got := harness.Dial(t, addr).Do("EXISTS", "last"); got != ":1\r\n" {
			t.Errorf("EXISTS last: %q", got)
		}
	})
}

// A client whose commands wait for their turn is neither idle nor over the limit of an unfinished command.
func TestLongPipelineLikeRedis(t *testing.T) {
	whileServed(t, func(t *testing.T, addr string) {
		for _, setting := range [][]string{{"client-query-buffer-limit", "1mb"}, {"timeout", "1"}} {
			if got := harness.Dial(t, addr).Do("CONFIG", "SET", setting[0], setting[1]); got != "+OK\r\n" {
				t.Fatal(got)
			}
		}
		const n = 400                            // 2 MB, and more than a second of work
		celldtest.Again(t, func(string) string { // a machine that keeps the client from sending for a second makes it idle
			c := harness.Dial(t, addr)
			defer c.Close()
			go func() { _, _ = c.Write(slices.Repeat(harness.Frame("KEYS", strings.Repeat("n", 5_000)), n)) }()
			for i := range n {
				if got, err := c.TryReply(harness.ReplyTimeout); got != "*0\r\n" {
					return fmt.Sprintf("reply %d is %q, %v", i+1, got, err)
				}
			}
			c.Closed() // for being idle
			return ""
		})
	})
}

var monitorAddr = regexp.MustCompile(`\+\d+\.\d+ \[0 [^\]]*\]`)

// A client that stops watching and begins again sees what Redis shows.
func TestMonitorAgainLikeRedis(t *testing.T) {
	t.Parallel()
	var got [2][]string
	for i, addr := range []string{harness.Start(t).Addr, celldtest.StartRedis(t)} {
		m, c := harness.Dial(t, addr), harness.Dial(t, addr)
		m.Do("MONITOR")
		m.Send(slices.Concat(harness.Frame("PING"), harness.Frame("RESET"), harness.Frame("PING")))
		for range 4 {
			got[i] = append(got[i], monitorAddr.ReplaceAllString(m.Reply(), "+"))
		}
		m.Do("MONITOR")
		c.Do("ECHO", "hi")
		got[i] = append(got[i], monitorAddr.ReplaceAllString(m.Reply(), "+"))
	}
	if !slices.Equal(got[0], got[1]) {
		t.Errorf("celld  %q\nredis  %q", got[0], got[1])
	}
}

// TestShutdownAnswersSlowPipeline ends celld while it is at the start of a pipeline: what has arrived is answered.
func TestShutdownAnswersSlowPipeline(t *testing.T) {
	t.Parallel()
	srv := harness.Start(t, "--io-threads", "1", "--shutdown-timeout", "60")
	fillForSlow(t, srv.Addr)
	const n = 40
	var conns []*harness.Conn
	for range 3 {
		c := harness.Dial(t, srv.Addr)
		c.Send(slices.Repeat(harness.Frame("KEYS", "none"), n))
		conns = append(conns, c)
	}
	conns[0].Reply()
	srv.Cmd.Process.Signal(syscall.SIGTERM)
	for i, c := range conns {
		for j := range n {
			if i == 0 && j == 0 {
				continue
			}
			if raw, err := c.TryReply(harness.ReplyTimeout); raw != "*0\r\n" {
				t.Fatalf("connection %d, reply %d: %q, %v", i, j+1, raw, err)
			}
		}
		if raw, err := c.TryReply(harness.ReplyTimeout); err != io.EOF {
			t.Errorf("after the last reply: %q, %v", raw, err)
		}
	}
	srv.Wait(0)
}
