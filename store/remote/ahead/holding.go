package ahead

import (
	"time"

	"celld/store/remote/link"
)

// holding is the units of a key, all for the same ask. Its shard's lock guards it.
type holding struct {
	ahead    *Ahead
	shard    *shard
	key      []byte
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
	grant
	left int64
}

// portionFor is one that has units for a call of a cost now, when the engine's time is between these; nil: there is none.
func (held *holding) portionFor(cost int64, now time.Time, lowerNS, upperNS int64) *portion {
	for i := range held.portions {
		if p := &held.portions[i]; p.left >= cost && now.Before(p.end) && upperNS < p.endNS {
			if p.good(cost, lowerNS) {
				return p
			}
			return nil
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

// renews reports whether it asks for more now: before the last unit is used, so that no call waits for the answer.
func (held *holding) renews(now time.Time) bool {
	if held.asking || now.Before(held.again) || len(held.portions) == 0 {
		return false
	}
	return held.left()*renewAt <= held.portions[len(held.portions)-1].n
}

// A portion is for 5/8 of the calls that an interval H brings at the present rate, and the next is asked for when a quarter of it is left.
// What is left when an eighth of H remains goes back.
const (
	portionOf8 = 5
	renewAt    = 4
	giveBackAt = 8
)

// add adds what was granted. What this process holds of earlier portions is not used yet, so replies leave it out.
func (held *holding) add(g *grant) {
	h := held.ahead
	g.show(h.table, held)
	if left := held.left(); left > 0 {
		g.giveAll(h.table, held, left, g.nowNS)
	}
	held.portions = append(held.portions, portion{*g, g.n})
	held.nowNS = max(held.nowNS, g.nowNS)
	if held.timer == nil {
		held.timer = time.AfterFunc(held.next(time.Now()), held.endSome)
	}
}

// next is how long until what is left of the first portion goes back.
func (held *holding) next(now time.Time) time.Duration {
	p := &held.portions[0]
	return p.end.Add(-p.lasts / giveBackAt).Sub(now)
}

// endSome ends the portions whose time has come.
func (held *holding) endSome() {
	held.shard.mu.Lock()
	var ended []portion
	for len(held.portions) > 0 && held.next(time.Now()) <= 0 {
		ended, held.portions = append(ended, held.portions[0]), held.portions[1:]
	}
	switch {
	case held.gone:
	case len(held.portions) > 0:
		held.timer.Reset(max(held.next(time.Now()), 0))
	default:
		if held.timer = nil; !held.asking {
			held.remove()
		}
	}
	held.shard.mu.Unlock()
	held.giveBack(ended)
}

// remove forgets the key. It may become hot again.
func (held *holding) remove() {
	held.gone = true
	delete(held.shard.keys, string(held.key))
	held.ahead.table.Delete(held.key, held.nowNS)
}

// heat counts the calls of a key. Where two keys share one, each takes it from the other, and neither is hot.
type heat struct {
	hash          uint64
	since         time.Time
	calls, before counts // from since on, and in the interval before that
}

type counts struct{ calls, units int64 }

// note counts a call, and returns what has come lately in an interval of that length.
func (t *heat) note(hash uint64, now time.Time, lasts time.Duration, cost int64) (lately counts) {
	switch passed := now.Sub(t.since); {
	case t.hash != hash || passed >= 2*lasts:
		*t = heat{hash: hash, since: now}
	case passed >= lasts:
		t.before, t.calls, t.since = t.calls, counts{}, t.since.Add(lasts)
	}
	t.calls.calls++
	t.calls.units += cost
	share := float64(lasts-now.Sub(t.since)) / float64(lasts)
	lately.calls = t.calls.calls + int64(share*float64(t.before.calls))
	lately.units = t.calls.units + int64(share*float64(t.before.units))
	return lately
}

// hot is how many calls of a key have come lately where units are taken for it.
const hot = 3
