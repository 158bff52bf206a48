//go:build all

package peers

import (
	"fmt"
	"os"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

func startGuava(t *testing.T) *program {
	t.Helper()
	java := celldtest.Need(t, "java")
	if _, err := os.Stat(guavaJar); err != nil {
		celldtest.Missing(t, "no Guava: %v", err)
	}
	p := startProgram(t, "Guava", harness.Command(t, java, "-cp", guavaJar, "testdata/guava/Wait.java"))
	p.do(0, "create", "first", "1000") // loads what it needs, so that it is quick from now on
	for range 3 {
		p.do(0, "acquire", "first", "1")
	}
	return p
}

// TestWaitGuavaAcquire calls acquire(n). In Guava a call goes ahead when those before it are paid, in celld when it is paid itself. So
// with COST n each goes ahead where the next one does in Guava. To go ahead at the same moments, a call waits for one
// permit, and takes the others into debt.
func TestWaitGuavaAcquire(t *testing.T) {
	t.Parallel()
	costs := []int{1, 3, 1, 2, 1}
	guava, c := startGuava(t), harness.Dial(t, harness.Start(t).Addr)
	var credit, paid timetable
	for at, i := time.Duration(0), 0; i < len(costs); i++ {
		credit = append(credit, at)
		at += time.Duration(costs[i]) * time.Second / 5
		paid = append(paid, at)
	}
	celldtest.Again(t, func(attempt string) string {
		made := time.Now()
		guava.do(0, "create", attempt, "5")
		if difference := credit.differs(t, "Guava", time.Millisecond, inTurn(made, len(costs), func(i int) bool {
			return guava.passes(0, "acquire", attempt, fmt.Sprint(costs[i]))
		})); difference != "" {
			return difference
		}
		made = time.Now()
		c.Take("credit"+attempt, "5/1s,burst=6", "COST", "5") // what Guava starts with is one
		if difference := credit.differs(t, "celld, one and then the others", 0, inTurn(made, len(costs), func(i int) bool {
			if !takes(c, "credit"+attempt, "5/1s,burst=6", "WAIT", "10000") {
				return false
			}
			return costs[i] == 1 || takes(c, "credit"+attempt, "5/1s,burst=6", "COST", fmt.Sprint(costs[i]-1), "FORCE")
		})); difference != "" {
			return difference
		}
		made = time.Now()
		c.Take("paid"+attempt, "5/1s", "COST", "5")
		return paid.differs(t, "celld, all at once", 0, inTurn(made, len(costs), func(i int) bool {
			return takes(c, "paid"+attempt, "5/1s", "COST", fmt.Sprint(costs[i]), "WAIT", "10000")
		}))
	})
}

// TestWaitGuavaTryAcquire runs eight callers who wait for 1250 ms at most, for 2 a second.
func TestWaitGuavaTryAcquire(t *testing.T) {
	t.Parallel()
	const n = 8
	guava, conns := startGuava(t), callers(t, harness.Start(t).Addr, n)
	want := every(500*time.Millisecond, 3)
	celldtest.Again(t, func(attempt string) string {
		made := time.Now()
		guava.do(0, "create", attempt, "2")
		if difference := want.differs(t, "Guava", time.Millisecond, atOnce(made, n, func(i int) bool {
			return guava.passes(i, "tryAcquire", attempt, "1", "1250")
		})); difference != "" {
			return difference
		}
		made = time.Now()
		conns[0].Take(attempt, "2/1s,burst=3", "COST", "2")
		return want.differs(t, "celld", 0, atOnce(made, n, func(i int) bool {
			return takes(conns[i], attempt, "2/1s,burst=3", "WAIT", "1250")
		}))
	})
}

// warmUp is when calls pass for a caller that always asks: 10 a second, warmed up in a second, Guava's SmoothWarmingUp. When cold it
// stores 10 permits. Those above 5 take longer, up to three times the interval.
func warmUp(calls int) (w timetable) {
	takes := func(stored float64) float64 { return 0.1 + max(0, stored-5)*(0.3-0.1)/(10-5) } // seconds a permit, by stored permits
	at := 0.0
	for i := range calls {
		w = append(w, time.Duration(at*1e9))
		stored := max(0, 10-float64(i))
		at += (takes(stored) + takes(stored-1)) / 2
	}
	return w
}

// TestWaitGuavaWarmUp calls as fast as it may, and then, of a new one, at a pace at which it stays cold.
func TestWaitGuavaWarmUp(t *testing.T) {
	t.Parallel()
	const literal, calls = "10/1s,burst=1,warmup=1s", 14
	guava, c := startGuava(t), harness.Dial(t, harness.Start(t).Addr)
	celldtest.Again(t, func(attempt string) string {
		made := time.Now()
		guava.do(0, "warmup", attempt, "10", "1000")
		if difference := warmUp(calls).differs(t, "Guava", time.Millisecond, inTurn(made, calls, func(int) bool {
			return guava.passes(0, "acquire", attempt, "1")
		})); difference != "" {
			return difference
		}
		made = time.Now()
		return warmUp(calls).differs(t, "celld", 0, inTurn(made, calls, func(int) bool {
			return takes(c, attempt, literal, "WAIT", "10000")
		}))
	})
	// A call each 400 ms passes at once, and leaves it cold; the one behind the last of them waits for 280 ms.
	paced := timetable{0, 400 * time.Millisecond, 800 * time.Millisecond, 1080 * time.Millisecond}
	const late = 80 * time.Millisecond // a call that comes late finds it warmer, by 0.4 ms for each
	celldtest.Again(t, func(attempt string) string {
		series := func(call func() bool) []answer {
			made := time.Now()
			return inTurn(made, len(paced), func(i int) bool {
				time.Sleep(time.Until(made.Add(time.Duration(min(i, 2)) * 400 * time.Millisecond)))
				return call()
			})
		}
		guava.do(0, "warmup", "paced"+attempt, "10", "1000")
		difference := paced.differs(t, "Guava, paced", late, series(func() bool {
			return guava.passes(0, "acquire", "paced"+attempt, "1")
		}))
		if difference != "" {
			return difference
		}
		return paced.differs(t, "celld, paced", late, series(func() bool { return takes(c, "paced"+attempt, literal, "WAIT", "10000") }))
	})
}

// TestWaitDelayQueue runs consumers that wait for a java.util.concurrent.DelayQueue whose elements are due one after another.
func TestWaitDelayQueue(t *testing.T) {
	t.Parallel()
	const n = 6
	java, conns := startGuava(t), callers(t, harness.Start(t).Addr, n)
	want := every(150*time.Millisecond, n)
	celldtest.Again(t, func(attempt string) string {
		made := time.Now()
		java.do(0, "put", fmt.Sprint(n), "150")
		difference := want.differs(t, "DelayQueue", time.Millisecond, atOnce(made, n, func(i int) bool { return java.passes(i, "take") }))
		if difference != "" {
			return difference
		}
		return want.differs(t, "celld", 0, atOnce(time.Now(), n, func(i int) bool {
			return takes(conns[i], attempt, "20/3s,burst=1", "WAIT", "10000")
		}))
	})
}
