//go:build all

package peers

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"celld/cell"
	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// queues are scripts that say how long to wait, and their equivalents in celld.
var queues = []struct {
	script          string
	burst, dearest  int64 // of the calls, too
	literal, option string
}{
	{"leaky_queue", 1, 1, "%d/%dus,burst=1", "WAIT"},
	{"token_bucket_acquire", 8, 8, "%d/%dus,burst=8", "RESERVE"},
}

// TestWaitScripts compares waits with those of scripts on redis-server, to the microsecond: calls come at once, at any time, or
// when the one before goes ahead.
func TestWaitScripts(t *testing.T) {
	t.Parallel()
	redis := celldtest.StartRedis(t)
	for _, q := range queues {
		t.Run(q.script, func(t *testing.T) {
			t.Parallel()
			c, rnd := harness.Dial(t, redis), celldtest.NewRand(t)
			sha, _ := harness.Bulk(c.Do("SCRIPT", "LOAD", celldtest.ReadFile(t, "testdata", q.script+".lua")))
			refused, waited := 0, 0
			for i := range 100 {
				count, interval := 1+rnd.Int64N(20), 1+rnd.Int64N(1e6)
				most := interval * rnd.Int64N(10)
				l, err := cell.ParseLimit(fmt.Sprintf(q.literal, count, count*interval))
				if err != nil {
					t.Fatal(err)
				}
				var st cell.State
				var batch bytes.Buffer
				var want []int64
				now := 1_700_000_000_000_000 + rnd.Int64N(1e12)
				for range 50 {
					cost := 1 + rnd.Int64N(q.dearest)
					batch.Write(harness.Frame("EVALSHA", sha, "1", fmt.Sprint(q.script, i), fmt.Sprint(now), fmt.Sprint(interval),
						fmt.Sprint(most), fmt.Sprint(q.burst), fmt.Sprint(cost)))
					wait := int64(-1)
					if forecast := l.Forecast(&st, now*1000, cost); forecast <= uint64(most)*1000 {
						wait = int64(l.Book(&st, now*1000, cost) / 1000)
					}
					want = append(want, wait)
					now += []int64{0, 0, rnd.Int64N(interval), interval, max(0, wait), rnd.Int64N(20 * interval)}[rnd.IntN(6)]
				}
				c.Send(batch.Bytes())
				for j, wait := range want {
					if got := celldtest.IntReply(c.Reply()); got != wait {
						t.Errorf("%s, at most %d µs, call %d: %d there, %d here", l, most, j, got, wait)
					}
					if wait == -1 {
						refused++
					} else if wait > 0 {
						waited++
					}
				}
			}
			if refused < 100 || waited < 100 {
				t.Errorf("%d calls were refused, %d waited", refused, waited)
			}
		})
	}
}

// TestWaitReserve asks for a place as a token bucket's acquire(timeout) does, and waits by itself. A call that would wait for
// too long takes nothing on either side.
func TestWaitReserve(t *testing.T) {
	t.Parallel()
	redis, c, rnd := harness.Dial(t, celldtest.StartRedis(t)), harness.Dial(t, harness.Start(t).Addr), celldtest.NewRand(t)
	sha, _ := harness.Bulk(redis.Do("SCRIPT", "LOAD", celldtest.ReadFile(t, "testdata/token_bucket_acquire.lua")))
	seed := rnd.Uint64()
	celldtest.Again(t, func(attempt string) string {
		const interval, most = 1_000_000, 20_000_000 // µs
		rnd := rand.New(rand.NewPCG(seed, 0))
		refused := 0
		for i := range 30 {
			cost := fmt.Sprint(1 + rnd.Int64N(5))
			got := c.Take(attempt, "60/1m,burst=8", "COST", cost, "RESERVE", fmt.Sprint(most), "US")
			theirs := celldtest.IntReply(redis.Do("EVALSHA", sha, "1", attempt, fmt.Sprint(time.Now().UnixMicro()), fmt.Sprint(interval),
				fmt.Sprint(most), "8", cost))
			if (theirs == -1) != (got.Limited == 1) || theirs == -1 && (got.Wait != 0 || got.Granted != 0 || got.RetryMS <= 0) {
				return fmt.Sprintf("call %d: celld %+v, the script %d", i, got, theirs)
			}
			if apart := time.Duration(theirs-got.Wait) * time.Microsecond; theirs >= 0 && apart.Abs() > peerTimes {
				return fmt.Sprintf("call %d: celld %+v, the script %d: %v apart", i, got, theirs, apart)
			}
			if theirs == -1 {
				refused++
			}
		}
		if refused < 3 {
			t.Errorf("%d calls were refused", refused)
		}
		return ""
	})
}

// TestWaitLeakyQueue compares callers that wait as the leaky bucket tells them to with callers that use WAIT.
func TestWaitLeakyQueue(t *testing.T) {
	t.Parallel()
	const n = 9
	there, here := callers(t, celldtest.StartRedis(t), n), callers(t, harness.Start(t).Addr, n)
	script := celldtest.ReadFile(t, "testdata/leaky_queue.lua")
	want := every(150*time.Millisecond, 6)
	celldtest.Again(t, func(attempt string) string {
		if difference := want.differs(t, "the script", time.Millisecond, atOnce(time.Now(), n, func(i int) bool {
			raw, err := there[i].TryDo([]string{"EVAL", script, "1", attempt, fmt.Sprint(time.Now().UnixMicro()), "150000", "825000"})
			if err != nil {
				t.Error(err)
			}
			wait := celldtest.IntReply(raw)
			time.Sleep(time.Duration(wait) * time.Microsecond)
			return wait >= 0
		})); difference != "" {
			return difference
		}
		return want.differs(t, "celld", 0, atOnce(time.Now(), n, func(i int) bool {
			return takes(here[i], attempt, "20/3s,burst=1", "WAIT", "825")
		}))
	})
}

// unlock and extend are the scripts for SET key token NX PX ms: only the holder of the lock may end or extend it.
const (
	unlock = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"
	extend = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0"
)

// TestWaitRedisLock takes two workers through the same steps with that lock and with 1/…,algo=conc.
func TestWaitRedisLock(t *testing.T) {
	t.Parallel()
	redis, c := harness.Dial(t, celldtest.StartRedis(t)), harness.Dial(t, harness.Start(t).Addr)
	tokens, ids, tries, last := map[string]string{}, map[string]int64{}, 0, int64(0)
	lock := func(worker, ms string) bool {
		tries++
		token := fmt.Sprint(worker, tries)
		theirs := redis.Do("SET", "k", token, "NX", "PX", ms) == "+OK\r\n"
		reply, id := c.Lease("k", "1/"+ms+"ms,algo=conc")
		if theirs {
			tokens[worker] = token
		}
		if (reply.Limited == 0) != theirs || (id != 0) != theirs {
			t.Errorf("%s locks: %v there, %+v, id %d here", worker, theirs, reply, id)
		}
		if id != 0 {
			if id <= last {
				t.Errorf("id %d comes after %d", id, last)
			}
			ids[worker], last = id, id
		}
		return theirs
	}
	both := func(what, worker string, want bool, script string, args, celld []string) {
		t.Helper()
		theirs := redis.Do(append([]string{"EVAL", script, "1", "k", tokens[worker]}, args...)...)
		ours := c.Do(append([]string{celld[0], "k", fmt.Sprint(ids[worker])}, celld[1:]...)...)
		if theirs != ours || (ours == ":1\r\n") != want {
			t.Errorf("%s %s: %q there, %q here", worker, what, theirs, ours)
		}
	}
	ends := func(worker string, want bool) {
		t.Helper()
		both("unlocks", worker, want, unlock, nil, []string{"CL.RELEASE"})
	}
	extends := func(worker, ms string, want bool) {
		t.Helper()
		both("extends", worker, want, extend, []string{ms}, []string{"CL.RENEW", ms})
	}
	is := func(got, want bool, what string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %v", what, got)
		}
	}
	tokens["b"], ids["b"] = "none", 1 // of no lock
	is(lock("a", "60000"), true, "the first has the lock")
	is(lock("b", "60000"), false, "the second has not")
	ends("b", false)
	extends("b", "60000", false)
	extends("a", "90000", true)
	is(lock("b", "60000"), false, "nor later")
	ends("a", true)
	ends("a", false)
	is(lock("b", "60000"), true, "then the second has it")
	ends("a", false)
	is(lock("a", "60000"), false, "and has it still")
	ends("b", true)

	// It ends by itself, and who comes too late does not end the next one's.
	is(lock("a", "60000"), true, "again")
	extends("a", "100", true)
	celldtest.Eventually(t, "both locks end", func() bool {
		reply, _ := c.Lease("k", "1/60000ms,algo=conc", "PEEK")
		return redis.Do("EXISTS", "k") == ":0\r\n" && reply.Limited == 0
	})
	is(lock("b", "60000"), true, "the lock of the first has ended")
	ends("a", false)
	extends("a", "60000", false)
	is(lock("a", "60000"), false, "it is the second's")
}
