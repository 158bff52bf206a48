package integration_test

import (
	"io"
	"net"
	"slices"
	"strconv"
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
