package decisions

import "slices"

// Span is how far back a list looks, in slots of 10 s; Start is all the time.
type Span int64

const (
	Start      Span = 0
	Minute     Span = 6 // that is the last 60 to 70 seconds
	TenMinutes Span = 60
)

// slotNS is the time for which recent calls are counted together.
const slotNS = 10e9

// mostPast is how many keys of a slot that is over are kept. 16 lists of 20 keys take 25 KB, and 100 where all keys are long.
const mostPast = 20

// counts are those of a policy.
type counts struct {
	all  *sketch // since the start
	now  *sketch // in this slot
	past []past  // the oldest first; those of more than a minute ago are added up by minutes
}

// past is what came most often in slots that are over.
type past struct {
	slot  int64 // the last of them
	items []item
}

func newCounts() *counts { return &counts{all: newSketch(), now: newSketch()} }

func (c *counts) add(came item) {
	c.all.add(came)
	c.now.add(came)
}

// end ends a slot, as another begins.
func (c *counts) end(slot, next int64) {
	if len(c.now.items) > 0 {
		c.past = append(c.past, past{slot, kept(c.now.items)})
		c.now.clear()
	}
	c.past = slices.DeleteFunc(c.past, func(p past) bool { return p.slot < next-int64(TenMinutes) })
	for i := 0; i+1 < len(c.past); {
		a, b := &c.past[i], &c.past[i+1]
		if minute := int64(Minute); a.slot/minute != b.slot/minute || b.slot >= next-minute {
			i++
			continue
		}
		b.items = kept(sumOf(slices.Concat(a.items, b.items)))
		c.past = slices.Delete(c.past, i, i+1)
	}
}

// kept returns those that came most, without the memory of the others: with it, all counts took twice as much.
func kept(items []item) []item { return slices.Clone(firstOf(items, mostPast)) }

// sumOf adds up items of one key.
func sumOf(items []item) (sums []item) {
	for _, one := range items {
		if at := slices.IndexFunc(sums, func(of item) bool { return of.hash == one.hash }); at >= 0 {
			sums[at].count += one.count
		} else {
			sums = append(sums, one)
		}
	}
	return sums
}

// appendItems appends what came in the last time, before which slot has begun. A key may come several times.
func (c *counts) appendItems(items []item, last Span, slot int64) []item {
	if last == Start {
		return append(items, c.all.items...)
	}
	for _, p := range c.past {
		if p.slot >= slot-int64(last) {
			items = append(items, p.items...)
		}
	}
	return append(items, c.now.items...)
}
