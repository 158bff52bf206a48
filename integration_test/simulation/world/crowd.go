package world

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// A crowd of new keys fills the table, which never holds more than --max-keys and --maxmemory allow. Where limits are reset for it, calls
// are checked by bounds.

func drawCrowd(p *plan) {
	if p.engine != noEngine {
		p.without("crowd")
		return
	}
	r := p.chance("crowd")
	p.set("max-keys", fmt.Sprint(20+r.IntN(200)))
	if r.IntN(2) == 0 {
		p.set("maxmemory", fmt.Sprint(20_000+r.IntN(40_000)))
	}
	if few := p.chance("few keys"); few.IntN(2) == 0 { // so that few calls fill it
		p.set("max-keys", fmt.Sprint(20+few.IntN(8)))
	}
	p.set("maxmemory-policy", oneOf(r, "allkeys-lru", "noeviction"))
	if p.evicts() {
		p.drawBounded(r)
	}
}

func runCrowd(w *world) {
	var all sync.WaitGroup
	for n := range 2 {
		c := w.caller(fmt.Sprintf("crowd %d", n), 100+n)
		all.Go(func() {
			for i := range c.rounds(40+w.plan.calls, w.plan.think/4+1) {
				c.member(n, i)
			}
		})
	}
	c := w.caller("counter", 110)
	all.Go(func() {
		for range c.rounds(w.plan.calls/2, w.plan.think+time.Millisecond) {
			c.countKeys()
		}
	})
	all.Wait()
	w.event("crowd", "ends")
}

// member takes from a key of its own, mostly a new one.
func (c *caller) member(n, i int) {
	key := fmt.Sprintf("crowd:%d:%d", n, c.rnd.IntN(1+i))
	a := c.do(append([]string{"CL.TAKE", key}, strings.Fields(oneOf(c.rnd, "5/1s", "10/1h", "10/1h 100/1d", "20/1h,algo=log"))...)...)
	code, _, _ := strings.Cut(a.failed(), " ")
	if code == "OOM" {
		c.w.count("crowd refused")
	}
	if code != "" && code != "MISCONF" && !c.w.plan.mayFail(code) {
		c.w.wrong("%s was answered %v", c.name, a.value)
	}
}

// countKeys asks how many keys there are, and how much memory they take.
func (c *caller) countKeys() {
	if n, is := c.do("DBSIZE").value.(int64); is && n > number(c.w.plan.setting("max-keys")) {
		c.w.wrong("there are %d keys with --max-keys %s", n, c.w.plan.setting("max-keys"))
	}
	info, _ := c.do("INFO", "memory", "stats").value.(string)
	most, used := number(c.w.plan.setting("maxmemory")), number(field(info, "used_memory_dataset"))
	if most > 0 && used > most {
		c.w.wrong("keys take %d bytes with --maxmemory %d", used, most)
	}
	if number(field(info, "evicted_keys")) > 0 {
		c.w.count("saw evictions")
		if c.w.plan.setting("maxmemory-policy") == "noeviction" {
			c.w.wrong("with noeviction there are evictions: %s", info)
		}
	}
}

// field is a line of INFO.
func field(info, name string) string {
	_, rest, _ := strings.Cut("\n"+info, "\n"+name+":")
	value, _, _ := strings.Cut(rest, "\r\n")
	return value
}
