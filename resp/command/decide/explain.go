package decide

import (
	"cmp"
	"fmt"
	"time"

	"celld/cell"
	"celld/resp/command"
	"celld/resp/command/argument"
	"celld/store"
	"celld/store/policy"
)

var explainWords = argument.Options{Valued: []string{"COST", "OF"}, Often: []string{"COST", "OF"}}

// explain is CL.EXPLAIN key limit ... [COST n [OF name]] .... It asks the limiter as CL.TAKE with PEEK does, so the two never disagree.
func (d *Decider) explain(c *command.Call) {
	f, s, nowNS := &d.single, d.Server, c.NowNS
	f.reset(c.Row)
	rest, text := f.readLimits(&d.limits, c.Args[2:])
	if f.Cost, f.Mode = 1, cell.Peek; text == "" {
		text = cmp.Or(explainWords.Read(rest, f.set), f.share())
	}
	if text != "" {
		c.Error("%s", text)
		return
	}
	f.reply = func(out *command.Reply, _ *Shape, r *store.TakeRequest) { out.String(s.explained(r, nowNS)) }
	c.Host.(Host).Decide(c, f)
}

// explained says for people what a peek has found.
func (s *Server) explained(r *store.TakeRequest, nowNS int64) string {
	verdict := "would pass"
	if r.Taken.Limited {
		verdict = "would be denied"
	}
	if rule := r.Calls[0].Rule(s.Table.Set, nowNS); rule != nil && rule.Deny == r.Taken.Limited {
		return verdict + " by the rule " + textOf(rule)
	}
	verdict += ": "
	if r.Taken.Limited {
		verdict += s.denial(r)
	} else {
		verdict += leftAfter(r)
	}
	if s.Store.Away() != nil {
		verdict += ", while the engine does not answer"
	}
	return verdict
}

// textOf is a rule as CL.RULE ADD takes it.
func textOf(r *policy.Rule) string {
	text := r.Verdict() + " " + cmp.Or(r.Pattern, `""`)
	if r.Net.IsValid() {
		text += " CIDR " + r.Net.String()
	}
	return text
}

// leftAfter says what would be left of the limit of which the smallest share would be.
func leftAfter(r *store.TakeRequest) string {
	least, share := "", 2.0
	for i := range r.Calls {
		c := &r.Calls[i]
		if c.Limit.Shadow && least != "" {
			continue
		}
		most := c.Limit.Bucket().Capacity()
		left := max(0, c.Decision.Remaining-taken(r, i))
		if of := float64(left) / float64(most); of < share {
			least, share = fmt.Sprintf("%d of %d would be left under %s", left, most, textOfLimit(c)), of
		}
		if c.Limit.Shadow { // it is named only where it is alone
			share = 2
		}
	}
	return least
}

// denial says which limit denies a call, and why.
func (s *Server) denial(r *store.TakeRequest) string {
	c := &r.Calls[r.Taken.Binding]
	name, most := textOfLimit(c), c.Limit.Bucket().Capacity()
	if r.Taken.RetryAfterNS == cell.Never {
		return fmt.Sprintf("cost %d is more than %s ever allows", taken(r, r.Taken.Binding), name)
	}
	passes := fmt.Sprintf(", and a call of %d passes in %s", c.CostOf(r.Cost), textOfWait(r.Taken.RetryAfterNS))
	if c.Decision.Blocked {
		return name + " is blocked" + passes
	}
	switch n := s.Store.WaitingFor(c); {
	case n == 0 && c.Decision.Remaining == 0: // more than all may be used
		return fmt.Sprintf("%s has none of %d left", name, most) + passes
	case n == 0:
		return fmt.Sprintf("%s has used %d of %d", name, most-c.Decision.Remaining, most) + passes
	case n == 1:
		return "1 caller waits for " + name + passes
	default:
		return fmt.Sprintf("%d callers wait for %s", n, name) + passes
	}
}

// taken is what the calls take that share the state of the one at a place, up to that one. All have one key.
func taken(r *store.TakeRequest, at int) (n int64) {
	of := &r.Calls[at]
	for i := range r.Calls[:at+1] {
		if c := &r.Calls[i]; c.PolicyID() == of.PolicyID() && (c.Policy != nil || c.Limit.Shape == of.Limit.Shape) {
			n += c.CostOf(r.Cost)
		}
	}
	return n
}

func textOfLimit(c *store.Call) string {
	if c.Policy != nil {
		return c.Limit.String() + " of @" + c.Policy.Policy.Name
	}
	return c.Limit.String()
}

// textOfWait rounds up, to a unit of which there are 10 at least, or a whole number.
func textOfWait(ns uint64) string {
	for _, unit := range []struct {
		ns   time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}} {
		if n := uint64(unit.ns); ns >= 10*n || ns%n == 0 {
			return fmt.Sprint(wait(ns, n), " ", unit.name)
		}
	}
	return fmt.Sprint(wait(ns, 1e6), " ms")
}
