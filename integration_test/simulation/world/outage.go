package world

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// The engine stands still again and again, for so long that each machine must know. Meanwhile --store-failure decides: what it answers on
// keys that nobody else asks for is known.

// outageLimit is 20, of which the mode local gives each machine one.
const (
	outageLimit  = "20/1h"
	outagePolicy = "outage" // of the same limit, which has a mode of its own
)

func drawOutage(p *plan) {
	if p.engine != "alone" {
		p.without("outage")
		return
	}
	p.scenes = slices.DeleteFunc(p.scenes, func(s scene) bool { return s.name != "outage" && s.name != "http" })
	r := p.chance("outage")
	modes := []string{"allow", "deny", "local"}
	p.set("store-failure", oneOf(r, modes...)+","+outagePolicy+"="+oneOf(r, modes...))
}

// outageModes are those of calls, and of the policy; "": the world is not about outages.
func (p *plan) outageModes() (all, policy string) {
	all, policy, _ = strings.Cut(p.setting("store-failure"), ","+outagePolicy+"=")
	return all, policy
}

func runOutage(w *world) {
	c := w.caller("the outage", 205)
	for round := range c.rounds(3, 3*time.Second) {
		w.outage(&c, round)
	}
}

// outage pauses the engine while no process ends, and asks each.
func (w *world) outage(c *caller, round int) {
	for _, m := range w.all {
		m.well.Lock()
		defer m.well.Unlock()
	}
	w.fleet.well.Lock()
	defer w.fleet.well.Unlock()
	for _, m := range w.all {
		c.only = m
		c.knowsRules()
		c.hangUp()
	}
	n := w.fleet.masters()[0]
	n.Pause()
	defer n.Resume()
	time.Sleep(w.plan.timeout + time.Second)
	for _, m := range w.all {
		c.only = m
		c.asksWithout(fmt.Sprintf("out:%d:", round)) // two outages within 10 s are one, in which the mode local knows its keys
		if w.plan.has("http") {
			w.fetch(c, m, "/readyz", http.StatusServiceUnavailable)
		}
		c.hangUp()
	}
	w.count("asked without the engine")
}

// knowsRules returns when the machine uses the engine, and knows the policy and the rules, which it sets if nobody has.
func (c *caller) knowsRules() {
	for c.w.since() < longest/2 {
		info, _ := c.do("INFO").value.(string)
		policy, _ := c.do("CL.POLICY", "GET", outagePolicy).value.(string)
		rules, _ := c.do("CL.RULE", "LIST", "out:*").value.([]any)
		if field(info, "store_mode") == "engine" && policy != "" && len(rules) == 2 {
			return
		}
		c.do("CL.POLICY", "SET", outagePolicy, outageLimit)
		c.do("CL.RULE", "ADD", "DENY", "out:bad")
		c.do("CL.RULE", "ADD", "ALLOW", "out:good")
		time.Sleep(100 * time.Millisecond)
	}
}

// asksWithout asks for what the machine decides without the engine.
func (c *caller) asksWithout(prefix string) {
	all, policy := c.w.plan.outageModes()
	strictest := all
	for _, mode := range []string{"allow", "local", "deny"} {
		if mode == all || mode == policy {
			strictest = mode
		}
	}
	for n := range 3 {
		c.answersAs(all, n, "CL.THROTTLE", prefix+"a", "19", "20", "3600")
		c.answersAs(all, n, "CL.TAKE", prefix+"b", outageLimit, "WAIT", "1")
		c.answersAs(policy, n, "CL.TAKE", prefix+"c", "@"+outagePolicy)
		c.answersAs(strictest, n, "CL.TAKE", prefix+"d", outageLimit, "@"+outagePolicy)
		c.answersAs("allow", n, "CL.TAKE", "out:good", outageLimit)
		c.answersAs("a rule that denies", n, "CL.TAKE", "out:bad", outageLimit)
		c.answersAs("error", n, "EVAL", "return redis.call('CL.TAKE', KEYS[1], ARGV[1])", "1", prefix+"e", outageLimit)
		c.answersAs("error", n, "DEL", prefix+"a")
	}
	if all != "local" {
		return
	}
	lease, is := c.answersAs(all, 0, "CL.TAKE", prefix+"f", outageLimit+",algo=conc").([]any)
	c.answersAs(all, 1, "CL.TAKE", prefix+"f", outageLimit+",algo=conc")
	if is && len(lease) == 8 {
		c.do("CL.RELEASE", prefix+"f", fmt.Sprint(lease[7]))
	}
	c.answersAs(all, 0, "CL.TAKE", prefix+"f", outageLimit+",algo=conc")
}

// answersAs asks, and says what is wrong with the answer. It is the n-th for the key.
func (c *caller) answersAs(mode string, n int, words ...string) any {
	a := c.do(words...)
	if a.none {
		return nil
	}
	want := "[0 20 20"
	switch {
	case mode == "error":
		if !strings.HasPrefix(a.failed(), "STOREDOWN ") {
			c.w.wrong("without the engine %q is answered %v", words, a.value)
		}
		return nil
	case mode == "a rule that denies":
		want = "[1 0 0"
	case mode == "deny", mode == "local" && n > 0:
		want = "[1 20 0"
	case mode == "local":
		want = "[0 20 0"
	}
	if got := fmt.Sprint(a.value); !strings.HasPrefix(got, want+" ") {
		c.w.wrong("without the engine, with %s, %q is answered %v for the %d. time", mode, words, a.value, n+1)
	}
	return a.value
}
