package take

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// resident is how much memory a server has, once it has given back what it does not need.
func resident(c *harness.Conn, srv *harness.Server) int64 {
	c.T.Helper()
	c.Do("MEMORY", "PURGE")
	var kb int64
	for line := range strings.Lines(celldtest.ReadFile(c.T, "/proc", fmt.Sprint(srv.Cmd.Process.Pid), "status")) {
		fmt.Sscanf(line, "VmRSS: %d kB", &kb)
	}
	return kb << 10
}

// TestManyWaiters opens 5000 connections that wait for one limit. They take 2 KB each, beside what an idle one takes. When the
// rate is raised, they pass in the order in which they came, and no faster than that rate.
func TestManyWaiters(t *testing.T) {
	t.Parallel()
	const waiters, rate, bytes = 5000, 2500, 2 << 10
	srv := harness.Start(t, "--maxclients", fmt.Sprint(waiters+10), "--max-waiters", fmt.Sprint(waiters), "--wait-max", "86400000")
	c := harness.Dial(t, srv.Addr)
	c.Do("CL.POLICY", "SET", "p", "10000/1h")
	c.Take("k", "@p", "COST", "15000", "FORCE") // so that nobody passes for half an hour
	conns := make([]*harness.Conn, waiters)
	for i := range conns {
		conns[i] = harness.Dial(t, srv.Addr)
		conns[i].Do("CL.TAKE", "other", "@p", "WAIT", "1") // a connection knows what commands like this one need
	}
	idle := resident(c, srv)
	for i, waiter := range conns {
		waiter.Send(harness.Frame("CL.TAKE", "k", "@p", "WAIT", "86400000", "LEASE", "86400000"))
		celldtest.Eventually(t, fmt.Sprintf("%d wait", i+1), func() bool {
			text, _ := harness.Bulk(c.Do("INFO", "clients"))
			return harness.ContainsLine(text, fmt.Sprintf("blocked_clients:%d", i+1))
		})
	}
	celldtest.Eventually(t, fmt.Sprintf("a waiter takes %d bytes at most", bytes), func() bool {
		return (resident(c, srv)-idle)/waiters <= bytes
	})
	t.Logf("%d bytes a waiter", (resident(c, srv)-idle)/waiters)
	got := harness.Dial(t, srv.Addr).Do("CL.TAKE", "k", "@p", "WAIT", "86400000")
	if got != "-ERR too many calls wait already (--max-waiters)\r\n" {
		t.Errorf("one more: %q", got)
	}

	began := time.Now()
	c.Do("CL.POLICY", "SET", "p", fmt.Sprintf("%d/1s,burst=1", rate))
	last := int64(0)
	for i, waiter := range conns {
		raw := waiter.Reply()
		reply, id, err := harness.ReadLease(raw)
		if err != nil || reply.Limited != 0 || id <= last {
			t.Fatalf("waiter %d: %q, %v; the id before was %d", i, raw, err, last)
		}
		last = id
	}
	if took, least := time.Since(began), time.Duration(waiters-1)*time.Second/rate; took < least {
		t.Errorf("all pass in %v, want %v at least", took, least)
	} else {
		t.Logf("all pass in %v, at best %v", took, least)
	}
	srv.Waiting(t, 0)
}

// TestWaitersLeave runs clients that ask for what they have to wait for, and go away. When all have gone, nobody waits, nobody
// holds anything, and nothing is taken.
func TestWaitersLeave(t *testing.T) {
	t.Parallel()
	srv := harness.StartStress(t, "--io-threads", "4")
	c, rnd := harness.Dial(t, srv.Addr), celldtest.NewRand(t)
	c.Do("CL.POLICY", "SET", "p", "5/1h,algo=log")
	calls := [][]string{
		{"rate", "2/1h", "WAIT", "60000"},
		{"rate", "2/1h", "WAIT", "60000", "LEASE", "3600000", "BIND"},
		{"windows", "2/10s,algo=window", "WAIT", "60000"},
		{"conc", "3/1h,algo=conc", "WAIT", "60000", "BIND"},
		{"both", "3/1h,algo=conc", "1000000/1h", "WAIT", "60000", "BIND"},
		{"policy", "@p", "WAIT", "60000", "LEASE", "3600000", "BIND"},
	}
	c.Take("rate", "2/1h", "COST", "2")
	c.Take("rate", "2/1h", "COST", "1", "FORCE")
	c.Take("policy", "@p", "COST", "5")
	before := c.Take("rate", "2/1h", "PEEK")
	var all sync.WaitGroup
	for range 16 {
		rnd := rand.New(rand.NewPCG(rnd.Uint64(), 0))
		all.Go(func() {
			for range 60 {
				peer := harness.Dial(t, srv.Addr)
				for range 1 + rnd.IntN(2) {
					peer.Write(harness.Frame(append([]string{"CL.TAKE"}, calls[rnd.IntN(len(calls))]...)...))
				}
				time.Sleep(time.Duration(rnd.IntN(8)) * time.Millisecond)
				if rnd.IntN(4) == 0 { // it has granted something, perhaps
					peer.TryReply(time.Millisecond)
				}
				peer.Close()
			}
		})
	}
	all.Wait()
	srv.Waiting(t, 0)
	celldtest.Eventually(t, "all have gone", func() bool {
		text := c.Do("INFO", "clients")
		return harness.ContainsLine(text, "connected_clients:1") && harness.ContainsLine(text, "waiting_keys:0")
	})
	for key, limit := range map[string]string{"conc": "3/1h,algo=conc", "both": "3/1h,algo=conc"} {
		if reply, _ := c.Lease(key, limit, "PEEK"); reply.Remaining != 3 {
			t.Errorf("%s: %+v", key, reply)
		}
	}
	if after := c.Take("rate", "2/1h", "PEEK"); after.RetryMS > before.RetryMS || after.ResetMS > before.ResetMS {
		t.Errorf("rate: %+v before, %+v after", before, after)
	}
	if got := c.Take("policy", "@p", "PEEK"); got.Remaining != 0 || got.ResetMS > 3_600_000 {
		t.Errorf("policy: %+v", got)
	}
	if got := c.Do("INFO", "everything"); !harness.ContainsLine(got, "handler_panics:0") {
		t.Error("a handler has panicked")
	}
}

// waiter sends a call that must wait, the n-th, and returns its connection once it waits.
func waiter(t *testing.T, srv *harness.Server, n int, args ...string) *harness.Conn {
	t.Helper()
	c := harness.Dial(t, srv.Addr)
	c.Send(harness.Frame(append([]string{"CL.TAKE"}, args...)...))
	srv.Waiting(t, n)
	return c
}

// TestWaitersPolicy changes the policy that callers wait for: to one that lets some of them through, to one that lets them through at
// a pace, and to one under which a call never passes. Then it removes the policy.
func TestWaitersPolicy(t *testing.T) {
	t.Parallel()
	srv := harness.Start(t)
	c := harness.Dial(t, srv.Addr)
	passed := func(w *harness.Conn, is string) {
		t.Helper()
		if raw := w.Reply(); !strings.HasPrefix(raw, is) {
			t.Errorf("%q, want %q", raw, is)
		}
	}
	const granted, limited = "*7\r\n:0\r\n", "*7\r\n:1\r\n"
	set := func(limit string) {
		t.Helper()
		if got := c.Do("CL.POLICY", "SET", "p", limit); got != ":1\r\n" {
			t.Errorf("CL.POLICY SET p %s: %q", limit, got)
		}
	}
	set("2/10s,algo=window")
	c.Take("k", "@p", "COST", "2")
	var all []*harness.Conn
	for i := range 5 { // the last one is three windows ahead
		all = append(all, waiter(t, srv, i+1, "k", "@p", "WAIT", "60000"))
	}
	if got := c.Do("CL.POLICY", "SET", "p", "4/20s,algo=log", "RESET"); got != ":1\r\n" {
		t.Errorf("RESET: %q", got)
	}
	for i := range 4 {
		passed(all[i], granted)
	}
	srv.Waiting(t, 1)
	all = append(all, waiter(t, srv, 2, "k", "@p", "WAIT", "60000"), waiter(t, srv, 3, "k", "@p", "COST", "4", "WAIT", "60000"))
	set("3/300ms,burst=3")
	passed(all[4], granted)
	passed(all[5], granted)
	passed(all[6], limited) // it never passes
	srv.Waiting(t, 0)
	set("1/30s,burst=1")
	c.Do("DEL", "k")
	c.Take("k", "@p")
	last := waiter(t, srv, 1, "k", "@p", "WAIT", "60000")
	c.Do("CL.POLICY", "DEL", "p")
	passed(last, "-NOPOLICY ")
	srv.Waiting(t, 0)
}

// TestWaitersOfSeveralKeys runs clients that wait for two of four keys at a time, in any order. They give them back, or close with
// them. No key is ever held more often than its limit says, every client gets its turn, and all keys are free at the end.
func TestWaitersOfSeveralKeys(t *testing.T) {
	t.Parallel()
	const keys, clients, turns, most = 4, 12, 60, 2
	srv := harness.StartStress(t, "--io-threads", "4")
	rnd := celldtest.NewRand(t)
	const limit = "2/1h,algo=conc"
	var holders [keys]atomic.Int64
	var all sync.WaitGroup
	for client := range clients {
		rnd := rand.New(rand.NewPCG(rnd.Uint64(), 0))
		all.Go(func() {
			c := harness.Dial(t, srv.Addr)
			for turn := range turns {
				i, j := rnd.IntN(keys), rnd.IntN(keys) // the same key twice counts twice
				key := func(i int) string { return fmt.Sprint("k", i) }
				raw, err := c.TryDo([]string{"CL.MTAKE", "2", key(i), limit, key(j), limit, "WAIT", "60000", "BIND"})
				var limited, pair, granted, retry, wait, id int64
				_, scan := fmt.Sscanf(raw, "*3\r\n*6\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n", &limited, &pair, &granted,
					&retry, &wait, &id)
				if scan != nil || limited != 0 || id <= 0 {
					t.Errorf("client %d, turn %d: %q, %v", client, turn, raw, err)
					return
				}
				for _, k := range []int{i, j} {
					if n := holders[k].Add(1); n > most {
						t.Errorf("%d hold %s", n, key(k))
					}
				}
				time.Sleep(time.Duration(rnd.IntN(1000)) * time.Microsecond)
				for _, k := range []int{i, j} {
					holders[k].Add(-1)
				}
				if rnd.IntN(5) == 0 {
					c.Close()
					c = harness.Dial(t, srv.Addr)
				} else if raw, err := c.TryDo([]string{"CL.RELEASE", key(i), fmt.Sprint(id)}); raw != ":1\r\n" {
					t.Errorf("client %d, turn %d: CL.RELEASE: %q, %v", client, turn, raw, err)
				}
			}
			c.Close()
		})
	}
	all.Wait()
	c := harness.Dial(t, srv.Addr)
	celldtest.Eventually(t, "all keys are free", func() bool { return c.Do("DBSIZE") == ":0\r\n" })
	srv.Waiting(t, 0)
}

// TestPausedUpstream pauses a key for which fifty workers wait, as its upstream answers 429. None passes before the end of the pause. Then
// all pass, no faster than the limit allows.
func TestPausedUpstream(t *testing.T) {
	t.Parallel()
	srv := harness.Start(t)
	c := harness.Dial(t, srv.Addr)
	c.Play(step{"CL.POLICY SET up 100/1s,burst=1", ":1"}, step{"CL.RULE ADD PAUSE upstream", ":1"})
	var workers []*harness.Conn
	for n := range 50 {
		workers = append(workers, waiter(t, srv, n+1, "upstream", "@up", "WAIT", "60000"))
	}
	began := time.Now()
	c.Play(step{"CL.RULE ADD PAUSE upstream EX 2", ":0"}) // the upstream has said when
	if now := c.Take("upstream", "@up"); now.Limited != 1 || now.RetryMS < 1 || now.RetryMS > 2000 {
		t.Errorf("one that does not wait: %+v", now)
	}
	for n, w := range workers {
		if raw := w.Reply(); !strings.HasPrefix(raw, "*7\r\n:0\r\n:1\r\n") {
			t.Errorf("worker %d: %q", n, raw)
		}
		if left := c.Do("CL.RULE", "LIST"); n == 0 && left != "*0\r\n" {
			t.Errorf("one passes while %q holds", left)
		}
	}
	if took, least := time.Since(began), 2*time.Second+490*time.Millisecond; took < least {
		t.Errorf("all have passed after %v, and the last one's turn comes after %v", took, least)
	}
}
