package server

import (
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// TestSignals ends celld while clients are idle, busy, or not reading.
func TestSignals(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			srv := harness.StartStress(t, "--shutdown-timeout", "2")
			idle, half, deaf := harness.Dial(t, srv.Addr), harness.Dial(t, srv.Addr), harness.Dial(t, srv.Addr)
			idle.Do("PING")
			half.Send([]byte("*1\r\n$4\r\nPI"))
			deaf.Send(slices.Repeat(harness.Frame("COMMAND", "DOCS"), 50))
			var busy sync.WaitGroup
			for i := range 4 {
				c := harness.Dial(t, srv.Addr)
				busy.Go(func() {
					for {
						c.SetDeadline(time.Now().Add(harness.ReplyTimeout))
						if _, err := c.Write(harness.Frame("CL.THROTTLE", strconv.Itoa(i), "15", "30", "60")); err != nil {
							return
						}
						if _, err := c.TryReply(harness.ReplyTimeout); err != nil {
							return
						}
					}
				})
			}
			idle.Do("PING")
			srv.Cmd.Process.Signal(signal)
			srv.Wait(0)
			busy.Wait()
		})
	}
	t.Run("at once when nobody is busy", func(t *testing.T) {
		t.Parallel()
		srv := harness.Start(t, "--shutdown-timeout", "3600")
		idle := harness.Dial(t, srv.Addr)
		idle.Do("PING")
		srv.Cmd.Process.Signal(syscall.SIGTERM)
		srv.Wait(0)
		idle.Closed()
	})
}

// TestShutdownAnswers ends celld right behind a pipeline: what has arrived is answered.
func TestShutdownAnswers(t *testing.T) {
	t.Parallel()
	for range 10 {
		srv := harness.Start(t)
		c := harness.Dial(t, srv.Addr)
		c.Do("PING")
		const n = 1000
		c.Send(slices.Repeat(harness.Frame("CL.THROTTLE", "k", "15", "30", "60"), n))
		if ints, ok := harness.FiveInts(c.Reply()); !ok || ints[0] != 0 { // so all of it is in the kernel, and the first is served
			t.Fatalf("the first reply: %v", ints)
		}
		srv.Cmd.Process.Signal(syscall.SIGTERM)
		for i := 1; i < n; i++ {
			raw, err := c.TryReply(harness.ReplyTimeout)
			if _, ok := harness.FiveInts(raw); !ok {
				t.Fatalf("reply %d of %d: %q, %v", i+1, n, raw, err)
			}
		}
		if raw, err := c.TryReply(harness.ReplyTimeout); err != io.EOF {
			t.Errorf("after the last reply: %q, %v", raw, err)
		}
		srv.Wait(0)
	}
}

// TestShutdownCommand ends celld by command.
func TestShutdownCommand(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"SHUTDOWN"}, {"SHUTDOWN", "NOSAVE"}, {"shutdown", "nosave", "now", "force"}} {
		srv := harness.Start(t)
		c, other := harness.Dial(t, srv.Addr), harness.Dial(t, srv.Addr)
		other.Do("PING")
		c.Send(harness.Frame(args...))
		c.Closed()
		srv.Wait(0)
		other.Closed()
	}
}

// TestShutdownDelay tells celld to stop, and is served as before until the delay has passed, or a second signal or SHUTDOWN ends it.
func TestShutdownDelay(t *testing.T) {
	t.Parallel()
	const tells = `"msg":"stopping after the shutdown delay`
	delayed := func(t *testing.T, signal syscall.Signal, flags ...string) (*harness.Server, *harness.Conn) {
		t.Helper()
		srv := harness.Spec{Flags: append(flags, "--dir", t.TempDir(), "--appendonly", "yes"), Dies: true}.Start(t)
		before := harness.Dial(t, srv.Addr)
		before.Throttle("k", "15", "30", "6000")
		srv.Cmd.Process.Signal(signal)
		celldtest.Eventually(t, "the log tells of the delay", func() bool { return strings.Contains(srv.Log.String(), tells) })
		for _, c := range []*harness.Conn{before, harness.Dial(t, srv.Addr)} {
			if got := c.Throttle("k", "15", "30", "6000", "0"); got[0] != 0 || got[2] != 15 {
				t.Errorf("CL.THROTTLE in the delay: %v", got)
			}
			if got := c.Do("SET", "x", "1"); got != "+OK\r\n" {
				t.Errorf("SET in the delay: %q", got)
			}
		}
		_, port := harness.HostPort(srv.Addr)
		if stdout, stderr, code := harness.RunToEnd(t, nil, "ping", "--port", port); code != 0 || stdout+stderr != "" {
			t.Errorf("celld ping in the delay: %d, %q, %q", code, stdout, stderr)
		}
		stdout, stderr, code := harness.RunToEnd(t, nil, "ready", "--port", port)
		if code != 1 || stdout != "" || !strings.HasSuffix(stderr, " is not ready: the server is stopping\n") {
			t.Errorf("celld ready in the delay: %d, %q, %q", code, stdout, stderr)
		}
		return srv, before
	}
	inOrder := func(t *testing.T, srv *harness.Server, texts ...string) {
		t.Helper()
		rest := srv.Log.String()
		for _, text := range append(texts, `"msg":"stopping"`, `"msg":"stopped"`) {
			var found bool
			if _, rest, found = strings.Cut(rest, text); !found {
				t.Errorf("the log does not have %s, or too early:\n%s", text, srv.Log)
			}
		}
	}
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run("a second "+signal.String(), func(t *testing.T) {
			t.Parallel()
			srv, c := delayed(t, signal, "--shutdown-delay", "3600")
			c.Send(slices.Repeat(harness.Frame("CL.THROTTLE", "l", "15", "30", "60"), 1000))
			c.Reply()
			srv.Cmd.Process.Signal(signal)
			for range 999 { // the ordinary, orderly stop
				c.Reply()
			}
			c.Closed()
			srv.Wait(0)
			inOrder(t, srv, tells, "a second signal ends the shutdown delay")
		})
	}
	t.Run("it passes", func(t *testing.T) {
		t.Parallel()
		srv := harness.Start(t, "--shutdown-delay", "1")
		c := harness.Dial(t, srv.Addr)
		c.Do("PING")
		began := time.Now()
		srv.Cmd.Process.Signal(syscall.SIGTERM)
		c.Closed()
		srv.Wait(0)
		if took := time.Since(began); took < time.Second {
			t.Errorf("it has ended after %v", took)
		}
		inOrder(t, srv, tells)
	})
	t.Run("SHUTDOWN", func(t *testing.T) {
		t.Parallel()
		srv, c := delayed(t, syscall.SIGTERM, "--shutdown-delay", "3600")
		c.Send(harness.Frame("SHUTDOWN"))
		c.Closed()
		srv.Wait(0)
		inOrder(t, srv, tells, "a client asked for shutdown")
	})
	t.Run("SHUTDOWN ABORT", func(t *testing.T) {
		t.Parallel()
		srv, c := delayed(t, syscall.SIGTERM, "--shutdown-delay", "3600")
		if got := c.Do("SHUTDOWN", "ABORT"); got != "+OK\r\n" {
			t.Errorf("SHUTDOWN ABORT: %q", got)
		}
		if got := c.Do("SHUTDOWN", "ABORT"); got != "-ERR No shutdown in progress.\r\n" {
			t.Errorf("SHUTDOWN ABORT again: %q", got)
		}
		_, port := harness.HostPort(srv.Addr)
		celldtest.Eventually(t, "ready again", func() bool {
			_, _, code := harness.RunToEnd(t, nil, "ready", "--port", port)
			return code == 0
		})
		if got := c.Do("CONFIG", "SET", "shutdown-delay", "0"); got != "+OK\r\n" {
			t.Errorf("CONFIG SET: %q", got)
		}
		srv.Cmd.Process.Signal(syscall.SIGTERM)
		srv.Wait(0)
		inOrder(t, srv, tells, "a client aborted the shutdown")
	})
	t.Run("a third signal", func(t *testing.T) {
		t.Parallel()
		srv, _ := delayed(t, syscall.SIGTERM, "--shutdown-delay", "3600", "--shutdown-timeout", "3600")
		deaf := harness.Dial(t, srv.Addr)
		deaf.Send(slices.Repeat(harness.Frame("COMMAND", "DOCS"), 100)) // some 10 MB, and the stop waits for it
		deaf.Reply()
		srv.Cmd.Process.Signal(syscall.SIGTERM)
		celldtest.Eventually(t, "it is stopping", func() bool { return strings.Contains(srv.Log.String(), `"msg":"stopping"`) })
		srv.Cmd.Process.Signal(syscall.SIGTERM)
		srv.Wait(-1)
		if status := srv.Cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGTERM {
			t.Errorf("it ended with %v, want %v", srv.Cmd.ProcessState, syscall.SIGTERM)
		}
	})
}
