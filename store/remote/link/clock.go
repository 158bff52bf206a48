package link

import (
	"sync"
	"time"
)

// Clock bounds an engine's time between its answers.
type Clock struct {
	fake func() int64 // for tests: the engine's time; nil: what it answers

	mu     sync.Mutex
	timeNS int64     // the engine's, by its last answer that told it
	sent   time.Time // before it was asked
	got    time.Time // after it had answered
	asked  time.Time // when it was last found to be known badly
}

// fresh is how long an answer bounds the engine's time. In a second, two clocks that NTP slews drift apart by 1 ms at most (500 ppm each).
// If a clock is set meanwhile, the bounds are wrong for so long.
const fresh = time.Second

// drift is how far two clocks go apart in d at most.
func drift(d time.Duration) int64 { return int64(d) / 1000 }

// Observe notes the engine's time: it was timeNS between sent and got. What is known already stays if it will be fresh for a while, bounds
// the time better, and agrees: on a busy machine most answers take long.
func (c *Clock) Observe(timeNS int64, sent, got time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	age := got.Sub(c.got)
	least, most := c.timeNS+int64(age)-drift(age), c.timeNS+int64(got.Sub(c.sent))+drift(got.Sub(c.sent))
	width := int64(got.Sub(sent))
	if age < fresh/2 && most-least < width && timeNS <= most && timeNS+width >= least {
		return
	}
	c.timeNS, c.sent, c.got = timeNS, sent, got
}

// Bounds are two instants between which the engine's time is. isFresh is false if no answer is fresh.
func (c *Clock) Bounds() (lower, upper int64, isFresh bool) {
	if c.fake != nil {
		now := c.fake()
		return now, now, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	least, most := now.Sub(c.got), now.Sub(c.sent)
	return c.timeNS + int64(least) - drift(least), c.timeNS + int64(most) + drift(most), least < fresh
}

// Lower is an instant that the engine's time has reached. It returns false if no answer is fresh.
func (c *Clock) Lower() (ns int64, ok bool) {
	ns, _, ok = c.Bounds()
	return ns, ok
}

// Upper is an instant that the engine's time has not passed.
func (c *Clock) Upper() (ns int64, ok bool) {
	_, ns, ok = c.Bounds()
	return ns, ok
}

// Span is how far Upper may be ahead of the engine's time.
func (c *Clock) Span() time.Duration {
	lower, upper, _ := c.Bounds()
	return time.Duration(upper - lower)
}

// askAgain is the time between requests that are to tell the time because it is known badly.
const askAgain = 2 * time.Millisecond

// Asks reports whether the next request is to tell the time.
func (c *Clock) Asks(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.asked) < askAgain {
		return false
	}
	c.asked = now
	return true
}

// Forget makes the engine's time unknown.
func (c *Clock) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timeNS, c.sent, c.got = 0, time.Time{}, time.Time{}
}
