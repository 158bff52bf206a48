package session

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"celld/internal/celldtest"
	"celld/resp/command/decide"
	"celld/resp/door"
	"celld/store"
)

// inTime runs a test of several sessions on one store, whose clock is synctest's.
func inTime(t *testing.T, test func(t *testing.T, w *world), settings ...string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, settings...)
		begin := time.Now()
		w.Clock = func() int64 { return w.nowNS + int64(time.Since(begin)) }
		test(t, w)
		if callers, keys := w.Store.Waiting(); callers != 0 || keys != 0 {
			t.Errorf("%d still wait for %d keys", callers, keys)
		}
	})
}

// after returns what the session sends when so much time has passed.
func (p *peer) after(d time.Duration) string {
	celldtest.Pass(d)
	return p.send("")
}

// granted reports whether a reply of CL.TAKE or CL.MTAKE says so.
func granted(reply string) bool {
	return strings.HasPrefix(strings.TrimLeft(reply, "*123456789\r\n"), ":0\r\n")
}

// A call that waits is answered at its moment and not before, whatever the limit counts. Nobody else waits for it.
func TestAWaitEndsAtItsMoment(t *testing.T) {
	for limit, wait := range map[string]time.Duration{
		"1/10s":                      10 * time.Second,
		"2/10s,burst=1":              5 * time.Second,
		"1/10s,algo=window":          10 * time.Second,
		"1/10s,algo=log":             10 * time.Second,
		"1/10s,algo=conc":            10 * time.Second,
		"1/10s,algo=slide,buckets=2": 10 * time.Second, // a test begins with a sub-window
		"1/1s,warmup=2s,cold=2":      1625 * time.Millisecond,
		"9/10s 1/1m 1/10s,algo=log":  time.Minute,
	} {
		t.Run(limit, func(t *testing.T) {
			inTime(t, func(t *testing.T, w *world) {
				p, other := w.connect(), w.connect()
				call := "CL.TAKE k " + limit
				if got := other.send(call + "\r\n"); !granted(got) {
					t.Fatalf("%q", got)
				}
				if got := p.send(call + " WAIT 60000\r\nPING\r\n"); got != "" {
					t.Fatalf("answered at once: %q", got)
				}
				if got := other.send(call + "\r\n"); granted(got) {
					t.Errorf("overtaken: %q", got)
				}
				if got := p.after(wait - time.Millisecond); got != "" {
					t.Errorf("%v early: %q", time.Millisecond, got)
				}
				if got := p.after(time.Millisecond); !granted(got) || !strings.HasSuffix(got, "+PONG\r\n") {
					t.Errorf("%q", got)
				}
			})
		})
	}
}

// ends are the ways in which a session ends, or lets go of what it holds.
var ends = map[string]func(p, other *peer){
	"closed": func(p, _ *peer) { p.Closed() },
	"QUIT":   func(p, _ *peer) { p.send("QUIT\r\n"); p.Closed() },
	"RESET":  func(p, _ *peer) { p.want("RESET", "+RESET\r\n") },
	"killed": func(p, other *peer) {
		other.want(fmt.Sprintf("CLIENT KILL ID %d", p.client.ID), ":1\r\n")
		p.Serve(nil)
		p.Closed()
	},
	"protocol": func(p, _ *peer) { p.send("*1\r\n$-2\r\n"); p.Closed() },
	"broken":   func(p, _ *peer) { p.borrow(); p.broken(); p.Closed() },
	"idle": func(p, _ *peer) {
		celldtest.Pass(2 * time.Second)
		p.srv.WakeIdle()
		p.Serve(nil)
		p.Closed()
	},
}

// A lease with BIND ends with the session that took it, and the call that waits for it has it then. One without BIND stays.
func TestBoundLeasesEnd(t *testing.T) {
	calls := map[string]string{ // how it is taken, and who wants it
		"CL.TAKE k 1/1h,algo=conc%s":                                              "CL.TAKE k 1/1h,algo=conc WAIT 60000",
		"CL.TAKE k 5/5m,algo=log COST 5 LEASE 3000000%s":                          "CL.TAKE k 5/5m,algo=log WAIT 300000",
		"CL.MTAKE 2 a 9/1h k 1/1h,algo=conc%s":                                    "CL.MTAKE 2 k 1/1h,algo=conc a 9/1h WAIT 60000",
		"EVAL return redis.call('CL.TAKE','k','1/1h,algo=conc%s')":                "CL.TAKE k 1/1h,algo=conc WAIT 60000",
		"MULTI\r\nCL.TAKE k 1/1h,algo=conc%s\r\nCL.TAKE k 1/1h,algo=conc\r\nEXEC": "CL.TAKE k 1/1h,algo=conc WAIT 60000",
	}
	for how, end := range ends {
		for call, wants := range calls {
			for _, options := range []string{" BIND", " ID x BIND", ""} {
				inTime(t, func(t *testing.T, w *world) {
					p, waits := w.connect(), w.connect()
					if strings.HasPrefix(call, "EVAL") { // the words are strings of Lua
						p.do("EVAL", fmt.Sprintf(call, strings.ReplaceAll(options, " ", "','"))[len("EVAL "):], "0")
					} else {
						p.send(fmt.Sprintf(call, options) + "\r\n")
					}
					if got := waits.send(wants + "\r\n"); got != "" {
						t.Fatalf("%s, %s: not held: %q", how, call, got)
					}
					end(p, w.connect())
					if got := waits.after(0); granted(got) != (options != "") {
						t.Errorf("%s, %s: %q", how, fmt.Sprintf(call, options), got)
					}
					waits.Closed()
				}, "wait-max", "600000", "timeout", "1")
			}
		}
	}
}

// A repeat under the same name is answered as the first call was, from any connection, while the lease lives.
func TestARepeatFromAnotherConnection(t *testing.T) {
	inTime(t, func(t *testing.T, w *world) {
		p, other := w.connect(), w.connect()
		const call = "CL.TAKE k 10/1m COST 4 LEASE 5000 ID job"
		first := p.send(call + "\r\n")
		p.Closed()
		if got := other.send(call + "\r\n"); got != first {
			t.Errorf("%q, want %q", got, first)
		}
		celldtest.Pass(5 * time.Second)
		got := other.send(call + "\r\n")
		if id := func(reply string) string { return reply[strings.LastIndex(reply, ":"):] }; !granted(got) || id(got) <= id(first) {
			t.Errorf("%q after %q", got, first)
		}
	})
}

// A wait costs no time: neither in SLOWLOG nor in the statistics of commands. MONITOR shows the call when it comes.
func TestAWaitIsNotCounted(t *testing.T) {
	inTime(t, func(t *testing.T, w *world) {
		p, other, monitor := w.connect(), w.connect(), w.connect()
		monitor.want("MONITOR", "+OK\r\n")
		const call = "CL.TAKE k 1/10s,algo=window WAIT 60000"
		p.send(call + "\r\n" + call + "\r\n")
		if got := strings.Count(monitor.send(""), `"WAIT" "60000"`); got != 2 {
			t.Errorf("MONITOR has %d calls", got)
		}
		if got := other.do("INFO", "clients"); !strings.Contains(got, "blocked_clients:1\r\nwaiting_keys:1\r\n") {
			t.Error(got)
		}
		if got := other.do("CLIENT", "LIST", "ID", fmt.Sprint(p.client.ID)); !strings.Contains(got, " flags=b ") {
			t.Error(got)
		}
		if got := p.after(10 * time.Second); !granted(got) {
			t.Errorf("%q", got)
		}
		if got := other.do("INFO", "clients"); !strings.Contains(got, "blocked_clients:0\r\nwaiting_keys:0\r\n") {
			t.Error(got)
		}
		if got := other.do("SLOWLOG", "LEN"); got != ":0\r\n" {
			t.Errorf("SLOWLOG has %s", got)
		}
		usec := regexp.MustCompile(`cmdstat_cl.take:calls=2,usec=(\d+),`).FindStringSubmatch(other.do("INFO", "commandstats"))
		if usec == nil || len(usec[1]) > 6 {
			t.Errorf("commandstats: %v µs", usec)
		}
		if got := other.do("LATENCY", "LATEST"); got != "*0\r\n" {
			t.Errorf("LATENCY LATEST: %q", got)
		}
	}, "slowlog-log-slower-than", "1000000", "latency-monitor-threshold", "1000")
}

// Whoever waits and is unblocked or killed has taken nothing, and those behind move up. Its retry after is that of a plain call, which
// passes after those who wait.
func TestAWaitThatIsEnded(t *testing.T) {
	for how, want := range map[string]string{
		"CLIENT UNBLOCK %d":         "*7\r\n:1\r\n:1\r\n:0\r\n:19000\r\n:9000\r\n:0\r\n:0\r\n",
		"CLIENT UNBLOCK %d TIMEOUT": "*7\r\n:1\r\n:1\r\n:0\r\n:19000\r\n:9000\r\n:0\r\n:0\r\n",
		"CLIENT UNBLOCK %d ERROR":   "-" + door.ErrUnblocked + "\r\n",
		"CLIENT KILL ID %d":         "",
	} {
		inTime(t, func(t *testing.T, w *world) {
			p, behind, other := w.connect(), w.connect(), w.connect()
			const call = "CL.TAKE k 1/10s,algo=window"
			other.send(call + "\r\n")
			p.send(call + " WAIT 60000\r\n")
			behind.send(call + " WAIT 60000\r\n")
			celldtest.Pass(time.Second)
			other.want(fmt.Sprintf(how, p.client.ID), ":1\r\n")
			if got := p.after(0); got != want {
				t.Errorf("%s: %q, want %q", how, got, want)
			}
			if p.tr.Closed {
				p.Closed()
			}
			if got := behind.after(9 * time.Second); !granted(got) {
				t.Errorf("%s: %q behind it", how, got)
			}
		})
	}
}

// At SIGTERM all that wait are refused, and so are those that come then.
func TestWaitsAreRefusedAtTheEnd(t *testing.T) {
	inTime(t, func(t *testing.T, w *world) {
		other := w.connect()
		other.send("CL.TAKE k 1/1h,algo=window\r\nCL.TAKE c 1/1h,algo=conc\r\n")
		calls := []string{"CL.TAKE k 1/1h,algo=window WAIT 3600000\r\n", "CL.TAKE c 1/1h,algo=conc WAIT 1000\r\n",
			"CL.MTAKE 2 a 1/1h c 1/1h,algo=conc WAIT 1000\r\n"}
		var waiting []*peer
		for _, call := range calls {
			p := w.connect()
			if got := p.send(call); got != "" {
				t.Fatalf("%s: %q", call, got)
			}
			waiting = append(waiting, p)
		}
		w.RefuseWaiting()
		for i, p := range waiting {
			if got := p.after(0); got == "" || granted(got) {
				t.Errorf("%s: %q", calls[i], got)
			}
			if got := p.send(calls[i]); got == "" {
				if got = p.after(0); got == "" || granted(got) {
					t.Errorf("%s afterwards: %q", calls[i], got)
				}
			}
		}
	}, "wait-max", "3600000")
}

// --max-waiters and --wait-max hold from the call on that comes next.
func TestBoundsOfWaiting(t *testing.T) {
	inTime(t, func(t *testing.T, w *world) {
		a, b, other := w.connect(), w.connect(), w.connect()
		const call = "CL.TAKE k 1/10s,algo=window WAIT 60000"
		other.send(call + "\r\n")
		if got := a.send(call + "\r\n"); got != "" {
			t.Errorf("%q", got)
		}
		b.want(call, "-"+door.ErrMaxWaiters+"\r\n")
		other.want("CONFIG SET max-waiters 2", "+OK\r\n")
		if got := b.send(call + "\r\n"); got != "" {
			t.Errorf("%q", got)
		}
		other.want("CONFIG SET wait-max 59999 max-waiters 1", "+OK\r\n")
		other.want(call, "-"+formatError(decide.ErrWaitMax, 59999)+"\r\n")
		other.want("CL.TAKE k 1/10s,algo=window WAIT 59999", "-"+door.ErrMaxWaiters+"\r\n")
		got := other.send("CL.TAKE k 1/10s,algo=window WAIT 5\r\nCL.TAKE new 1/10s WAIT 5\r\n")
		if strings.Count(got, "*7\r\n:1\r\n") != 1 || strings.Count(got, "*7\r\n:0\r\n") != 1 {
			t.Errorf("those that need not wait: %q", got)
		}
		if got := a.after(10*time.Second) + b.after(10*time.Second); strings.Count(got, "*7\r\n:0\r\n") != 2 {
			t.Errorf("%q", got)
		}
	}, "max-waiters", "1")
}

// A grant that meets the end of its session flows back, whichever comes first.
func TestAGrantMeetsADisconnect(t *testing.T) {
	w := newWorld(t, "wait-max", "3600000")
	other := w.connect()
	for i, call := range []string{
		"CL.TAKE k 1/1h,algo=conc", "CL.TAKE k 1/1h,algo=conc BIND ID x", "CL.TAKE k 1/1h,algo=window", "CL.TAKE k 1/1h LEASE 1000000",
		"CL.MTAKE 2 k 1/1h a 1/1h,algo=conc",
	} {
		wants, _, _ := strings.Cut(call, " LEASE")
		for range 300 {
			other.do("DEL", "k", "a")
			other.send(call + "\r\n")
			p := w.connect()
			if got := p.send(strings.ReplaceAll(call, " ID x", "") + " WAIT 3600000\r\n"); got != "" {
				t.Fatalf("%s: %q", call, got)
			}
			var both sync.WaitGroup
			both.Go(func() { other.do("DEL", "k", "a") })
			both.Go(p.Closed)
			both.Wait()
			eventually(t, "room for "+call, func() bool { return granted(other.send(wants + " PEEK\r\n")) })
		}
		if callers, _ := w.Store.Waiting(); callers != 0 {
			t.Fatalf("%d: %d wait", i, callers)
		}
	}
}

// What a rule has allowed was taken from no limit, and nothing flows back when its session has gone before it was answered.
func TestARulesGrantDoesNotFlowBack(t *testing.T) {
	inTime(t, func(t *testing.T, w *world) {
		const call = "CL.TAKE k 1/1h,algo=window"
		for change, left := range map[string]string{"CL.RULE ADD ALLOW k": " used=1\r\n", "DEL k": "*0\r\n"} { // the second has it take
			p, other := w.connect(), w.connect()
			other.send("DEL k\r\n" + call + "\r\n")
			if got := p.send(call + " WAIT 3600000\r\n"); got != "" {
				t.Fatalf("%s: %q", change, got)
			}
			other.want(change, ":1\r\n")
			synctest.Wait()
			if callers, _ := w.Store.Waiting(); callers != 0 {
				t.Errorf("%s: it still waits", change)
			}
			p.Closed() // it has been granted, and nobody has read that
			other.send("CL.RULE DEL ALLOW k\r\n")
			if got := other.send("HGETALL k\r\n"); !strings.HasSuffix(got, left) {
				t.Errorf("%s: %q", change, got)
			}
		}
	}, "wait-max", "3600000")
}

// slowRelease is a limiter that takes half a millisecond to release a lease.
type slowRelease struct {
	store.Store
	released int
}

func (s *slowRelease) Release(key []byte, id int64, a store.Access) (bool, error) {
	time.Sleep(500 * time.Microsecond)
	s.released++
	return s.Store.Release(key, id, a)
}

// Nobody waits until all leases of a connection that has gone have ended.
func TestManyBoundLeasesEndLater(t *testing.T) {
	inTime(t, func(t *testing.T, w *world) {
		slow := &slowRelease{Store: w.Port}
		w.Port = slow
		p, other := w.connect(), w.connect()
		p.send(strings.Repeat("CL.TAKE k 100/1h,algo=conc BIND\r\n", 100))
		other.send("CL.TAKE k 100/1h,algo=conc BIND\r\nCL.TAKE l 100/1h,algo=conc BIND\r\n")
		began := time.Now()
		p.Closed()
		other.Closed()
		if took := time.Since(began); took > 2*time.Millisecond {
			t.Errorf("the connection's end took %v", took)
		}
		celldtest.Pass(time.Second)
		got := w.connect().send("CL.TAKE k 100/1h,algo=conc PEEK\r\n")
		if !strings.HasPrefix(got, "*8\r\n:0\r\n:100\r\n:100\r\n") || slow.released != 101 {
			t.Errorf("%d released: %q", slow.released, got)
		}
	})
}

func TestWaitsAreMetrics(t *testing.T) {
	inTime(t, func(t *testing.T, w *world) {
		p, other := w.connect(), w.connect()
		p.send("CL.TAKE k 1/10s,algo=window WAIT 60000\r\n")
		p.send("CL.TAKE k 1/10s,algo=window WAIT 60000\r\n")
		other.send("CL.TAKE k 1/10s,algo=window WAIT 5\r\n") // is refused
		p.after(10 * time.Second)
		h := w.Stats.Waits.Histogram()
		if h.Count != 2 || h.Below[0] != 1 || h.Below[6] != 1 || h.Below[7] != 2 || h.Below[9] != 2 || h.MostNS[7] != 16_384_000_000 ||
			h.SumNS < 10e9 || h.SumNS > 10.1e9 {
			t.Errorf("%+v", h)
		}
	})
}
