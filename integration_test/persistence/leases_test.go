package persistence

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// deadline is when a limit has room again, by its retry after: between these instants.
func deadline(c *harness.Conn, args ...string) (from, to time.Time) {
	c.T.Helper()
	from = time.Now()
	reply, _ := c.Lease(append(args, "PEEK")...)
	to = time.Now()
	if reply.Limited != 1 || reply.RetryMS <= 0 {
		c.T.Fatalf("%q: %+v, want one that is full", args, reply)
	}
	retry := time.Duration(reply.RetryMS) * time.Millisecond
	return from.Add(retry - time.Millisecond), to.Add(retry)
}

// TestLeasesRestart ends a server with leases, by a crash and in order, and continues from there.
func TestLeasesRestart(t *testing.T) {
	t.Parallel()
	for name, way := range map[string]struct {
		flags  []string
		signal syscall.Signal
	}{
		"append-only file, SIGKILL": {[]string{"--appendonly", "yes", "--appendfsync", "everysec"}, syscall.SIGKILL},
		"snapshot, SIGTERM":         {[]string{"--save", "3600 1"}, syscall.SIGTERM},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			start := func() (*harness.Server, *harness.Conn) {
				srv := harness.Spec{Flags: append([]string{"--dir", dir}, way.flags...), Dies: true}.Start(t)
				return srv, harness.Dial(t, srv.Addr)
			}
			srv, c := start()
			newest := int64(0)
			lease := func(args ...string) string {
				t.Helper()
				reply, id := c.Lease(args...)
				if reply.Limited != 0 || id <= newest {
					t.Fatalf("%q: %+v, id %d after %d", args, reply, id, newest)
				}
				newest = id
				return fmt.Sprint(id)
			}
			lock := lease("lock", "1/1h,algo=conc")
			lease("soon", "1/2s,algo=conc")
			lease("bound", "1/1h,algo=conc", "BIND")
			lease("mixed", "2/1h,algo=conc", "BIND")
			kept := lease("mixed", "2/1h,algo=conc")
			tokens := lease("tokens", "1000/1d,algo=window", "COST", "600", "LEASE", "3600000", "ID", "request 7")
			lost := lease("tokens", "1000/1d,algo=window", "COST", "100", "LEASE", "2000")
			boundTokens := lease("tokens", "1000/1d,algo=window", "COST", "50", "LEASE", "3600000", "BIND")
			for range 5 { // ids that are forgotten, with their keys
				lease("gone", "9/1h,algo=conc")
			}
			c.Do("DEL", "gone")
			from, to := deadline(c, "lock", "1/1h,algo=conc")
			if way.signal == syscall.SIGKILL {
				// a crash forgets the last second; what came before the first mark is in the file when the second is
				for _, mark := range []string{"mark:1", "mark:2"} {
					c.Throttle(mark, "9", "1", "86400")
					celldtest.Eventually(t, "the file has "+mark, func() bool {
						return strings.Contains(celldtest.ReadFile(t, dir, "appendonly.aof"), mark)
					})
				}
			}
			srv.Cmd.Process.Signal(way.signal)
			<-srv.Exited
			time.Sleep(time.Second) // in which two of them end

			srv, c = start()
			defer func() { srv.Cmd.Process.Signal(syscall.SIGTERM); srv.Wait(0) }()
			from2, to2 := deadline(c, "lock", "1/1h,algo=conc")
			const apart = 50 * time.Millisecond // between the clocks by which the two went
			if from2.After(to.Add(apart)) || to2.Before(from.Add(-apart)) {
				t.Errorf("the lock ends between %v and %v, and before the restart between %v and %v", from2, to2, from, to)
			}
			lease("bound", "1/1h,algo=conc") // the connection that had it is gone
			if reply, _ := c.Lease("mixed", "2/1h,algo=conc", "PEEK"); reply.Remaining != 1 {
				t.Errorf("one of two was bound: %+v", reply)
			}
			celldtest.Eventually(t, "what was to end soon has ended", func() bool {
				reply, _ := c.Lease("soon", "1/2s,algo=conc", "PEEK")
				return reply.Remaining == 1 && c.Take("tokens", "1000/1d,algo=window", "PEEK").Remaining == 400
			})
			again, id := c.Lease("tokens", "1000/1d,algo=window", "COST", "600", "LEASE", "3600000", "ID", "request 7")
			if again.Limited != 0 || fmt.Sprint(id) != tokens {
				t.Errorf("the same request again: %+v, id %d, and it had %s", again, id, tokens)
			}
			for _, s := range []step{
				{"CL.RENEW lock " + lock + " 7200000", ":1"},
				{"CL.RELEASE lock " + lock, ":1"},
				{"CL.RELEASE lock " + lock, ":0"},
				{"CL.RELEASE mixed " + kept, ":1"},
				{"CL.SETTLE tokens " + lost + " 10", ":0"},
				{"CL.SETTLE tokens " + boundTokens + " 10", ":0"},
				{"CL.SETTLE tokens " + tokens + " 250", ":1"},
				{"CL.SETTLE tokens " + tokens + " 250", ":0"},
				{"CL.TAKE tokens 1000/1d,algo=window PEEK", "0 1000 750 -1…"},
			} {
				c.Play(s)
			}
			lease("gone", "9/1h,algo=conc")
			lease("lock", "1/1h,algo=conc")
		})
	}
}

// TestLeasesOfSeveralKeys ends a lease of two keys after a restart: both have what they gave.
func TestLeasesOfSeveralKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	srv := harness.Spec{Flags: []string{"--dir", dir, "--appendonly", "yes"}, Dies: true}.Start(t)
	c := harness.Dial(t, srv.Addr)
	ids := make([]int64, 3)
	for i := range ids {
		raw := c.Do("CL.MTAKE", "2", "a", "100/1d,algo=window", "b", "50/1d,algo=window", "COST", "10", "LEASE", "3600000")
		var limited, pair, granted, retry, wait int64
		_, err := fmt.Sscanf(raw, "*3\r\n*6\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n", &limited, &pair, &granted, &retry,
			&wait, &ids[i])
		if err != nil || ids[i] == 0 {
			t.Fatalf("CL.MTAKE: %q, %v", raw, err)
		}
	}
	srv.Cmd.Process.Signal(syscall.SIGTERM)
	<-srv.Exited
	c = harness.Dial(t, harness.StartOn(t, dir, "--appendonly", "yes").Addr)
	left := func(a, b int) {
		t.Helper()
		c.Play(step{"CL.TAKE a 100/1d,algo=window PEEK", fmt.Sprintf("0 100 %d -1…", a)},
			step{"CL.TAKE b 50/1d,algo=window PEEK", fmt.Sprintf("0 50 %d -1…", b)})
	}
	left(70, 20)
	c.Play(step{fmt.Sprint("CL.RELEASE a ", ids[0]), ":1"})
	left(80, 30)
	c.Play(step{fmt.Sprint("CL.SETTLE a ", ids[1], " 13"), ":1"})
	left(77, 27)
	c.Play(step{fmt.Sprint("CL.RENEW a ", ids[2], " 1"), ":1"})
	celldtest.Eventually(t, "the last one ends by itself", func() bool {
		return strings.HasPrefix(c.Do("CL.TAKE", "b", "50/1d,algo=window", "PEEK"), "*7\r\n:0\r\n:50\r\n:37\r\n")
	})
	left(87, 37)
}
