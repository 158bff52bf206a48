package remote

import (
	"sync"
	"time"
)

// clock bounds an engine's time between its answers.
type clock struct {
	fake func() int64 // for tests: the engine's time; nil: what it answers

	mu     sync.Mutex
	timeNS int64     // the engine's, by its last answer that told it
	sent   time.Time // before it was asked
	got    time.Time // after it had answered
}

// fresh is for how long an answer bounds the engine's time. In a second, two clocks that NTP slews drift apart by 1 ms at most
// (500 ppm each); a clock that is set meanwhile is wrong for that long.
const fresh = time.Second

// drift is how far two clocks go apart in d at most.
func drift(d time.Duration) int64 { return int64(d) / 1000 }

// observe notes the engine's time: it was timeNS between sent and got.
func (c *clock) observe(timeNS int64, sent, got time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timeNS, c.sent, c.got = timeNS, sent, got
}

// lower is an instant that the engine's time has reached. It returns false where that was not asked lately.
func (c *clock) lower() (ns int64, ok bool) {
	if c.fake != nil {
		return c.fake(), true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	since := time.Since(c.got)
	return c.timeNS + int64(since) - drift(since), since < fresh
}

// upper is an instant that the engine's time has not passed.
func (c *clock) upper() (ns int64, ok bool) {
	if c.fake != nil {
		return c.fake(), true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	since := time.Since(c.sent)
	return c.timeNS + int64(since) + drift(since), time.Since(c.got) < fresh
}

// span is how far upper may be ahead of the engine's time.
func (c *clock) span() time.Duration {
	if c.fake != nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.got.Sub(c.sent) + time.Duration(drift(time.Since(c.sent)))
}

// forget makes it unknown.
func (c *clock) forget() { c.observe(0, time.Time{}, time.Time{}) }
