package integration_test

import (
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestSignals ends celld while clients are idle, busy, or not reading.
func TestSignals(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			srv := startStress(t, "--shutdown-timeout", "2")
			idle, half, deaf := dial(t, srv.addr), dial(t, srv.addr), dial(t, srv.addr)
			idle.do("PING")
			half.send([]byte("*1\r\n$4\r\nPI"))
			deaf.send(slices.Repeat(frame("COMMAND", "DOCS"), 50))
			var busy sync.WaitGroup
			for i := range 4 {
				c := dial(t, srv.addr)
				busy.Go(func() {
					for {
						c.SetDeadline(time.Now().Add(replyTimeout))
						if _, err := c.Write(frame("CL.THROTTLE", strconv.Itoa(i), "15", "30", "60")); err != nil {
							return
						}
						if _, err := c.tryReply(replyTimeout); err != nil {
							return
						}
					}
				})
			}
			idle.do("PING")
			srv.cmd.Process.Signal(signal)
			srv.wait(0)
			busy.Wait()
			if _, err := net.Dial("tcp", srv.addr); err == nil {
				t.Error("something still listens")
			}
		})
	}
	t.Run("at once when nobody is busy", func(t *testing.T) {
		t.Parallel()
		srv := start(t, "--shutdown-timeout", "3600")
		idle := dial(t, srv.addr)
		idle.do("PING")
		srv.cmd.Process.Signal(syscall.SIGTERM)
		srv.wait(0)
		idle.closed()
	})
}

// TestShutdownAnswers ends celld right behind a pipeline: what has arrived is answered.
func TestShutdownAnswers(t *testing.T) {
	t.Parallel()
	for range 10 {
		srv := start(t)
		c := dial(t, srv.addr)
		c.do("PING")
		const n = 1000
		c.send(slices.Repeat(frame("CL.THROTTLE", "k", "15", "30", "60"), n))
		if ints, ok := fiveInts(c.reply()); !ok || ints[0] != 0 { // so all of it is in the kernel, and the first is served
			t.Fatalf("the first reply: %v", ints)
		}
		srv.cmd.Process.Signal(syscall.SIGTERM)
		for i := 1; i < n; i++ {
			raw, err := c.tryReply(replyTimeout)
			if _, ok := fiveInts(raw); !ok {
				t.Fatalf("reply %d of %d: %q, %v", i+1, n, raw, err)
			}
		}
		if raw, err := c.tryReply(replyTimeout); err != io.EOF {
			t.Errorf("after the last reply: %q, %v", raw, err)
		}
		srv.wait(0)
	}
}

// TestShutdownCommand ends celld by command.
func TestShutdownCommand(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"SHUTDOWN"}, {"SHUTDOWN", "NOSAVE"}, {"shutdown", "nosave", "now", "force"}} {
		srv := start(t)
		c, other := dial(t, srv.addr), dial(t, srv.addr)
		other.do("PING")
		c.send(frame(args...))
		c.closed()
		srv.wait(0)
		other.closed()
	}
}

// TestShutdownDelay tells celld to stop, and is served as before until the delay has passed, or a second signal or SHUTDOWN ends it.
func TestShutdownDelay(t *testing.T) {
	t.Parallel()
	const tells = `"msg":"stopping after the shutdown delay`
	delayed := func(t *testing.T, signal syscall.Signal, flags ...string) (*server, *conn) {
		t.Helper()
		srv := spec{flags: append(flags, "--dir", t.TempDir(), "--appendonly", "yes"), dies: true}.start(t)
		before := dial(t, srv.addr)
		before.throttle("k", "15", "30", "60")
		srv.cmd.Process.Signal(signal)
		eventually(t, "the log tells of the delay", func() bool { return strings.Contains(srv.log.String(), tells) })
		for _, c := range []*conn{before, dial(t, srv.addr)} {
			if got := c.throttle("k", "15", "30", "60", "0"); got != [5]int64{0, 16, 15, -1, 2} {
				t.Errorf("CL.THROTTLE in the delay: %v", got)
			}
			if got := c.do("SET", "x", "1"); got != "+OK\r\n" {
				t.Errorf("SET in the delay: %q", got)
			}
		}
		_, port := hostPort(srv.addr)
		for _, command := range []string{"ping", "ready"} {
			if stdout, stderr, code := runToEnd(t, nil, command, "--port", port); code != 0 || stdout+stderr != "" {
				t.Errorf("celld %s in the delay: %d, %q, %q", command, code, stdout, stderr)
			}
		}
		return srv, before
	}
	inOrder := func(t *testing.T, srv *server, texts ...string) {
		t.Helper()
		rest := srv.log.String()
		for _, text := range append(texts, `"msg":"stopping"`, `"msg":"stopped"`) {
			var found bool
			if _, rest, found = strings.Cut(rest, text); !found {
				t.Errorf("the log does not have %s, or too early:\n%s", text, srv.log)
			}
		}
	}
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run("a second "+signal.String(), func(t *testing.T) {
			t.Parallel()
			srv, c := delayed(t, signal, "--shutdown-delay", "3600")
			c.send(slices.Repeat(frame("CL.THROTTLE", "l", "15", "30", "60"), 1000))
			c.reply()
			srv.cmd.Process.Signal(signal)
			for range 999 { // the ordinary, orderly stop
				c.reply()
			}
			c.closed()
			srv.wait(0)
			inOrder(t, srv, tells, "a second signal ends the shutdown delay")
		})
	}
	t.Run("it passes", func(t *testing.T) {
		t.Parallel()
		srv := start(t, "--shutdown-delay", "1")
		c := dial(t, srv.addr)
		c.do("PING")
		began := time.Now()
		srv.cmd.Process.Signal(syscall.SIGTERM)
		c.closed()
		srv.wait(0)
		if took := time.Since(began); took < time.Second {
			t.Errorf("it has ended after %v", took)
		}
		inOrder(t, srv, tells)
	})
	t.Run("SHUTDOWN", func(t *testing.T) {
		t.Parallel()
		srv, c := delayed(t, syscall.SIGTERM, "--shutdown-delay", "3600")
		c.send(frame("SHUTDOWN"))
		c.closed()
		srv.wait(0)
		inOrder(t, srv, tells, "a client asked for shutdown")
	})
	t.Run("SHUTDOWN ABORT", func(t *testing.T) {
		t.Parallel()
		srv, c := delayed(t, syscall.SIGTERM, "--shutdown-delay", "3600")
		if got := c.do("SHUTDOWN", "ABORT"); got != "+OK\r\n" {
			t.Errorf("SHUTDOWN ABORT: %q", got)
		}
		if got := c.do("SHUTDOWN", "ABORT"); got != "-ERR No shutdown in progress.\r\n" {
			t.Errorf("SHUTDOWN ABORT again: %q", got)
		}
		if got := c.do("CONFIG", "SET", "shutdown-delay", "0"); got != "+OK\r\n" {
			t.Errorf("CONFIG SET: %q", got)
		}
		srv.cmd.Process.Signal(syscall.SIGTERM)
		srv.wait(0)
		inOrder(t, srv, tells, "a client aborted the shutdown")
	})
	t.Run("a third signal", func(t *testing.T) {
		t.Parallel()
		srv, _ := delayed(t, syscall.SIGTERM, "--shutdown-delay", "3600", "--shutdown-timeout", "3600")
		deaf := dial(t, srv.addr)
		deaf.send(slices.Repeat(frame("COMMAND", "DOCS"), 100)) // some 10 MB, which the stop waits for
		deaf.reply()
		srv.cmd.Process.Signal(syscall.SIGTERM)
		eventually(t, "it is stopping", func() bool { return strings.Contains(srv.log.String(), `"msg":"stopping"`) })
		srv.cmd.Process.Signal(syscall.SIGTERM)
		srv.wait(-1)
		if status := srv.cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGTERM {
			t.Errorf("it ended with %v, want %v", srv.cmd.ProcessState, syscall.SIGTERM)
		}
	})
}
