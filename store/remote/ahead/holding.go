package ahead

import (
	"slices"
	"time"

	"celld/store/remote/link"
)

// holding is the units of a key, all for the same ask. Its shard's lock guards it.
type holding struct {
	ahead    *Ahead
	shard    *shard
	key      []byte
	hash     uint64
	name     string // of the key on the engine
	ask      ask
	clock    *link.Clock
	portions []portion // the oldest first
	nowNS    int64     // the latest limit time at which units were used
	asking   bool      // a request for more is under way
	again    time.Time // nothing was granted, and it does not ask before
	gone     bool
	timer    *time.Timer // of the first portion that ends; nil: there was none yet
}

// portion is units that were taken together.
type portion struct {
	Grant
	left int64
}

// portionFor is one that has units for a call of a cost now, when the engine's time is upperNS at most; nil: there is none.
func (held *holding) portionFor(cost int64, now time.Time, upperNS int64) *portion {
	for i := range held.portions {
		if p := &held.portions[i]; p.left >= cost && now.Before(p.end) && upperNS < p.endNS {
			return p
		}
	}
	return nil
}

// good reports whether the next units for a cost would pass now by themselves.
func (p *portion) good(cost, nowNS int64) bool {
	for _, b := range p.buckets {
		if b.tatNS-uint64((p.left-cost)*b.intervalNS) > uint64(nowNS+b.toleranceNS) {
			return false
		}
	}
	return true
}

func (held *holding) left() (n int64) {
	for i := range held.portions {
		n += held.portions[i].left
	}
	return n
}

// renews reports whether it asks for more now, with a call that the engine decides or, if used, by itself.
func (held *holding) renews(now time.Time, used bool) bool {
	if held.asking || used && now.Before(held.again) {
		return false
	}
	if !used { // what is held may be too little for a call that costs more
		return !slices.ContainsFunc(held.portions, func(p portion) bool { return p.left > 0 && now.Before(p.end) })
	}
	if len(held.portions) == 0 {
		return true
	}
	last := held.portions[len(held.portions)-1].n
	return last >= leastRenewed && held.left()*renewAt <= last
}

// nearNS is how much later than at once a unit of a bucket may become good that is taken: where nobody else takes, as one that no call uses
// goes back.
func (t *heat) nearNS(lasts time.Duration) int64 {
	if t.alone {
		return int64(lasts / 2)
	}
	return 0
}

// want is how many units to ask for, where so many calls have passed lately in an interval H: for 3/4 of these, so that they are used up
// before they end. Of a bucket from which so little is taken that what is left flows back soon, they are for twice as many, and nothing
// goes back: with 100 keys, each asked 30 times a second, and 100 ms, half of the requests gave back one unit of a bucket that was nearly
// full.
func (t *heat) want(lately counts) int64 {
	passed := lately.passed
	if t.short {
		passed = max(passed, lately.calls*2/3) // more would pass
	}
	return max(1, (passed*portionOf4+3)/4, min(2*passed, t.flows))
}

// The next portion comes with the next call that the engine decides. For one of leastRenewed, a request without a call asks for it when an
// eighth is left, so that no call waits. What is left of the last portion when an eighth of its time remains goes back, unless it flows
// back.
const (
	portionOf4   = 3
	leastRenewed = 8
	renewAt      = 8
	giveBackAt   = 8
)

// add adds what was granted. What this process holds of earlier portions is not used yet, so replies leave it out.
func (held *holding) add(g *Grant) {
	h := held.ahead
	g.show(h.table)
	if left := held.left(); left > 0 {
		g.giveAll(h.table, left)
	}
	held.portions = append(held.portions, portion{*g, g.n})
	held.nowNS = max(held.nowNS, g.nowNS)
	held.clock = h.Clock(held.name) // a Cluster may have moved the key
	if held.timer == nil {
		held.timer = time.AfterFunc(held.next(time.Now()), held.endSome)
	}
}

// next is how long until the first portion ends or, if what is left then goes back, until an eighth of its time is left. Where this
// process holds units of many keys, it comes up to an eighth earlier, at the same moment for many of them: see more.
func (held *holding) next(now time.Time) time.Duration {
	p := &held.portions[0]
	part := max(1, time.Duration(p.endNS-p.nowNS)/giveBackAt)
	due := p.end.Sub(held.ahead.since)
	if p.flows() == 0 {
		due -= part
	}
	if held.ahead.many() {
		due -= due % part
	}
	return due - now.Sub(held.ahead.since)
}

// endSome ends the portions whose time has come. What is left of the last goes back, unless it flows back, with a request for more where
// calls have used some. One that is not the last does not go back, nor one of a bucket from which others take: the bucket would not take
// it, and a key that is asked so often would cost the engine a request each time.
func (held *holding) endSome() {
	held.shard.mu.Lock()
	var last portion
	var more *Grant
	for len(held.portions) > 0 && held.next(time.Now()) <= 0 {
		held.ahead.Counts.Ended.Add(last.left)
		last, held.portions = held.portions[0], held.portions[1:]
	}
	t := held.shard.heatOf(held.hash)
	shared := len(last.buckets) > 0 && held.ask.scripted() && t.hash == held.hash && !t.alone
	if len(held.portions) > 0 || shared || last.of != nil && last.flows() > 0 {
		held.ahead.Counts.Ended.Add(last.left)
		last.left = 0
	}
	switch {
	case held.gone:
	case len(held.portions) > 0:
		held.timer.Reset(max(held.next(time.Now()), 0))
	default:
		if held.timer = nil; !held.asking {
			more = held.more(&last)
		}
		if !held.asking {
			held.remove()
		}
	}
	held.shard.mu.Unlock()
	if more != nil {
		held.ahead.Renew(more)
	} else {
		last.giveBack()
	}
}

// more is a request for units for the calls that are likely to come after a portion, and returns what is left of that. nil: the next call
// asks. It is sent where a request is sent anyway, or where many keys send theirs together. With 100 keys, each asked 30 times a second,
// the engine then reads from its connections 620 times a second, and not 1,300 times.
func (held *holding) more(last *portion) *Grant {
	t, lasts := held.shard.heatOf(held.hash), held.ahead.lasts(&held.ask)
	nowNS, known := held.clock.Lower()
	used := last.of != nil && last.left < last.n && (last.left > 0 || held.ahead.many())
	if !known || lasts == 0 || !used || !held.ask.scripted() || t.hash != held.hash || t.crowded() {
		return nil
	}
	g := held.request(t.note(held.hash, nowNS, lasts, 0), last.cost, lasts)
	if last.left > 0 {
		g.returns = last
	}
	return g
}

// request is one for units.
func (held *holding) request(lately counts, cost int64, lasts time.Duration) *Grant {
	held.asking = true
	t := held.shard.heatOf(held.hash)
	g := &Grant{of: held, want: t.want(lately), asked: lately.calls, cost: cost, lasts: lasts, nearNS: t.nearNS(lasts)}
	if held.ask.scripted() && (g.window() != nil || t.alone) { // what is left goes back with the next request
		g.want = max(g.want, lately.passed*5/4)
	}
	return g
}

// end forgets the key, and returns what was held of it.
func (held *holding) end() (portions []portion) {
	portions, held.portions = held.portions, nil
	held.remove()
	return portions
}

// remove forgets the key. It may become hot again.
func (held *holding) remove() {
	held.gone = true
	delete(held.shard.keys, string(held.key))
	held.ahead.held.Add(-1)
	held.ahead.table.Delete(held.key, held.nowNS)
}

// heat counts the calls of a key. Where two keys share one, each takes it from the other, and neither is hot.
type heat struct {
	hash          uint64
	sinceNS       int64
	calls, before counts // from since on, and in the interval before that
	alone         bool   // nobody else had taken from the bucket when the last request for units was answered
	short         bool   // fewer units were granted than asked for
	flows         int64  // of the units that it has granted: see Grant.flows
}

// counts are how many have come, and what those have cost that have passed.
type counts struct{ calls, passed int64 }

// crowded reports whether several instances ask for more than a bucket has.
func (t *heat) crowded() bool { return t.short && !t.alone }

// note counts calls, and returns what has come lately in an interval of that length.
func (t *heat) note(hash uint64, nowNS int64, lasts time.Duration, calls int64) (lately counts) {
	switch passed := time.Duration(nowNS - t.sinceNS); {
	case t.hash != hash || passed >= 2*lasts || passed < 0:
		*t = heat{hash: hash, sinceNS: nowNS}
	case passed >= lasts:
		t.before, t.calls, t.sinceNS = t.calls, counts{}, t.sinceNS+int64(lasts)
	}
	t.calls.calls += calls
	share := float64(int64(lasts)-(nowNS-t.sinceNS)) / float64(lasts)
	lately.calls = t.calls.calls + int64(share*float64(t.before.calls))
	lately.passed = t.calls.passed + int64(share*float64(t.before.passed))
	return lately
}

// pass counts what has passed.
func (t *heat) pass(hash uint64, cost int64) {
	if t.hash == hash {
		t.calls.passed += cost
	}
}

// hot is how many calls of a key have come lately where units are taken for it. They come with the request of a call, so they cost the
// engine nothing.
const hot = 2
