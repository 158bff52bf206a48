package memory

import "sync/atomic"

// lanes is how many callers count without sharing a cache line.
const lanes = 64

// lane has the counts of calls that took no lock. They mean what those of Stats do.
type lane struct {
	hits, changes atomic.Int64
	_             [48]byte // up to a cache line
}

// counts are those of one batch.
type counts struct{ hits, changes int64 }

func (l *lane) count(c counts) {
	if c.hits > 0 {
		l.hits.Add(c.hits)
	}
	if c.changes > 0 {
		l.changes.Add(c.changes)
	}
}
