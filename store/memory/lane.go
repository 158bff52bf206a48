package memory

import (
	"celld/store"
	"sync/atomic"
)

// lanes is how many callers count without sharing a cache line.
const lanes = 64

// lane has the counts of calls that took no lock. They mean what those of Stats do.
type lane struct {
	hits, changes atomic.Int64
	_             [48]byte // up to a cache line
}

// counts are those of one batch.
type counts struct{ hits, changes int64 }

func (c *counts) add(f *free) {
	c.hits++
	if f.passed {
		c.changes++
	}
}

func (s *Store) lane(a store.Access) *lane { return &s.lanes[a.Lane%lanes] }

func (l *lane) count(c counts) {
	if c.hits > 0 {
		l.hits.Add(c.hits)
	}
	if c.changes > 0 {
		l.changes.Add(c.changes)
	}
}
