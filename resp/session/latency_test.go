package session

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"celld/resp/command"
	"celld/resp/command/argument"
	"celld/resp/command/spec"
	"celld/resp/session/sessiontest"
)

// sleeps adds commands that take as many milliseconds as their first argument says.
func (w *world) sleeps() {
	for name, flags := range map[string]spec.Flags{"sleep": 0, "quick": spec.Fast} {
		w.Commands.Add(&command.Row{Name: name, Arity: 2, Flags: flags, Run: onSession(func(s *Session, args [][]byte) {
			ms, _ := argument.ParseInt(args[1])
			w.sleepMS(ms)
			s.call.OK()
		})})
	}
}

func TestLatencySamples(t *testing.T) {
	w := newWorld(t, "latency-monitor-threshold", "10")
	w.sleeps()
	c := w.connect()
	second := func() int64 { return w.Store.WallNS(w.nowNS) / 1e9 }
	c.do("SLEEP", "9") // below
	c.want("LATENCY LATEST", "*0\r\n")
	w.sleepMS(1000 - w.nowNS/1e6%1000) // so that what follows is in one second
	first := second()
	c.do("SLEEP", "20")
	c.do("SLEEP", "50")
	c.do("SLEEP", "30")
	w.sleepMS(1000)
	c.do("SLEEP", "10")
	c.do("QUICK", "12")
	c.send("QUICK 25\r\nPING\r\nPING\r\n") // 8 ms each
	latest := fmt.Sprintf("*2\r\n*4\r\n$7\r\ncommand\r\n:%d\r\n:10\r\n:50\r\n*4\r\n$12\r\nfast-command\r\n:%d\r\n:12\r\n:12\r\n",
		first+1, first+1)
	c.want("LATENCY LATEST", latest)
	c.want("LATENCY HISTORY command", fmt.Sprintf("*2\r\n*2\r\n:%d\r\n:50\r\n*2\r\n:%d\r\n:10\r\n", first, first+1))
	c.want("LATENCY RESET COMMAND", ":1\r\n")
	c.want("LATENCY HISTORY command", "*0\r\n")
	for range 1000 { // of which 160 are kept
		w.sleepMS(2000)
		c.do("SLEEP", "10")
	}
	history := c.do("LATENCY", "HISTORY", "command")
	if !strings.HasPrefix(history, "*160\r\n") || !strings.HasSuffix(history, fmt.Sprintf(":%d\r\n:10\r\n", second())) {
		t.Errorf("LATENCY HISTORY after 1000 samples: %.100q", history)
	}
}

// An fsync that takes 5 s is an event of its own, and makes no command slow.
func TestLatencyOfTheDisk(t *testing.T) {
	disk := &sessiontest.Disk{}
	eachCarrierOn(t, disk, func(t *testing.T, srv *Service, addr string) {
		c := sessiontest.Dial(t, addr)
		c.Ask("CONFIG SET latency-monitor-threshold 5000\r\nSET k 1\r\nLATENCY LATEST\r\n", "+OK\r\n+OK\r\n*0\r\n")
		gate, before := make(chan error), disk.Syncs.Load()
		disk.Gate.Store(&gate)
		c.Send("SET k 2\r\n")
		eventually(t, "celld waits for the disk", func() bool { return disk.Syncs.Load() > before })
		skew(srv, 5*time.Second)
		disk.Gate.Store(nil)
		gate <- nil
		c.Ask("LATENCY LATEST\r\n", "+OK\r\n*1\r\n*4\r\n$16\r\naof-fsync-always\r\n:")
		var unixS, lastMS, mostMS int64
		n, err := fmt.Fscanf(c, "%d\r\n:%d\r\n:%d\r\n", &unixS, &lastMS, &mostMS)
		if n != 3 || lastMS < 5000 || lastMS > 5000+sessiontest.Patience.Milliseconds() || mostMS != lastMS {
			t.Errorf("at %d s: %d ms, at most %d ms: %v", unixS, lastMS, mostMS, err)
		}
	})
}
