package world

import (
	"fmt"
	"strings"
	"time"
)

// longestWait is the longest retry after that a world waits for at its end.
const longestWait = 20 * time.Second

// comeAgain takes once from each limit when all faults are over and all clients have ended. Who is denied comes again when the answer says,
// and passes: nobody else has called meanwhile.
func (w *world) comeAgain() {
	c := w.caller("the last", 201)
	for i := range w.plan.keys {
		k := &w.plan.keys[i]
		if k.held || w.plan.leavesOut(k.name) {
			continue // leases may last for an hour
		}
		words, unit := append([]string{"CL.TAKE", k.name}, strings.Fields(k.text)...), time.Millisecond
		if k.text == "" {
			burst := strings.Fields(strings.Trim(fmt.Sprint(k.burst), "[]"))
			words, unit = append([]string{"CL.THROTTLE", k.name}, burst...), time.Second
		}
		first, is := c.do(words...).value.([]any)
		if !is || first[0] == int64(0) {
			continue // it passes, or the key holds something else
		}
		after := time.Duration(first[3].(int64)) * unit
		if after < 0 || after > longestWait {
			continue
		}
		if w.fleet != nil { // a denial is remembered by the clock of the engine, as celld knows it, and by one that takes ahead for so long
			after += time.Duration(w.fleet.slack()) + time.Duration(number(w.plan.setting("store-ahead")))*time.Millisecond
		}
		time.Sleep(after) // answers round it up, and calls take their time
		if second, is := c.do(words...).value.([]any); is && second[0] != int64(0) {
			w.wrong("%v is denied after the %s that it was told to wait: %v, and then %v", words, after, first, second)
		}
		w.count("came again")
	}
	c.hangUp()
}
