//go:build all

package peers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// redissonPair is Redisson on a redis-server, and celld.
type redissonPair struct {
	*program
	celld *harness.Server
}

func startRedisson(t *testing.T) redissonPair {
	t.Helper()
	classes, port := harness.JavaClasses(t, "testdata/waiting"), harness.FreePort(t)
	celldtest.StartRedis(t, "--port", port)
	p := startProgram(t, "Redisson",
		harness.Command(t, celldtest.Need(t, "java"), "-classpath", classes, "RunRedisson", "redis://127.0.0.1:"+port))
	for i := range 10 { // loads what it needs, so that it is quick from now on
		p.do(i, "here", "trySetRate", "first", "1000", "1000")
		p.do(i, "here", "tryAcquire", "first", "1", "1000")
		p.do(i, "there", "tryAcquire", "first", "1", "1000")
	}
	return redissonPair{p, harness.Start(t)}
}

// TestWaitRedisson runs its rate limiter, semaphores and lock.
func TestWaitRedisson(t *testing.T) {
	t.Parallel()
	p := startRedisson(t)
	t.Run("rate", p.rate)
	t.Run("per client", p.perClient)
	t.Run("semaphore", p.semaphore)
	t.Run("expirable", p.expirable)
	t.Run("lock", p.lock)
}

// within fails the test if more than count calls passed in a period. Of two calls that are count calls apart, the later must come a
// period after the earlier left, or later.
func within(t *testing.T, who string, answers []answer, count int, period time.Duration) {
	t.Helper()
	passed := slices.DeleteFunc(slices.Clone(answers), func(a answer) bool { return !a.passed })
	slices.SortFunc(passed, func(a, b answer) int { return int(a.came - b.came) })
	for i := count; i < len(passed); i++ {
		if apart := passed[i].came - passed[i-count].left; apart < period {
			t.Errorf("%s: %d calls pass within %v", who, count+1, apart)
		}
	}
}

// rate: three a second, in every span of a second. A caller that waits takes the permits of earlier calls as soon as they are a second
// old. Redisson's callers ask again after the time in the reply. Callers that come in between pass before them.
func (p redissonPair) rate(t *testing.T) {
	const n = 8
	conns := callers(t, p.celld.Addr, n)
	c := conns[0]
	celldtest.Again(t, func(attempt string) string {
		name := "rate" + attempt
		for _, want := range []bool{true, false} { // the second finds a rate
			theirs, ours := p.passes(0, "here", "trySetRate", name, "3", "1000"), c.Do("CL.POLICY", "SET", name, "3/1s,algo=log", "NX")
			if theirs != want || (ours == ":1\r\n") != want {
				t.Errorf("trySetRate: %v there, %q here", theirs, ours)
			}
		}
		theirs, ours := p.do(0, "here", "getConfig", name), c.Do("CL.POLICY", "GET", name)
		if theirs != "3/1000ms" || ours != "$13\r\n3/1s,algo=log\r\n" {
			t.Errorf("getConfig: %q there, %q here", theirs, ours)
		}
		want := timetable{0, 0, 0, time.Second, time.Second, time.Second, 2 * time.Second, 2 * time.Second}
		for who, call := range map[string]func(i int) bool{
			"Redisson's acquire": func(i int) bool { return p.passes(i, "here", "acquire", name, "1") },
			"celld":              func(i int) bool { return takes(conns[i], name, "@"+name, "WAIT", "60000") },
		} {
			answers := atOnce(time.Now(), n, call)
			within(t, who, answers, 3, time.Second)
			if difference := want.differs(t, who, 0, answers); difference != "" && who == "celld" {
				return difference // there a caller who asks again may be late
			}
		}
		return ""
	})
	celldtest.Again(t, func(attempt string) string {
		name := "tries" + attempt
		p.do(0, "here", "trySetRate", name, "3", "1000")
		c.Do("CL.POLICY", "SET", name, "3/1s,algo=log", "NX")
		for i, call := range []struct {
			permits, ms string
			passes      bool
			least, most time.Duration // how long both take; Redisson refuses only when the time is over
		}{
			{"2", "0", true, 0, 0},
			{"2", "300", false, 0, 300 * time.Millisecond},
			{"1", "300", true, 0, 0},
			{"3", "10000", true, 300 * time.Millisecond, time.Second},
			{"1", "100", false, 0, 100 * time.Millisecond},
		} {
			made := time.Now()
			theirs := ask(made, func() bool { return p.passes(0, "here", "tryAcquire", name, call.permits, call.ms) })
			ours := ask(made, func() bool { return takes(c, name, "@"+name, "COST", call.permits, "WAIT", call.ms) })
			for _, got := range []answer{theirs, ours} {
				if took := got.came - got.left; got.passed != call.passes || took > call.most+peerTimes {
					return fmt.Sprintf("call %d: %+v there, %+v here, want %+v", i, theirs, ours, call)
				}
			}
		}
		return ""
	})
}

// perClient: two clients, each with its own limit, here by their names in the key.
func (p redissonPair) perClient(t *testing.T) {
	c := harness.Dial(t, p.celld.Addr)
	p.do(0, "here", "trySetRatePerClient", "each", "2", "3600000")
	for i := range 4 {
		for _, client := range []string{"here", "there"} {
			theirs := p.passes(0, client, "tryAcquire", "each", "1", "0")
			if ours := takes(c, "each:"+client, "2/1h,algo=log"); theirs != ours || ours != (i < 2) {
				t.Errorf("call %d, %s: %v there, %v here", i, client, theirs, ours)
			}
		}
	}
}

// semaphore: two permits, which end when they are given back. Then a waiting caller gets one at once.
func (p redissonPair) semaphore(t *testing.T) {
	const literal = "2/1h,algo=conc"
	conns := callers(t, p.celld.Addr, 3)
	p.do(0, "here", "semaphore.trySetPermits", "s", "2")
	first := int64(0)
	for i := range 3 {
		theirs := p.passes(i, "here", "semaphore.tryAcquire", "s", "0")
		reply, id := conns[i].Lease("s", literal)
		if i == 0 {
			first = id
		}
		if ours := reply.Limited == 0; theirs != ours || ours != (i < 2) {
			t.Errorf("call %d: %v there, %v here", i, theirs, ours)
		}
	}
	waiter, waiting := make(chan bool), make(chan string)
	go func() { waiter <- p.passes(2, "here", "semaphore.tryAcquire", "s", "60000") }()
	go func() {
		raw, err := conns[2].TryDo([]string{"CL.TAKE", "s", literal, "WAIT", "60000"})
		waiting <- fmt.Sprint(raw, err)
	}()
	p.celld.Waiting(t, 1)
	select {
	case <-waiter:
		t.Error("Redisson's waiter does not wait")
	case raw := <-waiting:
		t.Errorf("celld's waiter does not wait: %q", raw)
	default:
	}
	p.do(0, "here", "semaphore.release", "s")
	if got := conns[0].Do("CL.RELEASE", "s", fmt.Sprint(first)); got != ":1\r\n" {
		t.Errorf("CL.RELEASE: %q", got)
	}
	theirs, ours := <-waiter, <-waiting
	if !theirs || !strings.HasPrefix(ours, "*8\r\n:0\r\n") {
		t.Errorf("after a release: %v there, %q here", theirs, ours)
	}
	// The time to wait ends.
	theirs = p.passes(2, "here", "semaphore.tryAcquire", "s", "50")
	if reply, id := conns[2].Lease("s", literal, "WAIT", "50"); theirs || reply.Limited != 1 || id != 0 {
		t.Errorf("nobody releases: %v there, %+v, id %d here", theirs, reply, id)
	}
}

// expirable: a permit carries an id, and ends by itself.
func (p redissonPair) expirable(t *testing.T) {
	const literal = "2/1h,algo=conc"
	c := harness.Dial(t, p.celld.Addr)
	p.do(0, "here", "expirable.trySetPermits", "e", "2")
	take := func(want bool) (theirs, ours string) {
		t.Helper()
		theirs = p.do(0, "here", "expirable.tryAcquire", "e", "0", "3600000")
		reply, id := c.Lease("e", literal)
		if (theirs != "null") != want || (reply.Limited == 0) != want {
			t.Errorf("tryAcquire: %s there, %+v here, want %v", theirs, reply, want)
		}
		return theirs, fmt.Sprint(id)
	}
	is := func(what string, theirs bool, ours string, want bool) {
		t.Helper()
		if theirs != want || (ours == ":1\r\n") != want {
			t.Errorf("%s: %v there, %q here", what, theirs, ours)
		}
	}
	a, ourA := take(true)
	b, ourB := take(true)
	take(false)
	is("tryRelease", p.passes(0, "here", "expirable.tryRelease", "e", a), c.Do("CL.RELEASE", "e", ourA), true)
	is("tryRelease again", p.passes(0, "here", "expirable.tryRelease", "e", a), c.Do("CL.RELEASE", "e", ourA), false)
	is("updateLeaseTime of none", p.passes(0, "here", "expirable.updateLeaseTime", "e", a, "100"),
		c.Do("CL.RENEW", "e", ourA, "100"), false)
	take(true)
	take(false)
	is("updateLeaseTime", p.passes(0, "here", "expirable.updateLeaseTime", "e", b, "100"), c.Do("CL.RENEW", "e", ourB, "100"), true)
	celldtest.Eventually(t, "it ends there", func() bool { return p.do(0, "here", "expirable.tryAcquire", "e", "0", "3600000") != "null" })
	celldtest.Eventually(t, "it ends here", func() bool { reply, _ := c.Lease("e", literal); return reply.Limited == 0 })
	is("tryRelease of one that has ended", p.passes(0, "here", "expirable.tryRelease", "e", b), c.Do("CL.RELEASE", "e", ourB), false)
	take(false)
}

// lock: the token of Redisson's fenced lock grows, as ids do here.
func (p redissonPair) lock(t *testing.T) {
	conns := callers(t, p.celld.Addr, 2)
	ids, lastThere, lastHere := make([]int64, 2), int64(0), int64(0)
	lock := func(worker int, holdMS string, want bool) {
		t.Helper()
		var token int64
		theirs := p.do(worker, "here", "lock.tryLock", "l", "0", holdMS)
		fmt.Sscan(theirs, &token)
		reply, id := conns[worker].Lease("l", "1/1h,algo=conc")
		if (theirs != "null") != want || (reply.Limited == 0) != want {
			t.Errorf("%d locks: %s there, %+v here", worker, theirs, reply)
		}
		if !want {
			return
		}
		if token <= lastThere || id <= lastHere {
			t.Errorf("%d locks: token %d after %d there, %d after %d here", worker, token, lastThere, id, lastHere)
		}
		lastThere, lastHere, ids[worker] = token, id, id
		if got := conns[worker].Do("CL.RENEW", "l", fmt.Sprint(id), holdMS); got != ":1\r\n" {
			t.Errorf("CL.RENEW: %q", got)
		}
	}
	unlock := func(worker int, want bool) {
		t.Helper()
		theirs, ours := p.passes(worker, "here", "lock.unlock", "l"), conns[worker].Do("CL.RELEASE", "l", fmt.Sprint(ids[worker]))
		if theirs != want || (ours == ":1\r\n") != want {
			t.Errorf("%d unlocks: %v there, %q here", worker, theirs, ours)
		}
	}
	lock(0, "3600000", true)
	lock(1, "3600000", false)
	ids[1] = ids[0] - 1
	unlock(1, false)
	unlock(0, true)
	unlock(0, false)
	lock(1, "100", true)
	for who, free := range map[string]func() bool{
		"Redisson's": func() bool { return p.do(0, "here", "lock.tryLock", "l", "0", "3600000") != "null" },
		"celld's": func() bool {
			reply, id := conns[0].Lease("l", "1/1h,algo=conc")
			ids[0] = id
			return reply.Limited == 0
		},
	} {
		celldtest.Eventually(t, who+" lock ends by itself", free)
	}
	unlock(1, false)
	lock(1, "3600000", false)
	unlock(0, true)
}

// TestWaitSentinel runs Sentinel's rules of a flow one after another.
func TestWaitSentinel(t *testing.T) {
	t.Parallel()
	p := startProgram(t, "Sentinel", harness.Command(t, celldtest.Need(t, "java"), "-Dproject.name=celld",
		"-Dcsp.sentinel.log.dir="+t.TempDir(), "-classpath", harness.JavaClasses(t, "testdata/waiting"), "RunSentinel"))
	p.do(0, "rate", "first", "1000")
	for i := range 10 {
		p.do(i, "pass", "first")
	}
	celld := harness.Start(t)
	t.Run("queue", func(t *testing.T) { p.sentinelQueue(t, celld) })
	t.Run("warmup", func(t *testing.T) { p.sentinelWarmUp(t, celld) })
	t.Run("threads", func(t *testing.T) { p.sentinelThreads(t, celld) })
	t.Run("occupy", func(t *testing.T) { p.sentinelOccupy(t, celld) })
}

// sentinelQueue: its ThrottlingController, 5 a second, and nobody waits longer than 700 ms.
func (p *program) sentinelQueue(t *testing.T, celld *harness.Server) {
	const n = 8
	conns, want := callers(t, celld.Addr, n), every(200*time.Millisecond, 4)
	celldtest.Again(t, func(attempt string) string {
		name := "queue" + attempt
		p.do(0, "queue", name, "5", "700")
		difference := want.differs(t, "Sentinel", 2*time.Millisecond, atOnce(time.Now(), n, func(i int) bool {
			return p.passes(i, "pass", name)
		}))
		if difference != "" {
			return difference
		}
		return want.differs(t, "celld", 0, atOnce(time.Now(), n, func(i int) bool {
			return takes(conns[i], name, "5/1s,burst=1", "WAIT", "700")
		}))
	})
}

// sentinelWarmUp: its WarmUpRateLimiterController, 20 a second after 3 seconds. It looks once a second at how warm it is, so
// calls are counted in seconds.
func (p *program) sentinelWarmUp(t *testing.T, celld *harness.Server) {
	const rate, warmup, seconds = 20, 3, 6
	c := harness.Dial(t, celld.Addr)
	celldtest.Again(t, func(attempt string) string {
		name := "warmup" + attempt
		counts := map[string][]int{}
		for who, call := range map[string]func() bool{
			"Sentinel": func() bool { return p.passes(0, "pass", name) },
			"celld": func() bool {
				return takes(c, name, fmt.Sprintf("%d/1s,burst=1,warmup=%ds", rate, warmup), "WAIT", "10000")
			},
		} {
			p.do(0, "warmup", name, fmt.Sprint(rate), fmt.Sprint(warmup), "10000")
			counts[who] = make([]int, seconds)
			for made := time.Now(); ; {
				passed := call()
				second := int(time.Since(made) / time.Second)
				if second >= seconds {
					break
				}
				if !passed {
					return who + " refuses"
				}
				counts[who][second]++
			}
		}
		here, there, apart := 0, 0, 0
		for i := range seconds {
			here, there = here+counts["celld"][i], there+counts["Sentinel"][i]
			apart = max(apart, here-there, there-here)
		}
		for who, n := range counts {
			if n[0] > rate/3+2 || n[1] >= rate || n[seconds-1] < rate-2 || n[seconds-1] > rate+2 {
				return fmt.Sprintf("%s does not warm up as it should: %v", who, n)
			}
		}
		if apart > rate {
			return fmt.Sprintf("more than a second's calls apart: %v", counts)
		}
		return ""
	})
}

// sentinelThreads: three at a time.
func (p *program) sentinelThreads(t *testing.T, celld *harness.Server) {
	c := harness.Dial(t, celld.Addr)
	p.do(0, "threads", "threads", "3")
	ids := map[int]string{}
	enter := func(worker int, want bool) {
		t.Helper()
		reply, id := c.Lease("threads", "3/1h,algo=conc")
		ids[worker] = fmt.Sprint(id)
		if theirs, ours := p.passes(worker, "enter", "threads"), reply.Limited == 0; theirs != want || ours != want {
			t.Errorf("%d enters: %v there, %v here", worker, theirs, ours)
		}
	}
	exit := func(worker int) {
		t.Helper()
		p.do(worker, "exit", "threads")
		if got := c.Do("CL.RELEASE", "threads", ids[worker]); got != ":1\r\n" {
			t.Errorf("CL.RELEASE: %q", got)
		}
	}
	for i := range 5 {
		enter(i, i < 3)
	}
	exit(1)
	enter(3, true)
	enter(4, false)
	exit(0)
	exit(2)
	enter(0, true)
	enter(1, true)
	enter(2, false)
}

// sentinelOccupy: a call with priority borrows from the next window, and waits for it for half a second at most. Windows are halves of a
// second of the clock there, and begin with the first call here.
func (p *program) sentinelOccupy(t *testing.T, celld *harness.Server) {
	const half = 500 * time.Millisecond
	c := harness.Dial(t, celld.Addr)
	celldtest.Again(t, func(attempt string) string {
		name := "occupy" + attempt
		p.do(0, "rate", name, "4")
		time.Sleep(time.Until(time.Now().Truncate(half).Add(half + half/10)))
		for i := range 6 {
			theirs, ours := p.passes(0, "pass", name), takes(c, name, "4/1s,algo=window")
			if theirs != (i < 4) || ours != theirs {
				return fmt.Sprintf("call %d: %v there, %v here", i, theirs, ours)
			}
		}
		time.Sleep(half)
		ours := make([]harness.Taken, 6)
		for i := range ours {
			ours[i] = c.Take(name, "4/1s,algo=window", "RESERVE", "500")
		}
		theirs := atOnce(time.Now(), len(ours), func(i int) bool { return p.passes(i, "occupy", name) })
		slices.SortFunc(theirs, func(a, b answer) int { return int(a.came - b.came) })
		later := 0
		for i, got := range ours {
			if got.Limited != 0 != (i >= 4) || got.Limited == 0 && got.Wait < 1 {
				return fmt.Sprintf("with priority, call %d: %+v", i, got)
			}
			if theirs[i].passed {
				later++
			}
		}
		if last := theirs[5]; later != 4 || !last.passed || last.came > half+peerTimes {
			return fmt.Sprintf("with priority: %+v there", theirs)
		}
		return ""
	})
}
