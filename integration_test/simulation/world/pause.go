package world

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// A rule pauses an upstream again and again. While it holds, calls that do not wait are denied, and calls that wait do not pass. At other
// times all pass.

func runPause(w *world) {
	turns := &turns{w: w, forgets: true}
	operator := w.caller("pauses", 164)
	var all sync.WaitGroup
	turns.change(func() { pause(&operator, 0) })
	for n := range 3 {
		c := w.caller(fmt.Sprintf("worker %d", n), 161+n)
		all.Go(func() {
			for range c.rounds(w.plan.calls/4, w.plan.think+time.Millisecond) {
				upstream(turns, &c)
			}
		})
	}
	turns.until(&all, w.plan.chance("turns of pauses"), func(turn int) { pause(&operator, turn) })
	w.mu.Lock()
	defer w.mu.Unlock()
	w.finally = append(w.finally, func() {
		last := turns.all[len(turns.all)-1]
		operator.hangUp()
		a := operator.do("CL.RULE", "LIST", "upstream:*")
		list, is := a.value.([]any)
		if is && len(list) > 0 != (len(turns.all)%2 == 0) && !w.forgot(last, a.ended) {
			w.wrong("after turn %d of the pauses the rules are %v", len(turns.all)-1, list)
		}
		operator.hangUp()
	})
}

// pause adds the rule in each second turn, and removes it in the others, and returns when all machines know.
func pause(operator *caller, turn int) {
	add := turn%2 == 1
	words := []string{"CL.RULE", "DEL", "PAUSE", "upstream:*"}
	if add {
		words[1] = "ADD"
	}
	for _, m := range operator.w.all {
		c := *operator
		c.only, c.conn = m, nil
		for {
			a := c.do("CL.RULE", "LIST", "upstream:*")
			if list, is := a.value.([]any); is && len(list) > 0 == add {
				break
			}
			c.do(words...)
			time.Sleep(100 * time.Millisecond)
		}
		c.hangUp()
	}
}

// upstream asks for a limit that lets all pass.
func upstream(t *turns, c *caller) {
	words := []string{"CL.TAKE", fmt.Sprint("upstream:", c.rnd.IntN(2)), oneOf(c.rnd, "1000000/1m", "1000000/1m,algo=window")}
	waits := c.rnd.IntN(2) == 0
	if waits {
		words = append(words, "WAIT", fmt.Sprint(c.rnd.IntN(3000)))
	}
	a := c.do(words...)
	values, is := a.value.([]any)
	code, _, _ := strings.Cut(a.failed(), " ")
	switch {
	case a.none:
	case is && len(values) > 1:
		denied := values[0] == int64(1)
		if denied && values[1] != int64(0) {
			c.w.wrong("%s was denied by a limit that lets all pass: %v", c.name, a.value)
		}
		t.obeys(c, a, func(turn int) bool { return turn%2 == 1 == denied })
	case code == "MISCONF", c.w.plan.mayFail(code):
		c.w.count("worker told " + code)
	default:
		c.w.wrong("%s was answered %v", c.name, a.value)
	}
	if waits {
		c.w.count("waited for an upstream")
	}
}
