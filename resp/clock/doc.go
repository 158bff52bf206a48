// Package clock is the time by which limits are computed.
//
//	c := clock.New()
//	nowNS := c.NowNS()             // Unix nanoseconds; it never goes back, whatever happens to the wall clock
//	wallNS, nowNS, ok := c.Read()  // what the wall clock says at the same instant
package clock
