package resp

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"celld/resp/session/sessiontest"
)

// steps are what a wall clock is set by.
var steps = []time.Duration{time.Hour, -time.Hour, 56 * 365 * 24 * time.Hour, -56 * 365 * 24 * time.Hour, 150 * time.Millisecond,
	-150 * time.Millisecond}

// A wall clock that is set changes no limit: it is neither free at once nor locked for longer.
func TestLimitsWhenTheWallClockIsSet(t *testing.T) {
	calls := map[string][]string{"CL.THROTTLE": {"CL.THROTTLE", "k", "9", "10", "3600", "10"}}
	for _, limit := range []string{
		"10/1h", "10/1h,algo=window", "10/1h,algo=slide", "10/1h,algo=slide,buckets=6", "10/1h,algo=log", "1/1s,block=1h", "10/1h,block=2h",
		"10/1h,warmup=1h", "@policy",
	} {
		cost := "10"
		if strings.HasPrefix(limit, "1/") {
			cost = "1"
		}
		calls[limit] = []string{"CL.TAKE", "k", limit, "COST", cost, "US"}
	}
	for name, call := range calls {
		for _, by := range steps {
			w := newWorld(t)
			p := w.connect()
			p.do("CL.POLICY", "SET", "policy", "10/1h")
			if got := p.do(call...); !strings.Contains(got, "\r\n:0\r\n") {
				t.Fatalf("%s: %q", name, got)
			}
			w.sleepMS(700)
			before := p.do(call...) // and is blocked
			w.setWall(by)
			if after := p.do(call...); after != before {
				t.Errorf("%s, by %v: was %q, is %q", name, by, before, after)
			}
			ttl := p.do("PTTL", "k")
			w.setWall(-by)
			if got := p.do("PTTL", "k"); got != ttl || p.do(call...) != before {
				t.Errorf("%s, by %v and back: lives for %q, was %q", name, by, got, ttl)
			}
		}
	}
}

// Windows of the clock and the calendar follow the wall clock: they end where theirs does, and no later than the one it is now in.
func TestTheWindowsOfTheCalendarWhenTheWallClockIsSet(t *testing.T) {
	evening := time.Date(2026, 5, 5, 22, 30, 0, 0, time.UTC)
	for _, c := range []struct {
		limit string
		by    time.Duration
		retry time.Duration // 0: not limited
	}{
		{"10/day", time.Hour, 30 * time.Minute},
		{"10/day", -time.Hour, 150 * time.Minute},
		{"10/day", 2 * time.Hour, 0},
		{"10/day", -23 * time.Hour, 30 * time.Minute},
		{"10/day,tz=+02:00", -time.Hour, 30 * time.Minute}, // from half past midnight there to half past 11
		{"10/month", 24 * time.Hour, 25*24*time.Hour + 90*time.Minute},
		{"10/hour", -time.Hour, 30 * time.Minute},
		{"10/1h,algo=window,align=clock", time.Hour, 0},
		{"10/1h,algo=window,align=clock", -10 * time.Hour, 30 * time.Minute},
		{"10/day,block=2h", time.Hour, 2 * time.Hour}, // a block is no window
		{"10/day,block=48h", 24 * time.Hour, 48 * time.Hour},
		{"10/day,block=48h", -24 * time.Hour, 48 * time.Hour},
	} {
		w := newWorld(t)
		w.nowNS = evening.UnixNano()
		p := w.connect()
		p.do("CL.TAKE", "k", c.limit, "COST", "10")
		p.do("CL.TAKE", "k", c.limit)
		w.setWall(c.by)
		want := fmt.Sprintf("*7\r\n:1\r\n:10\r\n:0\r\n:%d\r\n", c.retry.Milliseconds())
		if c.retry == 0 {
			want = "*7\r\n:0\r\n:10\r\n:9\r\n"
		}
		if got := p.do("CL.TAKE", "k", c.limit); !strings.HasPrefix(got, want) {
			t.Errorf("%s by %v: %q, want %q", c.limit, c.by, got, want)
		}
		if c.retry == 0 {
			continue
		}
		w.nowNS += int64(c.retry) - 1
		if got := p.do("CL.TAKE", "k", c.limit); !strings.HasPrefix(got, "*7\r\n:1\r\n") {
			t.Errorf("%s by %v, 1 ns before its end: %q", c.limit, c.by, got)
		}
		w.nowNS++
		if got := p.do("CL.TAKE", "k", c.limit); !strings.HasPrefix(got, "*7\r\n:0\r\n") {
			t.Errorf("%s by %v, at its end: %q", c.limit, c.by, got)
		}
	}
}

// Expiries are instants of the wall clock, as in Redis, those of EXPIRE too.
func TestExpiriesWhenTheWallClockIsSet(t *testing.T) {
	const far = "1999999999999999999"
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		w := newWorld(t)
		p := w.connect()
		at := w.nowNS/1e6 + 7_200_000
		p.do("SET", "at", far, "PXAT", strconv.FormatInt(at, 10))
		p.do("SET", "in", far, "PX", "7200000")
		p.do("CL.TAKE", "limits", "10/1d", "COST", "10")
		p.do("PEXPIREAT", "limits", strconv.FormatInt(at, 10))
		w.setWall(by)
		left := 7_200_000 - by.Milliseconds()
		for _, key := range []string{"at", "in", "limits"} {
			p.want("PEXPIRETIME "+key, fmt.Sprintf(":%d\r\n", at))
			p.want("PTTL "+key, fmt.Sprintf(":%d\r\n", left))
		}
		p.want("DBSIZE", ":3\r\n")
		w.sleepMS(left - 1)
		p.want("EXISTS at in limits", ":3\r\n")
		w.sleepMS(1)
		p.want("DBSIZE", ":0\r\n") // swept, and not only found to be over
		p.want("SET now "+far+" PX 1000", "+OK\r\n")
		p.want("PTTL now", ":1000\r\n")
		p.want("PEXPIRETIME now", fmt.Sprintf(":%d\r\n", (w.nowNS+w.ahead)/1e6+1000))
	}
}

// What speaks of instants speaks of the wall clock's.
func TestInstantsWhenTheWallClockIsSet(t *testing.T) {
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		w := newWorld(t)
		p := w.connect()
		p.do("CL.THROTTLE", "tat", "0", "1", "60")
		p.do("CL.TAKE", "limits", "10/1m,algo=log", "10/1h", "10/day")
		hash := p.do("HGETALL", "limits")
		w.setWall(by)
		wallNS := w.nowNS + int64(by)
		p.want("GET tat", fmt.Sprintf("$19\r\n%d\r\n", wallNS+60e9))
		p.want("TIME", fmt.Sprintf("*2\r\n$10\r\n%d\r\n$1\r\n0\r\n", wallNS/1e9))
		p.want("PEXPIRETIME tat", fmt.Sprintf(":%d\r\n", wallNS/1e6+60_000))
		p.want("LASTSAVE", fmt.Sprintf(":%d\r\n", wallNS/1e9))
		if info := p.do("INFO", "server"); !strings.Contains(info, fmt.Sprintf("\nserver_time_usec:%d\r\n", wallNS/1e3)) ||
			!strings.Contains(info, "\nuptime_in_seconds:0\r\n") {
			t.Error(info)
		}
		// A value that is read and set again is the same limit.
		p.do("SET", "copy", strconv.FormatInt(wallNS+60e9, 10))
		p.want("CL.THROTTLE copy 0 1 60 0", p.do("CL.THROTTLE", "tat", "0", "1", "60", "0"))
		moved := p.do("HGETALL", "limits")
		fields := hashFields(moved)
		p.do(append([]string{"HSET", "twin"}, fields...)...)
		for _, limit := range []string{"10/1m,algo=log", "10/1h", "10/day"} {
			p.want("CL.TAKE twin "+limit+" PEEK US", p.do("CL.TAKE", "limits", limit, "PEEK", "US"))
		}
		w.setWall(-by)
		p.want("HGETALL limits", hash)
		p.want("HGETALL twin", hash)
	}
}

// hashFields are the words of a hash in a reply of RESP2.
func hashFields(reply string) (words []string) {
	lines := strings.Split(reply, "\r\n")
	for i := 2; i < len(lines); i += 2 {
		words = append(words, lines[i])
	}
	return words
}

func TestRulesWhenTheWallClockIsSet(t *testing.T) {
	for _, by := range steps {
		w := newWorld(t)
		p := w.connect()
		p.do("CL.RULE", "ADD", "DENY", "k", "EX", "60")
		before := p.do("CL.RULE", "LIST")
		w.setWall(by)
		p.want("CL.RULE LIST", before)
		w.sleepMS(59_999)
		p.want("CL.THROTTLE k 0 1 1", "*5\r\n:1\r\n:0\r\n:0\r\n:1\r\n:1\r\n")
		w.sleepMS(1)
		p.want("CL.THROTTLE k 0 1 1", "*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:1\r\n")
	}
}

// A step is told once, and in INFO; what is no step is not. Time-outs, idle times and durations do not see it.
func TestAStepIsTold(t *testing.T) {
	w := newWorld(t, "timeout", "60")
	p := w.connect()
	p.do("PING")
	w.setWall(99 * time.Millisecond)
	w.setWall(-198 * time.Millisecond)
	if w.sessions.Stats.ClockSteps.Load() != 0 || w.log.Len() > 0 {
		t.Errorf("no step: %d, %s", w.sessions.Stats.ClockSteps.Load(), w.log)
	}
	w.setWall(99*time.Millisecond + time.Hour)
	w.setWall(0)
	if n := strings.Count(w.log.String(), "the wall clock was set"); n != 1 || !strings.Contains(w.log.String(), "by=1h0m0s") {
		t.Errorf("told %d times: %s", n, w.log)
	}
	if info := p.do("INFO", "stats"); !strings.Contains(info, "\nclock_steps:1\r\n") {
		t.Error(info)
	}
	if look(w, p); p.tr.Closed {
		t.Error("a client that is not idle was closed")
	}
	w.setWall(-2 * time.Hour)
	w.sleepMS(60_001)
	if look(w, p); !p.tr.Closed {
		t.Error("an idle client was not closed")
	}
}

// While the wall clock is set over and over, pipelines and transactions are answered in their order, nothing is admitted
// twice, and no instant of a transaction is of another wall time.
func TestTheWallClockIsSetBesideClients(t *testing.T) {
	eachCarrier(t, func(t *testing.T, srv *Server, addr string) {
		ctx, stop := context.WithCancel(t.Context())
		var clients, setting sync.WaitGroup
		setting.Go(func() {
			for by := time.Hour; ctx.Err() == nil; by = -by {
				nowNS := srv.sessions.Clock()
				srv.setWall(nowNS+int64(by), nowNS, 2*int64(by))
				time.Sleep(time.Millisecond)
			}
		})
		for i := range 4 {
			c := sessiontest.Dial(t, addr)
			clients.Go(func() {
				for round := range 100 {
					key := fmt.Sprintf("%d:%d", i, round)
					call := sessiontest.Frame("CL.TAKE", key, "3/1h") + sessiontest.Frame("CL.THROTTLE", "t"+key, "2", "3", "3600")
					_, _ = io.WriteString(c, strings.Repeat(call, 5)+sessiontest.Frame("MULTI")+sessiontest.Frame("SET", "at",
						"1999999999999999999", "PX", "5000")+sessiontest.Frame("PTTL", "at")+sessiontest.Frame("EXEC"))
					for n := range 5 {
						for _, length := range []int{7, 5} {
							reply, err := sessiontest.Words(c.Reader)
							if err != nil || len(reply) != length || reply[0] != fmt.Sprintf(":%d", n/3) {
								t.Errorf("%s, call %d: %q, %v", key, n, reply, err)
								return
							}
						}
					}
					for _, want := range []string{"+OK", "+QUEUED", "+QUEUED", "+OK :5000"} {
						if reply, err := sessiontest.Words(c.Reader); err != nil || strings.Join(reply, " ") != want {
							t.Errorf("%s: %q, %v; want %s", key, reply, err, want)
							return
						}
					}
				}
			})
		}
		clients.Wait()
		stop()
		setting.Wait()
	})
}

// In true time, whatever the wall clock says, no limit admits more or denies longer than one whose clock is never set.
func TestNoStepIsSeenInTrueTime(outer *testing.T) {
	limits := []string{"5/10s", "5/10s,burst=2", "5/10s,algo=window", "5/10s,algo=slide", "5/10s,algo=slide,buckets=5", "5/10s,algo=log",
		"2/1s,block=5s", "5/10s,warmup=5s", "@policy"}
	rapid.Check(outer, func(t *rapid.T) {
		set, still := newWorld(outer), newWorld(outer)
		p, q := set.connect(), still.connect()
		policies := []string{"5/10s", "7/10s", "3/20s,algo=log", "5/1m,algo=slide"}
		both := func(words ...string) {
			if got, want := p.do(words...), q.do(words...); got != want {
				t.Fatalf("%v: %q, without steps %q", words, got, want)
			}
		}
		both("CL.POLICY", "SET", "policy", policies[0])
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			key := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key")
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0, 1:
				set.setWall(time.Duration(rapid.Int64Range(-1e9, 1e9).Draw(t, "by in ms")) * time.Millisecond)
			case 2, 3:
				ns := rapid.Int64Range(0, 3e9).Draw(t, "pass")
				set.nowNS, still.nowNS = set.nowNS+ns, still.nowNS+ns
			case 4:
				both("CL.THROTTLE", "t"+key, "4", "5", "10", strconv.Itoa(rapid.IntRange(-3, 5).Draw(t, "quantity")))
			case 5:
				both("CL.GIVE", key, rapid.SampledFrom(limits).Draw(t, "limit"), "2")
			case 6:
				both("CL.POLICY", "SET", "policy", rapid.SampledFrom(policies).Draw(t, "policy"))
			case 7:
				set.sweep(set.nowNS)
				still.sweep(still.nowNS)
				both("RENAME", key, "c")
				both("DBSIZE")
			default:
				both("CL.TAKE", key, rapid.SampledFrom(limits).Draw(t, "limit"),
					"COST", strconv.Itoa(rapid.IntRange(0, 5).Draw(t, "cost")), "US", "FULL")
			}
			both("PTTL", "t"+key)
		}
	})
}
