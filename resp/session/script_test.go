package session

import (
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"celld/resp/command"
	"celld/resp/door"
	"celld/resp/gate"
	"celld/resp/session/sessiontest"
)

const (
	misconfFull = "-MISCONF Errors writing to the AOF file: no space left on device\r\n"
	endless     = "while true do end"
)

func evalCall(script string, keysAndArgs ...string) string {
	if len(keysAndArgs) == 0 {
		keysAndArgs = []string{"0"}
	}
	return sessiontest.Frame(append([]string{"EVAL", script}, keysAndArgs...)...)
}

// wantError reads an error that begins with text; the rest is which script it was, and where.
func wantError(c sessiontest.Client, text string) {
	c.T.Helper()
	if line, err := c.ReadString('\n'); err != nil || !strings.HasPrefix(line, "-"+text) {
		c.T.Fatalf("%q, %v; want %q", line, err, text)
	}
}

var busySettings = []string{"lua-time-limit", "1"}

// A script that has changed something is not killed.
func TestAScriptThatWroteIsUnkillable(t *testing.T) {
	stopped := &command.Row{Name: "stopped", Arity: 1, Run: onSession(func(s *Session, _ [][]byte) {
		s.call.Bool(s.srv.Stats.Panics.Load() > 0)
	})}
	carrierTest{settings: busySettings, rows: []*command.Row{stopped}}.run(t, func(t *testing.T, srv *Service, addr string) {
		c, killer := sessiontest.Dial(t, addr), sessiontest.Dial(t, addr)
		c.Send(evalCall("redis.call('SET', 'k', '7') while redis.call('STOPPED') == 0 do end return redis.call('GET', 'k')"))
		isBusy(t, srv)
		killer.Ask("SCRIPT KILL\r\nGET k\r\n", "-"+errUnkillable+"\r\n-"+errBusy+"\r\n")
		srv.Stats.Panics.Add(1)
		c.Ask("", "$1\r\n7\r\n")
		killer.Ask("GET k\r\n", "$1\r\n7\r\n")
	})
}

// A monitor is shown a script and what it calls, in order, and its own lines leave while a script is busy.
func TestMonitorOfAScript(t *testing.T) {
	carrierTest{settings: busySettings}.run(t, func(t *testing.T, srv *Service, addr string) {
		m, c := sessiontest.Dial(t, addr), sessiontest.Dial(t, addr)
		m.Ask("MONITOR\r\n", "+OK\r\n")
		c.Send(evalCall("redis.call('GET', 'a') redis.call('PING') " + endless))
		for _, want := range []string{"\"EVAL\" ", "\"GET\" \"a\"\r\n", "\"PING\"\r\n"} {
			if line, err := m.ReadString('\n'); err != nil || !strings.Contains(line, want) {
				t.Fatalf("%q, %v; want %q", line, err, want)
			}
		}
		isBusy(t, srv)
		killer := sessiontest.Dial(t, addr)
		killer.Ask("SCRIPT KILL\r\n", "+OK\r\n")
		wantError(c, errScriptKilled)
	})
}

// A panic in a command that a script calls ends that connection, and the next script runs.
func TestPanicInAScriptsCommand(t *testing.T) {
	for _, script := range []string{
		"redis.call('BOOM')", "redis.pcall('BOOM')", "while true do pcall(redis.call, 'BOOM') end",
		"for i = 1, 2e5 do end redis.call('BOOM')", "redis.call('SET', 'k', '7') for i = 1, 2e5 do end redis.call('BOOM')",
	} {
		carrierTest{rows: []*command.Row{boomRow}, settings: busySettings}.run(t, func(t *testing.T, srv *Service, addr string) {
			other := sessiontest.Dial(t, addr)
			for range 2 {
				c := sessiontest.Dial(t, addr)
				c.Send("PING\r\n" + evalCall(script) + "PING\r\n")
				c.Ask("", "+PONG\r\n-"+door.ErrInternal+"\r\n")
				c.WantClosed()
				other.Ask(evalCall("return redis.call('ECHO', 'hi')"), "$2\r\nhi\r\n")
			}
		})
	}
}

// A reply that is over the output limit ends the connection also where a script asks for it, and nothing else.
func TestAScriptsCallOverTheOutputLimit(t *testing.T) {
	eachCarrier(t, func(t *testing.T, srv *Service, addr string) {
		c, other := sessiontest.Dial(t, addr), sessiontest.Dial(t, addr)
		for i := range 20 {
			other.Ask(sessiontest.Frame("SET", strings.Repeat("k", 10_000)+fmt.Sprint(i), "5"), "+OK\r\n")
		}
		c.Send(evalCall("pcall(redis.call, 'KEYS', '*') while true do end"))
		c.WantClosed()
		if n := srv.Stats.Panics.Load(); n != 0 {
			t.Errorf("%d panics", n)
		}
		if n := srv.Stats.OutputLimitCloses.Load(); n != 1 {
			t.Errorf("%d were closed", n)
		}
		other.Ask("PING\r\n", "+PONG\r\n")
	})
}

// A script that writes, busy or not, before or after it came to be, is answered when that is on the disk.
func TestAScriptsWritesWaitForTheDisk(t *testing.T) {
	disk := &sessiontest.Disk{}
	for name, script := range map[string]string{
		"short":           "return redis.call('SET', KEYS[1], '7')",
		"busy, then":      "for i = 1, 2e5 do end return redis.call('SET', KEYS[1], '7')",
		"then busy":       "local r = redis.call('SET', KEYS[1], '7') for i = 1, 2e5 do end return r",
		"between":         "for i = 1, 2e5 do end local r = redis.call('SET', KEYS[1], '7') for i = 1, 2e5 do end return r",
		"caught an error": "local r = redis.call('SET', KEYS[1], '7') for i = 1, 2e5 do end pcall(error) return r",
	} {
		t.Run(name, func(t *testing.T) {
			carrierTest{files: disk, settings: busySettings}.run(t, func(t *testing.T, srv *Service, addr string) {
				c := sessiontest.Dial(t, addr)
				c.Ask("PING\r\n", "+PONG\r\n")
				disk.Holds(c, func() { c.Send(evalCall(script, "1", t.Name())) })
				c.Ask("", "+OK\r\n")

				disk.Full.Store(true)
				c.Ask("PING\r\n"+evalCall(strings.ReplaceAll(script, "'7'", "'8'"), "1", t.Name())+"PING\r\n",
					"+PONG\r\n"+misconfFull+"+PONG\r\n")
				c.Ask("GET "+t.Name()+"\r\n", "$1\r\n8\r\n")
				disk.Full.Store(false)
				eventually(t, "recovery", func() bool { return srv.Persist.Refusal() == nil })
				c.Ask(evalCall(strings.ReplaceAll(script, "'7'", "'9'"), "1", t.Name()), "+OK\r\n")
				c.Ask("GET "+t.Name()+"\r\n", "$1\r\n9\r\n")
			})
		})
	}
}

// A script whose writes the disk refuses has run as a whole, and so has EXEC with one in it.
func TestAScriptThatIsRefusedHasRun(t *testing.T) {
	disk := &sessiontest.Disk{}
	carrierTest{files: disk, settings: busySettings}.run(t, func(t *testing.T, srv *Service, addr string) {
		c := sessiontest.Dial(t, addr)
		key := func(i int) string { return fmt.Sprint(t.Name(), i) }
		c.Ask(sessiontest.Frame("SET", key(1), "1")+sessiontest.Frame("SET", key(2), "2"), "+OK\r\n+OK\r\n")
		disk.Full.Store(true)
		c.Ask(evalCall("redis.call('SET', KEYS[1], '8') for i = 1, 2e5 do end redis.call('DEL', KEYS[2]) return 1", "2", key(1), key(2)),
			misconfFull)
		c.Ask(sessiontest.Frame("GET", key(1))+sessiontest.Frame("GET", key(2)), "$1\r\n8\r\n$-1\r\n")
		disk.Full.Store(false)
		eventually(t, "recovery", func() bool { return srv.Persist.Refusal() == nil })
		c.Ask(sessiontest.Frame("SET", key(1), "1")+sessiontest.Frame("SET", key(2), "2"), "+OK\r\n+OK\r\n")

		gate := make(chan error)
		disk.Gate.Store(&gate)
		syncs := disk.Syncs.Load()
		c.Send("MULTI\r\n" + sessiontest.Frame("SET", key(1), "8") +
			evalCall("for i = 1, 2e5 do end return redis.call('SET', KEYS[1], '9')", "1", key(2)) + "EXEC\r\n")
		eventually(t, "a write", func() bool { return disk.Syncs.Load() > syncs })
		if srv.running.Load() != nil {
			t.Error("half of a transaction goes to the disk")
		}
		disk.Full.Store(true)
		disk.Gate.Store(nil)
		gate <- syscall.ENOSPC
		close(gate)
		c.Ask("", "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n"+misconfFull+misconfFull)
		disk.Full.Store(false)
		eventually(t, "recovery", func() bool { return srv.Persist.Refusal() == nil })
		c.Ask(sessiontest.Frame("GET", key(1))+sessiontest.Frame("GET", key(2)), "$1\r\n8\r\n$1\r\n9\r\n")
	})
}

// Two keys that a script changes together are never seen apart, and it sees nobody else's changes between its own.
func TestScriptsAreAtomic(t *testing.T) {
	t.Parallel()
	eachCarrier(t, func(t *testing.T, srv *Service, addr string) {
		const rounds = 300
		sessiontest.Dial(t, addr).Ask("SET a 1\r\nSET b 1\r\n", "+OK\r\n+OK\r\n")
		scripts := []string{
			"local n = redis.call('GET', 'a') + 1 redis.call('SET', 'a', n) local m = redis.call('GET', 'b') + 1 redis.call('SET', 'b', m) return n == m",
			"local n = redis.call('GET', 'a') + 1 redis.call('SET', 'a', n) for i = 1, 500 do end redis.call('SET', 'b', n) return true",
		}
		var wg sync.WaitGroup
		for i := range 4 {
			c := sessiontest.Dial(t, addr)
			wg.Go(func() {
				for range rounds {
					c.Ask(strings.Repeat(evalCall(scripts[i%2]), 3), ":1\r\n:1\r\n:1\r\n")
				}
			})
			reader := sessiontest.Dial(t, addr)
			read := "MULTI\r\nGET a\r\nGET b\r\nEXEC\r\n"
			if i%2 == 0 {
				read = evalCall("return {redis.call('GET', 'a'), redis.call('GET', 'b')}")
			}
			wg.Go(func() {
				for range rounds {
					reader.Send(read)
					var a, b string
					for a == "" {
						line, err := reader.ReadString('\n')
						if err != nil {
							t.Error(err)
							return
						}
						if strings.HasPrefix(line, "*2") {
							_, _ = reader.ReadString('\n')
							a, _ = reader.ReadString('\n')
							_, _ = reader.ReadString('\n')
							b, _ = reader.ReadString('\n')
						}
					}
					if a != b {
						t.Errorf("seen apart: %q, %q", a, b)
						return
					}
				}
			})
		}
		wg.Wait()
		want := fmt.Sprint(1 + 4*3*rounds)
		sessiontest.Dial(t, addr).Ask("GET a\r\n", fmt.Sprintf("$%d\r\n%s\r\n", len(want), want))
	})
}

// The log says of a script that it takes long, once it is longer than lua-time-limit.
func TestABusyScriptIsLogged(t *testing.T) {
	for limit, want := range map[string]string{"4": " client=127.0.0.1:4711 took_ms=5\n", "5": "", "0": ""} {
		w := newWorld(t, "lua-time-limit", limit)
		w.Commands.Add(&command.Row{Name: "slowly", Arity: 1, Run: onSession(func(s *Session, _ [][]byte) { w.sleepMS(5); s.call.OK() })})
		if got := w.connect().send(evalCall("redis.call('SLOWLY') for i = 1, 1000000 do end return 1")); got != ":1\r\n" {
			t.Errorf("%q", got)
		}
		if got := w.log.String(); (want == "") != (got == "") || !strings.HasSuffix(got, want) {
			t.Errorf("lua-time-limit %s: log %q, want %q", limit, got, want)
		}
		if w.Gate.Has(gate.Busy) {
			t.Error("still busy")
		}
	}
}

// When a server ends, a script may run until the shutdown time-out is over: half of a short one would stay. Then it is ended.
func TestAScriptComesToItsEndWhenTheServerEnds(t *testing.T) {
	carrierTest{}.run(t, func(t *testing.T, srv *Service, addr string) {
		c := sessiontest.Dial(t, addr)
		srv.EndsNS.Store(srv.Clock() + int64(time.Hour))
		srv.Ending.Store(true)
		c.Send(evalCall("for i = 1, 10000 do redis.call('INCR', 'k') end return redis.call('GET', 'k')"))
		c.Ask("", "$5\r\n10000\r\n")
		srv.EndsNS.Store(srv.Clock())
		c.Send(evalCall("redis.call('INCR', 'k') " + endless))
		wantError(c, errScriptStopping)
	})
}
