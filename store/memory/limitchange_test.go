package memory_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"celld/cell"
	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
	"celld/store/policy"

	"pgregory.net/rapid"
)

// changing is a sequence of calls in fake time, under limits that change between them. It keeps a script of them, so that
// a failure can be read.
type changing struct {
	t       memtest.Failer
	store   *memory.Store
	nowNS   int64
	batched bool // by TakeBatch
	limits  []changingLimit
	script  []string
}

// changingLimit is one limit of each call: a policy, or a literal where that has no name.
type changingLimit struct {
	policy  string
	suffix  string // of the key
	literal cell.Limit
}

// answer is all that a call is told.
type answer struct {
	store.Taken
	each [2]cell.Decision
}

func newChanging(t memtest.Failer) *changing {
	return &changing{t: t, store: memory.New(memory.Options{Shards: 1}), nowNS: t0}
}

func (c *changing) note(format string, args ...any) {
	c.script = append(c.script, fmt.Sprintf("%12d µs  ", (c.nowNS-t0)/1000)+fmt.Sprintf(format, args...))
}

func (c *changing) fail(format string, args ...any) {
	c.t.Helper()
	c.t.Fatalf("%s\nafter (instants rounded down)\n%s", fmt.Sprintf(format, args...), strings.Join(c.script, "\n"))
}

func (c *changing) add(policy, suffix, limit string) {
	c.limits = append(c.limits, changingLimit{policy: policy, suffix: suffix})
	c.change(len(c.limits)-1, limit)
}

// change replaces a limit by another, from now on.
func (c *changing) change(i int, limit string) {
	l := &c.limits[i]
	l.literal = memtest.MustParse(c.t, limit)
	if l.policy == "" {
		c.note("literal %s", limit)
		return
	}
	c.note("CL.POLICY SET %s %s", l.policy, limit)
	if ok, err := c.store.SetPolicy(l.policy, []cell.Limit{l.literal}, policy.Options{}); !ok || err != nil {
		c.t.Fatal(ok, err)
	}
}

func (c *changing) pass(ns int64) { c.nowNS += ns }

// ask makes the same call under each of some keys, at one instant.
func (c *changing) ask(cost int64, mode cell.Mode, upTo bool, keys ...string) []answer {
	c.t.Helper()
	reqs := make([]store.TakeRequest, len(keys))
	for i, key := range keys {
		r := &reqs[i]
		r.TakeOptions = store.TakeOptions{Cost: cost, Mode: mode, UpTo: upTo}
		for j := range c.limits {
			l := &c.limits[j]
			call := store.Call{Key: []byte(key + l.suffix), Limit: &l.literal}
			if l.policy != "" {
				p := c.store.PolicyNamed(l.policy)
				call.Limit, call.Policy = &p.Limits[0].Limit, p.Limits[0]
			}
			r.Calls = append(r.Calls, call)
		}
	}
	if c.batched {
		c.store.TakeBatch(reqs, memtest.At(c.nowNS), nil)
	}
	answers := make([]answer, len(reqs))
	for i := range reqs {
		r := &reqs[i]
		if !c.batched {
			r.Taken, r.Err = c.store.Take(r.Calls, r.TakeOptions, memtest.At(c.nowNS))
		}
		if r.Err != nil {
			c.fail("%v", r.Err)
		}
		a := &answers[i]
		a.Taken = r.Taken
		for j := range r.Calls {
			a.each[j] = r.Calls[j].Decision
		}
		c.note("%s cost %d mode %d: %s", keys[i], cost, mode, a)
	}
	return answers
}

func (c *changing) take(cost int64, key string) answer { return c.ask(cost, cell.Take, false, key)[0] }
func (c *changing) peek(cost int64, key string) answer { return c.ask(cost, cell.Peek, false, key)[0] }

func (a *answer) String() string {
	text := fmt.Sprintf("granted %d", a.Granted)
	if a.Limited {
		text = fmt.Sprintf("limited, retry after %d ns", a.RetryAfterNS)
		if a.RetryAfterNS == cell.Never {
			text = "limited for ever"
		}
	}
	for _, d := range a.each {
		if d.Limit > 0 {
			text += fmt.Sprintf(" [%d of %d left, full in %d ns]", d.Remaining, d.Limit, d.ResetAfterNS)
		}
	}
	return text
}

// sleeper is a caller that sleeps exactly as long as it is told. It passes then. The twin, whose key has had the same calls, is
// limited 1 ns earlier. Each key comes to call at another instant, so neither can disturb the other.
func (c *changing) sleeper(cost int64, key, twin string) {
	c.t.Helper()
	answers := c.ask(cost, cell.Take, false, key, twin)
	if answers[0] != answers[1] {
		c.fail("the same calls are answered in two ways")
	}
	told := answers[0].RetryAfterNS
	if !answers[0].Limited || told == cell.Never {
		return
	}
	c.pass(int64(told) - 1)
	if a := c.peek(cost, twin); !a.Limited {
		c.fail("passes 1 ns before the %d that it was told", told)
	}
	c.pass(1)
	if a := c.take(cost, key); a.Limited {
		c.fail("is limited after the %d ns that it was told to sleep", told)
	}
}

// The kinds of limits that a sequence changes among: what follows the period.
var changingKinds = []string{"", ",algo=window", ",algo=window,align=clock", ",algo=slide", ",algo=slide,buckets=4", ",algo=log"}

func eachKind(t *testing.T, property func(t *rapid.T, kind string)) {
	for _, kind := range changingKinds {
		t.Run(strings.TrimPrefix("gcra"+kind, "gcra,algo="), func(t *testing.T) { rapid.Check(t, func(t *rapid.T) { property(t, kind) }) })
	}
}

var (
	changingPeriods = []string{"1s", "10s", "1m", "1h", "1d"}
	changingCounts  = []int64{1, 2, 3, 10, 36, 1000}
)

func drawPeriod(t *rapid.T) string { return rapid.SampledFrom(changingPeriods).Draw(t, "period") }

func drawLiteral(t *rapid.T, period, kind string) string {
	text := fmt.Sprint(rapid.SampledFrom(changingCounts).Draw(t, "count"), "/", period, kind)
	if kind == "" && rapid.Bool().Draw(t, "bursts") {
		text += fmt.Sprint(",burst=", rapid.SampledFrom(changingCounts).Draw(t, "burst"))
	}
	return text
}

// drawOptions adds what has no state of its own to carry.
func drawOptions(t *rapid.T, limit string) string {
	switch rapid.IntRange(0, 7).Draw(t, "options") {
	case 7:
		return limit + ",block=" + rapid.SampledFrom([]string{"300ms", "2s", "5m"}).Draw(t, "block")
	case 6:
		return limit + ",shadow"
	}
	return limit
}

// drawChanging starts with one limit of a kind, or with two. The function returned changes one of them: a policy to one that is alike, a
// literal to another count and burst, as all else would be another state.
func drawChanging(t *rapid.T, kind string) (*changing, func()) {
	c := newChanging(t)
	c.batched = rapid.Bool().Draw(t, "batched")
	period := drawPeriod(t)
	names := []string{"p"}
	if literal := rapid.IntRange(0, 2).Draw(t, "literal") == 2; literal {
		names[0] = ""
	}
	suffixes := []string{""}
	if rapid.IntRange(0, 3).Draw(t, "limits") == 3 {
		names = append(names, "q")
		suffixes = append(suffixes, rapid.SampledFrom([]string{"", " and another key"}).Draw(t, "suffix"))
		c.batched = c.batched && suffixes[1] == "" // a batch's takes are of one key each
	}
	options := func(limit string) string {
		if len(names) > 1 { // a block of one limit and a denial of the other is another matter
			return limit
		}
		return drawOptions(t, limit)
	}
	for i := range names {
		c.add(names[i], suffixes[i], options(drawLiteral(t, period, kind)))
	}
	return c, func() {
		i := 0
		if len(names) > 1 {
			i = rapid.IntRange(0, 1).Draw(t, "which")
		}
		to := kind
		if names[i] != "" && rapid.Bool().Draw(t, "another kind") {
			to = rapid.SampledFrom(alike(kind, changingKinds)).Draw(t, "kind")
		}
		c.change(i, options(drawLiteral(t, period, to)))
	}
}

// drawCost is of a call under limits that are small and large.
func (c *changing) drawCost(t *rapid.T) int64 {
	most := int64(1)
	for i := range c.limits {
		most = max(most, c.limits[i].literal.Capacity())
	}
	return rapid.SampledFrom([]int64{1, 2, max(1, most/2), most}).Draw(t, "cost")
}

// drawPass lets time pass: none, a part of the period, several.
func (c *changing) drawPass(t *rapid.T) {
	l := &c.limits[0].literal
	c.pass(rapid.OneOf(
		rapid.SampledFrom([]int64{0, 1, l.PeriodNS / l.Count, l.PeriodNS / 4, l.PeriodNS, second}),
		rapid.Int64Range(0, l.PeriodNS*2/l.Count),
		rapid.Int64Range(0, l.PeriodNS*5/4),
	).Draw(t, "ns"))
}

// P1: whatever calls and changes there were, who sleeps as long as the last answer says passes then, and not before.
func TestAfterAChangeRetryAfterIsExact(t *testing.T) {
	eachKind(t, func(t *rapid.T, kind string) {
		c, change := drawChanging(t, kind)
		for range rapid.IntRange(1, 5).Draw(t, "calls") {
			c.ask(c.drawCost(t), rapid.SampledFrom([]cell.Mode{cell.Take, cell.Take, cell.Peek}).Draw(t, "mode"),
				rapid.Bool().Draw(t, "up to"), "key", "twin")
			if rapid.Bool().Draw(t, "changes") {
				change()
			}
			c.drawPass(t)
		}
		c.sleeper(c.drawCost(t), "key", "twin")
	})
}

// P2: from the first call after a change on, denied calls and peeks at any instants change no later answer. With block= they
// are peeks, as a call that is denied once the block is over begins another. Whether a peek is a first call is left open.
func TestAskingAfterAChangeChangesNothing(t *testing.T) {
	eachKind(t, func(t *rapid.T, kind string) {
		c, change := drawChanging(t, kind)
		called := false // since the change
		for range rapid.IntRange(1, 5).Draw(t, "calls") {
			mode := rapid.SampledFrom([]cell.Mode{cell.Take, cell.Take, cell.Peek}).Draw(t, "mode")
			both := c.ask(c.drawCost(t), mode, rapid.Bool().Draw(t, "up to"), "quiet", "asks")
			if both[0] != both[1] {
				c.fail("who asks in between gets another answer")
			}
			called = called || mode == cell.Take
			for range rapid.IntRange(0, 2).Draw(t, "asks") {
				if c.drawPass(t); !called {
					continue
				}
				cost := c.drawCost(t)
				if c.peek(cost, "asks").Limited && c.limits[0].literal.BlockNS == 0 && !c.take(cost, "asks").Limited {
					c.fail("a peek is limited, and a call passes")
				}
			}
			if rapid.IntRange(0, 2).Draw(t, "changes") == 0 {
				called = false
				change()
			}
			c.drawPass(t)
		}
	})
}

// Sequences that were found by hand: a key is used up, its limit changes, and it sleeps as long as it is told.
// A peek with another literal leaves the state to those whose literal it is of.
func TestAPeekWithAnotherLiteralChangesNothing(t *testing.T) {
	s := memory.New(memory.Options{})
	decide := func(limit string, mode cell.Mode, nowNS int64) cell.Decision {
		l := memtest.MustParse(t, limit)
		calls := []store.Call{{Key: []byte("k"), Limit: &l}}
		if _, err := s.Take(calls, store.TakeOptions{Cost: 1, Mode: mode}, memtest.At(nowNS)); err != nil {
			t.Fatal(err)
		}
		return calls[0].Decision
	}
	const own, other = "10/1h,burst=10", "36000/1h,burst=10"
	for range 10 {
		decide(own, cell.Take, t0)
	}
	before := decide(own, cell.Take, t0)
	decide(other, cell.Peek, t0)
	if after := decide(own, cell.Take, t0+second); after.RetryAfterNS != before.RetryAfterNS-uint64(second) {
		t.Errorf("was %+v, is a second later %+v", before, after)
	}
}

// A block ends as the policy that the limit is of says now.
func TestABlockIsShortenedWithItsPolicy(t *testing.T) {
	s := memory.New(memory.Options{})
	take := func(limit string, nowNS int64) cell.Decision {
		if _, err := s.SetPolicy("p", []cell.Limit{memtest.MustParse(t, limit)}, policy.Options{}); err != nil {
			t.Fatal(err)
		}
		p := s.PolicyNamed("p")
		calls := []store.Call{store.CallOf([]byte("k"), p.Limits[0])}
		if _, err := s.Take(calls, store.TakeOptions{Cost: 1}, memtest.At(nowNS)); err != nil {
			t.Fatal(err)
		}
		return calls[0].Decision
	}
	const long, short = "1/1s,block=1h", "1/1s,block=2s"
	take(long, t0)
	if d := take(long, t0); d.RetryAfterNS != uint64(hour) {
		t.Fatalf("%+v", d)
	}
	if d := take(short, t0); d.RetryAfterNS != uint64(2*second) {
		t.Errorf("%+v", d)
	}
	if d := take(short, t0+2*second); d.Limited {
		t.Errorf("after what it was told: %+v", d)
	}
	s.Flush()
	take(long, t0)
	take(long, t0)
	if d := take(short, t0+second); !d.Limited || d.RetryAfterNS != uint64(2*second) { // where only the block denies
		t.Errorf("blocked: %+v", d)
	}
}

func TestAKeyThatIsUsedUpWhenItsLimitChanges(t *testing.T) {
	const us = second / 1_000_000
	for _, test := range []struct {
		from, to string
		literals bool
		toldUS   int64
	}{
		{"5/1s,algo=log", "1/1s,algo=log", false, 1e6},
		{"10/1h,burst=10", "36000/1h,burst=10", false, 1e5},
		{"10/1h,burst=10", "36000/1h,burst=10", true, 1e5},
		{"36000/1h,burst=10", "10/1h", false, 360e6},
		{"36000/1h,burst=10", "10/1h,burst=10", true, 360e6},
	} {
		for _, batched := range []bool{false, true} {
			t.Run(fmt.Sprint(test.from, " to ", test.to, " literals ", test.literals, " batched ", batched), func(t *testing.T) {
				c := newChanging(t)
				c.batched = batched
				name := "p"
				if test.literals {
					name = ""
				}
				keys := []string{"key", "twin", "asks"}
				c.add(name, "", test.from)
				all := c.limits[0].literal.Capacity()
				c.ask(all, cell.Take, false, keys...)
				c.ask(1, cell.Take, false, keys...)
				c.change(0, test.to)
				if a := c.take(1, "asks"); !a.Limited || a.RetryAfterNS != uint64(test.toldUS*us) {
					c.fail("told %v, want a retry after %d µs", &a, test.toldUS)
				}
				c.sleeper(1, "key", "twin")
				c.nowNS -= test.toldUS * us // once more, with a call in each tenth of that time
				for range 9 {
					c.pass(test.toldUS * us / 10)
					if a := c.take(1, "asks"); !a.Limited {
						c.fail("passes too soon")
					}
				}
				c.pass(test.toldUS * us / 10)
				if a := c.take(1, "asks"); a.Limited {
					c.fail("is limited, as it has asked meanwhile")
				}
			})
		}
	}
}

// A policy of several limits takes from all of them or from none. When it changes, a limit that stays alike keeps what was used of it. The
// others begin anew, also one that left and comes back.
func TestPlans(t *testing.T) {
	s := memory.New(memory.Options{})
	left := func(plan string, cost int64, want ...int64) {
		t.Helper()
		limits, err := policy.ParseLimits(plan)
		if err == nil {
			_, err = s.SetPolicy("gold", limits, policy.Options{})
		}
		if err != nil {
			t.Fatal(err)
		}
		var calls []store.Call
		for _, l := range s.PolicyNamed("gold").Limits {
			calls = append(calls, store.CallOf([]byte("k"), l))
		}
		if _, err := s.Take(calls, store.TakeOptions{Cost: cost}, memtest.At(t0)); err != nil {
			t.Fatal(err)
		}
		var got []int64
		for _, c := range calls {
			got = append(got, c.Decision.Remaining)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s leaves %d, want %d", plan, got, want)
		}
		memtest.MustAudit(t, s)
	}
	left("10/1m 100/1d", 4, 6, 96)
	left("10/1m 100/1d", 7, 6, 96) // denied by one, so nothing is taken
	left("100/1d 20/1m", 0, 96, 16)
	left("200/1d 20/1m,algo=log", 1, 195, 19)
	left("20/1m 200/1d", 0, 20, 195)
	left("100/1440m", 0, 95)
	left("3/1440m", 0, 0)
	left("100/1440m", 0, 95)
}
