package world

import (
	"fmt"
	"time"
)

// An operator does what operators do while clients call.

func runUpkeep(w *world) {
	c := w.caller("upkeep", 160)
	for range c.rounds(10+w.plan.calls/4, 4*w.plan.think+10*time.Millisecond) {
		switch c.rnd.IntN(8) {
		case 0, 1:
			c.do("BGREWRITEAOF")
		case 2:
			c.do("BGSAVE")
		case 3:
			c.do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		case 4:
			c.do("CLIENT", "UNBLOCK", fmt.Sprint(1+c.rnd.IntN(10)))
		case 5:
			c.do("SCRIPT", "FLUSH")
		case 6:
			c.do("CONFIG", "SET", "max-waiters", fmt.Sprint(10+c.rnd.IntN(100)))
		case 7:
			c.do("CL.TOP", "10", "BY", oneOf(c.rnd, "DENIED", "CALLS", "NEAR"), "LAST", oneOf(c.rnd, "1m", "10m", "START"))
		}
	}
	if c.conn != nil {
		c.conn.Close()
	}
}
