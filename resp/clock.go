package resp

import (
	"sync/atomic"
	"time"
)

// Clock is limit time: the wall time at its making, and from then on as much more as time has passed. It never goes back, and
// does not step when the wall clock is set, so limits, time-outs and durations take no harm from that. The store knows
// how far wall time is ahead of it, as followWall says: see store/wall.go.
//
// It goes by CLOCK_MONOTONIC. NTP slews that together with the wall clock, so the two drift apart by steps alone. It stands
// still while the machine is suspended; Read adds that, so limits flow back meanwhile.
type Clock struct {
	start     time.Time
	startNS   int64
	suspended atomic.Int64

	wallNS func() int64
	bootNS func() (ns int64, ok bool) // since some instant, with the time that the machine was suspended
	bootAt int64                      // bootNS at the start
}

// NewClock returns a clock that begins now.
func NewClock() *Clock { return newClock(func() int64 { return time.Now().UnixNano() }, bootNS) }

func newClock(wallNS func() int64, bootNS func() (int64, bool)) *Clock {
	c := &Clock{start: time.Now(), wallNS: wallNS, bootNS: bootNS}
	c.startNS = wallNS()
	c.bootAt, _ = bootNS()
	return c
}

// NowNS is the time in Unix nanoseconds.
func (c *Clock) NowNS() int64 { return c.startNS + int64(time.Since(c.start)) + c.suspended.Load() }

const (
	readWithinNS   = 1_000_000  // so far may two clocks be apart that are read at one instant
	leastSuspendNS = 10_000_000 // what is less is how clocks are read
)

// Read reads the wall clock, and this one at the same instant, and adds to the latter what the machine was suspended. It returns
// false where it was interrupted. One goroutine at a time may call it.
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

// leastStepNS is the least difference that is taken for a wall clock that was set. NTP slews what is less.
const leastStepNS = 100_000_000

// followWall notices a wall clock that was set.
func (srv *Server) followWall() {
	if srv.readClocks == nil || srv.gate.has(gateLoading) {
		return
	}
	wallNS, nowNS, ok := srv.readClocks()
	if by := wallNS - srv.store.WallNS(nowNS); ok && max(by, -by) >= leastStepNS {
		srv.setWall(wallNS, nowNS, by)
	}
}

// setWall runs alone, so that each command is all before it or all after.
func (srv *Server) setWall(wallNS, nowNS, by int64) {
	srv.world.Lock()
	srv.store.SetWall(wallNS, nowNS)
	srv.world.Unlock()
	srv.persist.WallSet()
	srv.stats.clockSteps.Add(1)
	srv.log.Warn("the wall clock was set; limits keep what is left of them", "by", time.Duration(by).Round(time.Millisecond))
}
