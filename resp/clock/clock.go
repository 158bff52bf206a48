// Package clock is the time by which limits are computed.
//
//	c := clock.New()
//	nowNS := c.NowNS()             // Unix nanoseconds; it never goes back, whatever happens to the wall clock
//	wallNS, nowNS, ok := c.Read()  // what the wall clock says at the same instant
package clock

import (
	"sync/atomic"
	"time"
)

// Clock is the time by which limits are computed: the wall time when it was made, plus the time that has passed since. It never
// goes back and does not jump when the wall clock is set, so limits, time-outs and durations stay right. Its user tells
// the store how far wall time is ahead of it.
//
// It follows CLOCK_MONOTONIC. NTP slews that together with the wall clock, so only steps of the wall clock separate the two.
// It stands still while the machine is suspended. Read adds that time, so limits refill during it.
type Clock struct {
	start     time.Time
	startNS   int64
	suspended atomic.Int64

	wallNS func() int64
	bootNS func() (ns int64, ok bool) // since some instant, time of suspension included
	bootAt int64                      // bootNS at the start
}

// New returns a Clock that starts at the wall time of now.
func New() *Clock { return newClock(func() int64 { return time.Now().UnixNano() }, bootNS) }

func newClock(wallNS func() int64, bootNS func() (int64, bool)) *Clock {
	c := &Clock{start: time.Now(), wallNS: wallNS, bootNS: bootNS}
	c.startNS = wallNS()
	c.bootAt, _ = bootNS()
	return c
}

// NowNS is the time in Unix nanoseconds.
func (c *Clock) NowNS() int64 { return c.startNS + int64(time.Since(c.start)) + c.suspended.Load() }

const (
	readWithinNS   = 1_000_000  // two clocks that are read within this were read at one instant
	leastSuspendNS = 10_000_000 // a shorter suspension is only the inaccuracy of reading
)

// Read reads the wall clock and this Clock at one instant, both in Unix nanoseconds, after adding to the Clock what the machine
// was suspended. ok is false where an interruption separated the readings. Only one goroutine at a time may call it.
func (c *Clock) Read() (wallNS, nowNS int64, ok bool) {
	before := time.Since(c.start)
	wallNS = c.wallNS()
	boot, hasBoot := c.bootNS()
	if time.Since(c.start)-before > readWithinNS {
		return 0, 0, false
	}
	if suspended := boot - c.bootAt - int64(before); hasBoot && suspended-c.suspended.Load() > leastSuspendNS {
		c.suspended.Store(suspended)
	}
	return wallNS, c.startNS + int64(before) + c.suspended.Load(), true
}
