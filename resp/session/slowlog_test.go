package session

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"celld/resp/command"
	"celld/resp/command/spec"
	"celld/resp/session/sessiontest"
	"celld/resp/stats"
)

// slowly slows down a command of the table: it takes 20 ms where it has many arguments or long ones.
func (w *world) slowly(name string) {
	row := w.Commands.Find([]byte(name))
	run := row.Run
	row.Run = func(c *command.Call) {
		run(c)
		if args := c.Args; len(args) > 64 || len(args[len(args)-1]) > 16<<10 {
			w.sleepMS(20)
		}
	}
}

func repeat(n int, words ...string) (list []string) {
	for range n {
		list = append(list, words...)
	}
	return list
}

// A command that its arguments make slow is in the slow log, whatever it is else, and its time is its own: the PING that
// comes in the same packet has no part in it.
func TestSlowlogOfFastCommands(t *testing.T) {
	limits := []string{}
	for i := range 70 {
		limits = append(limits, fmt.Sprint("1/", i+1, "s"))
	}
	pairs := []string{}
	for i, limit := range limits {
		pairs = append(pairs, fmt.Sprint("key:", i), limit)
	}
	for _, words := range [][]string{
		append([]string{"UNLINK"}, repeat(100, "a", "b")...),
		append([]string{"EXISTS"}, repeat(100, "a", "b")...),
		append([]string{"TOUCH"}, repeat(100, "a")...),
		append([]string{"CL.RESET"}, repeat(100, "a")...),
		append([]string{"WATCH"}, repeat(100, "a")...),
		append([]string{"DEL"}, repeat(100, "a")...),
		append([]string{"CL.TAKE", "t"}, limits...),
		append([]string{"CL.MTAKE", "70"}, pairs...),
		append([]string{"HSET", "h"}, repeat(50, "1/1s", "gcra 5 0")...),
		{"ECHO", strings.Repeat("x", 20<<10)},
	} {
		name := strings.ToLower(words[0])
		for _, inExec := range []bool{false, true} {
			if inExec && name == "watch" {
				continue
			}
			t.Run(fmt.Sprint(name, " in EXEC ", inExec), func(t *testing.T) {
				w := newWorld(t)
				w.slowly(name)
				c := w.connect()
				calls := 3 // of the same form, which pipelines remember
				packet := strings.Repeat("PING\r\n"+sessiontest.Frame(words...), calls)
				if inExec {
					packet = "MULTI\r\n" + packet + "EXEC\r\n"
				}
				c.send(packet)
				for len(c.in) > 0 { // each turn of a connection is short
					c.Serve(nil)
				}
				entries := w.slowlog.Last(-1)
				if len(entries) != calls || entries[0].US != 20_000 || !strings.EqualFold(entries[0].Args[0], name) {
					t.Errorf("the slow log has %d entries, want %d of 20 ms: %.100q", len(entries), calls, fmt.Sprint(entries))
				}
				if _, got, _ := stats.Of(w.Commands.Find([]byte(name))).Read(); got != int64(calls)*20_000_000 {
					t.Errorf("%s took %d ns by its statistics, want 60 ms", name, got)
				}
				if _, got, _ := stats.Of(w.Commands.Find([]byte("ping"))).Read(); got != 0 {
					t.Errorf("PING took %d ns by its statistics, want 0", got)
				}
			})
		}
	}
}

// A fast command that EXEC runs has its own time, as EXEC's is not the batch's.
func TestCommandStatsInExec(t *testing.T) {
	w := newWorld(t)
	w.Commands.Add(&command.Row{Name: "quick", Arity: 1, Flags: spec.Fast, Run: onSession(func(s *Session, _ [][]byte) {
		w.sleepMS(3)
		s.call.OK()
	})})
	w.connect().send("MULTI\r\nQUICK\r\nQUICK\r\nEXEC\r\n")
	for name, want := range map[string]int64{"quick": 6_000_000, "exec": 6_000_000, "multi": 0} {
		if _, got, _ := stats.Of(w.Commands.Find([]byte(name))).Read(); got != want {
			t.Errorf("%s took %d ns by its statistics, want %d", name, got, want)
		}
	}
}

// What a batch waits for before it begins is no command's time.
func TestCommandStatsLeaveOutTheWait(t *testing.T) {
	w := newWorld(t)
	c := w.connect()
	var now atomic.Int64
	w.Service.Clock = now.Load
	w.Execution.Lock() // as EXEC does
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Serve([]byte("PING\r\n"))
	}()
	stacks := make([]byte, 1<<20)
	for !bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("sync.(*RWMutex).RLock")) { // it has come, and waits
		runtime.Gosched()
	}
	now.Add(5e9)
	w.Execution.Unlock()
	<-done
	if _, got, _ := stats.Of(w.Commands.Find([]byte("ping"))).Read(); got != 0 {
		t.Errorf("PING took %d ns by its statistics, want 0", got)
	}
}

// The slow log keeps no secret, whatever command has it.
func TestSlowlogKeepsNoSecrets(t *testing.T) {
	c := newWorld(t, "slowlog-log-slower-than", "0", "requirepass", "hunter1").connect()
	c.want("AUTH hunter1", "+OK\r\n")
	c.do("HELLO", "2", "AUTH", "default", "hunter1")
	c.want("CONFIG SET requirepass hunter2", "+OK\r\n")
	c.want("MULTI", "+OK\r\n")
	c.want("CONFIG SET requirepass hunter3", "+QUEUED\r\n")
	c.want("EXEC", "*1\r\n+OK\r\n")
	got := c.do("SLOWLOG", "GET")
	if strings.Contains(got, "hunter") ||
		strings.Count(got, "$6\r\nCONFIG\r\n$3\r\nSET\r\n$10\r\n(redacted)\r\n$10\r\n(redacted)\r\n") != 2 {
		t.Errorf("%q", got)
	}
}
