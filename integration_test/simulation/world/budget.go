package world

import (
	"fmt"
	"sync"
	"time"
)

// Workers share a budget that no time refills. Each takes what its work may cost at most, by a lease, and says afterwards what it did cost,
// gives some of that back, or dies. Once all leases have ended, what is used is the sum of what was settled.

// budgetOf is the limits of the key: tokens, calls, and how many work at once.
func (p *plan) budgetOf() []string {
	kind := oneOf(p.chance("budget"), "window", "slide", "slide,buckets=6")
	return []string{"1000000/366d,algo=" + kind + ",name=tokens", "1000000/366d,algo=window,name=calls", "4/1h,algo=conc"}
}

// budgetLease is how long a lease lasts, in ms.
const budgetLease = 3000

// spent is how much was used of a limit: at least, and at most where an answer is missing.
type spent struct{ least, most int64 }

func (s *spent) add(n int64, certain bool) {
	if s.most += max(n, 0); certain {
		s.least += n
		s.most += min(n, 0)
	} else {
		s.least += min(n, 0)
	}
}

type budgeted struct {
	w             *world
	mu            sync.Mutex
	tokens, calls spent
}

func drawBudget(p *plan) {
	if p.evicts() {
		p.without("budget")
	}
}

func runBudget(w *world) {
	b := &budgeted{w: w}
	began := w.event("budget", "begins")
	var all sync.WaitGroup
	for n := range 3 {
		c := w.caller(fmt.Sprintf("spender %d", n), 180+n)
		all.Go(func() {
			for i := range c.rounds(w.plan.calls/2, w.plan.think+time.Millisecond) {
				b.work(&c, fmt.Sprint(n, "-", i))
			}
			c.hangUp()
		})
	}
	all.Wait()
	time.Sleep(budgetLease*time.Millisecond + w.plan.lasts())
	c := w.caller("auditor", 183)
	for range 600 {
		a := c.do(append(append([]string{"CL.TAKE", "{budget}"}, w.plan.budgetOf()...), "PEEK", "FULL")...)
		if values, is := a.value.([]any); is {
			if !w.lost(began, a.ended) {
				b.check(values[len(values)-1].([]any))
			}
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	c.hangUp()
}

// work takes a lease, works, and settles.
func (b *budgeted) work(c *caller, id string) {
	most := 1 + c.rnd.Int64N(1000)
	take := append(append([]string{"CL.TAKE", "{budget}"}, b.w.plan.budgetOf()...), "COST", "1", "COST", fmt.Sprint(most),
		"OF", "tokens", "COST", "1", "OF", "calls", "LEASE", fmt.Sprint(budgetLease), "ID", id)
	a := c.do(take...)
	for a.none { // the same ID makes a repeat harmless
		a = c.do(take...)
	}
	values, is := a.value.([]any)
	if !is || values[0] != int64(0) {
		return
	}
	lease := fmt.Sprint(values[7])
	time.Sleep(time.Duration(c.rnd.Int64N(int64(100 * time.Millisecond))))
	switch c.rnd.IntN(6) {
	case 0: // it dies
		return
	case 1:
		c.do("CL.RELEASE", "{budget}", lease)
		return
	}
	cost := c.rnd.Int64N(1500)
	a = c.do("CL.SETTLE", "{budget}", lease, fmt.Sprint(cost), "OF", "tokens")
	b.spends(&b.tokens, cost, a)
	b.spends(&b.calls, 1, a)
	if a.value == int64(1) && c.rnd.IntN(4) == 0 {
		back := c.rnd.Int64N(cost + 1)
		a = c.do("CL.GIVE", "{budget}", b.w.plan.budgetOf()[0], fmt.Sprint(back), "OF", "tokens")
		if given, is := a.value.(int64); is && given > back {
			b.w.wrong("%s has given %d back, and got %d", c.name, back, given)
		}
		b.spends(&b.tokens, -back, a)
		b.w.count("gave back")
	}
}

// spends notes what an answer says about a cost, or that nobody knows.
func (b *budgeted) spends(s *spent, n int64, a answer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch done, is := a.value.(int64); {
	case !is:
		s.add(n, false)
	case n < 0:
		s.add(-done, true)
	case done == 1:
		s.add(n, true)
	}
}

func (b *budgeted) check(full []any) {
	for i, s := range []*spent{&b.tokens, &b.calls} {
		values := full[i].([]any)
		if used := values[1].(int64) - values[2].(int64); used < s.least || used > s.most {
			b.w.wrong("%d of limit %d of the budget are used, and what was settled are %d to %d", used, i, s.least, s.most)
		}
	}
	if values := full[2].([]any); values[1] != values[2] {
		b.w.wrong("all leases have ended, and %v of %v places are free", values[2], values[1])
	}
	b.w.count("budget checked")
}
