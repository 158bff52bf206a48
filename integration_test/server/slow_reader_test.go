package server

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// TestSlowReader asks for much and reads nothing: it is cut off at the limit, and others are served meanwhile.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	for _, request := range [][]string{
		{"COMMAND", "DOCS"}, {"KEYS", "*"}, {"ECHO", strings.Repeat("x", 10_000)}, {"INFO", "everything"}, {"CLIENT", "LIST"},
	} {
		t.Run(request[0], func(t *testing.T) {
			t.Parallel()
			srv := harness.Start(t, "--client-output-buffer-limit", "1mb")
			other := harness.Dial(t, srv.Addr)
			for i := range 500 {
				other.Do("SET", "a key of some length:"+strconv.Itoa(i), "9000000000000000000")
			}
			idle := vmRSS(t, srv.Cmd.Process.Pid)
			slow := harness.Dial(t, srv.Addr)
			slow.Conn.(interface{ SetReadBuffer(int) error }).SetReadBuffer(4096)
			batch, cut, sent := slices.Repeat(harness.Frame(request...), 100), false, 0
			for deadline := time.Now().Add(harness.ReplyTimeout); !cut && time.Now().Before(deadline); {
				slow.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
				n, err := slow.Write(batch)
				sent += n
				cut = err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
				if errors.Is(err, os.ErrDeadlineExceeded) {
					batch = slices.Concat(batch[n:], batch[:n]) // go on where it stopped, so that the stream stays in step
				}
				if got := other.Do("PING"); got != "+PONG\r\n" {
					t.Fatalf("another client gets %q", got)
				}
				if grown := vmRSS(t, srv.Cmd.Process.Pid) - idle; grown > 96<<20 {
					t.Fatalf("resident memory has grown by %d MB", grown>>20)
				}
			}
			if !cut {
				t.Errorf("a client that reads nothing is still connected after %d bytes of requests", sent)
			}
			celldtest.Eventually(t, "only the other client is left", func() bool {
				return harness.ContainsLine(other.Do("INFO", "clients"), "connected_clients:1")
			})
		})
	}
}

// TestSlowMonitor opens a MONITOR that reads nothing: what it should see must not pile up.
func TestSlowMonitor(t *testing.T) {
	t.Parallel()
	srv := harness.Start(t, "--client-output-buffer-limit", "1mb")
	monitor, busy := harness.Dial(t, srv.Addr), harness.Dial(t, srv.Addr)
	monitor.Conn.(interface{ SetReadBuffer(int) error }).SetReadBuffer(4096)
	if got := monitor.Do("MONITOR"); got != "+OK\r\n" {
		t.Fatal(got)
	}
	call := slices.Repeat(harness.Frame("ECHO", strings.Repeat("m", 1000)), 100)
	celldtest.Eventually(t, "the monitor is cut off", func() bool {
		busy.Send(call)
		for range 100 {
			busy.Reply()
		}
		return harness.ContainsLine(busy.Do("INFO", "clients"), "connected_clients:1")
	})
	if rss := vmRSS(t, srv.Cmd.Process.Pid); rss > 128<<20 {
		t.Errorf("resident memory is %d MB", rss>>20)
	}
}
