package server

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// TestQueryBufferLimit sends a command that does not end, and a transaction that does not: both are cut off.
func TestQueryBufferLimit(t *testing.T) {
	t.Parallel()
	srv := harness.Start(t, "--client-query-buffer-limit", "1mb", "--proto-max-bulk-len", "64kb")
	feed := func(head []byte, piece []byte) {
		t.Helper()
		c := harness.Dial(t, srv.Addr)
		c.Send(head)
		go io.Copy(io.Discard, c.Conn)
		for sent := 0; sent < 64<<20; sent += len(piece) {
			c.SetWriteDeadline(time.Now().Add(harness.ReplyTimeout))
			if _, err := c.Write(piece); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("%.20q: neither read nor cut off", head)
			} else if err != nil {
				return
			}
		}
		t.Errorf("%.20q…: 64 MB are held, and the limit is 1 MB", head)
	}
	argument := slices.Concat([]byte("$60000\r\n"), bytes.Repeat([]byte("a"), 60_000), []byte("\r\n"))
	feed([]byte("*1000000\r\n"), argument)
	feed([]byte("*1000000\r\n"), slices.Repeat([]byte("$0\r\n\r\n"), 1000))
	feed(harness.Frame("MULTI"), harness.Frame("ECHO", strings.Repeat("a", 60_000)))
	if rss := vmRSS(t, srv.Cmd.Process.Pid); rss > 96<<20 {
		t.Errorf("resident memory is %d MB", rss>>20)
	}

	c := harness.Dial(t, srv.Addr)
	c.Send([]byte("*2\r\n$4\r\nECHO\r\n$65537\r\n"))
	if got := c.Reply(); got != "-ERR Protocol error: invalid bulk length\r\n" {
		t.Errorf("an argument above --proto-max-bulk-len: %q", got)
	}
	c.Closed()
	if text, _ := harness.Bulk(harness.Dial(t, srv.Addr).Do("ECHO", strings.Repeat("e", 64<<10))); len(text) != 64<<10 {
		t.Errorf("an argument of --proto-max-bulk-len: %d bytes come back", len(text))
	}
	srv.Alive()
}

// TestMaxClients opens one connection too many.
func TestMaxClients(t *testing.T) {
	t.Parallel()
	srv := harness.Start(t, "--maxclients", "10")
	var conns []*harness.Conn
	for range 10 {
		c := harness.Dial(t, srv.Addr)
		c.Do("PING")
		conns = append(conns, c)
	}
	for range 3 {
		extra := harness.Dial(t, srv.Addr)
		if got := extra.Reply(); got != "-ERR max number of clients reached\r\n" {
			t.Errorf("the eleventh client: %q", got)
		}
		extra.Closed()
	}
	if got := conns[9].Do("INFO", "stats"); !harness.ContainsLine(got, "rejected_connections:3") {
		t.Errorf("INFO stats: %s", got)
	}
	conns[0].Close()
	celldtest.Eventually(t, "there is room again", func() bool {
		got, err := harness.Dial(t, srv.Addr).TryDo([]string{"PING"})
		return err == nil && got == "+PONG\r\n"
	})
	if got := conns[1].Do("CONFIG", "SET", "maxclients", "5"); got != "+OK\r\n" {
		t.Errorf("CONFIG SET maxclients: %q", got)
	}
	if got := conns[1].Do("PING"); got != "+PONG\r\n" {
		t.Errorf("a client that was there before: %q", got)
	}
}

// TestMaxClientsAndOpenFiles asks for more connections than the limit on open files allows. The replies are those of redis-server
// 7.0.15. This test does not ask it: it raises that limit if it may.
func TestMaxClientsAndOpenFiles(t *testing.T) {
	t.Parallel()
	celldtest.Need(t, "prlimit")
	c := harness.Dial(t,
		harness.Spec{Wrap: []string{"prlimit", "--nofile=64:64"}, Flags: []string{"--io-threads", "1", "--maxclients", "30"}}.Start(t).Addr)
	const refused = "-ERR CONFIG SET failed (possibly related to argument 'maxclients') - The operating system is not able to handle the specified number of clients, try with 32\r\n"
	for _, test := range []struct{ command, want string }{
		{"CONFIG SET maxclients 10000", refused},
		{"CONFIG SET timeout 9 maxclients 33", refused},
		{"CONFIG SET maxclients 33 timeout 9", refused},
		{"CONFIG GET timeout maxclients", "*4\r\n$10\r\nmaxclients\r\n$2\r\n30\r\n$7\r\ntimeout\r\n$1\r\n0\r\n"},
		{"CONFIG SET maxclients 20", "+OK\r\n"},
		{"CONFIG SET maxclients 32", "+OK\r\n"},
	} {
		if got := c.Do(strings.Fields(test.command)...); got != test.want {
			t.Errorf("%s: %q, want %q", test.command, got, test.want)
		}
	}
}

// TestMaxClientsRaised raises it within what the hard limit on open files allows, though the soft one is lower.
func TestMaxClientsRaised(t *testing.T) {
	t.Parallel()
	celldtest.Need(t, "prlimit")
	srv := harness.Spec{Wrap: []string{"prlimit", "--nofile=300:300"}, Flags: []string{"--io-threads", "1", "--maxclients", "10"}}.Start(t)
	if out, err := harness.Command(t, "prlimit", "--nofile=64:", "--pid", strconv.Itoa(srv.Cmd.Process.Pid)).CombinedOutput(); err != nil {
		t.Fatalf("prlimit: %v, %s", err, out)
	}
	if got := harness.Dial(t, srv.Addr).Do("CONFIG", "SET", "maxclients", "200"); got != "+OK\r\n" {
		t.Fatalf("CONFIG SET maxclients 200: %q", got)
	}
	for i := range 150 {
		if got := harness.Dial(t, srv.Addr).Do("PING"); got != "+PONG\r\n" {
			t.Fatalf("connection %d: %q", i, got)
		}
	}
}

// TestFileDescriptors opens more connections than the process may have files.
func TestFileDescriptors(t *testing.T) {
	t.Parallel()
	celldtest.Need(t, "prlimit")
	// each has descriptors, too
	srv := harness.Spec{Wrap: []string{"prlimit", "--nofile=64:64"}, Flags: []string{"--io-threads", "1"}}.Start(t)
	first := harness.Dial(t, srv.Addr)
	first.Do("PING")
	var conns []*harness.Conn
	for range 200 {
		conns = append(conns, harness.Dial(t, srv.Addr))
	}
	for range 3 {
		if got := first.Do("CL.THROTTLE", "k", "15", "30", "60"); !strings.HasPrefix(got, "*5\r\n:0\r\n") {
			t.Errorf("an earlier client: %q", got)
		}
	}
	for _, c := range conns {
		c.Close()
	}
	celldtest.Eventually(t, "new clients are served again", func() bool {
		got, err := harness.Dial(t, srv.Addr).TryDo([]string{"PING"})
		return err == nil && got == "+PONG\r\n"
	})
}

// TestIdleTimeout closes those who say nothing, and only those.
func TestIdleTimeout(t *testing.T) {
	t.Parallel()
	srv := harness.Start(t, "--timeout", "10") // a machine seldom stands still for so long, in which the busy one would be idle, too
	idle, busy, half := harness.Dial(t, srv.Addr), harness.Dial(t, srv.Addr), harness.Dial(t, srv.Addr)
	began := time.Now()
	idle.Do("PING")
	half.Send([]byte("*1\r\n$4\r\nPI"))
	for _, c := range []*harness.Conn{idle, half} {
		gone := make(chan error, 1)
		go func() {
			_, err := c.TryReply(harness.ReplyTimeout)
			gone <- err
		}()
		celldtest.Eventually(t, "an idle connection is closed", func() bool {
			busy.Do("PING")
			select {
			case err := <-gone:
				if err != io.EOF {
					t.Errorf("an idle connection: %v", err)
				}
				return true
			default:
				return false
			}
		})
	}
	if took := time.Since(began); took < 9900*time.Millisecond {
		t.Errorf("closed after %v, of 10 s", took)
	}
	if got := busy.Do("PING"); got != "+PONG\r\n" {
		t.Errorf("a busy connection: %q", got)
	}
}
