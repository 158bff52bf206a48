package shard

import (
	"math"

	"celld/store/memory/table"
)

// Stats are counts since New, and gauges.
type Stats struct {
	Expired    int64 // keys removed because they were dead
	Evicted    int64 // live keys removed to make room
	Refused    int64 // changes for which there was no room
	Hits       int64 // keys that Get, Throttle, Take, Give and Limits found
	Misses     int64 // and did not find
	Changes    int64 // puts, calls that took, removals, and changes of settings
	Bytes      int64 // held, by the estimate of MaxBytes; a gauge, as are those below
	WithExpiry int64 // keys held whose ExpiryNS is not NoExpiry
	AvgTTLNS   int64 // of a sample of those, how long they have to live; 0 if there are none
	Probation  int64 // keys held that were seen once, or fell back: the first to be evicted
	Protected  int64 // keys held that were used again
}

// avgTTLSamples is how many keys of each shard the average TTL is taken from.
const avgTTLSamples = 16

// Stats adds up the shards, one after the other.
func (s *Shards) Stats(nowNS int64) Stats {
	st := Stats{Bytes: s.Room.Bytes.Load(), Changes: s.SettingChanges(), Refused: s.Room.refused.Load()}
	for i := range s.lanes {
		st.Hits += s.lanes[i].hits.Load()
		st.Changes += s.lanes[i].changes.Load()
	}
	var ttlNS, ttls float64 // a TAT may be 2^64 ns ahead
	for i := range s.All {
		sh := &s.All[i]
		sh.Lock(nowNS)
		st.Changes += sh.changes
		st.Expired += sh.Counters.expired
		st.Evicted += sh.Counters.Evicted
		st.Hits += sh.Counters.hits
		st.Misses += sh.Counters.misses
		st.WithExpiry += sh.InUse - sh.NoExpiry
		st.Probation += int64(sh.Lists.Of(table.Probation).Keys)
		st.Protected += int64(sh.Lists.Of(table.Protected).Keys)
		step := sh.Slabs.Top/avgTTLSamples + 1
		for place := uint32(0); place < sh.Slabs.Top; place += step {
			n, left := sh.Slabs.Next(place, PerLock)
			if left == 0 {
				continue
			}
			if e := sh.Slabs.At(n); !e.Has(table.FlagNoExpiry) && !sh.Dead(n, e, nowNS) {
				ttlNS += float64(sh.EndNS(n, e) - uint64(nowNS))
				ttls++
			}
		}
		sh.Unlock()
	}
	if mean := ttlNS / max(ttls, 1); mean < math.MaxInt64 {
		st.AvgTTLNS = int64(mean)
	} else {
		st.AvgTTLNS = math.MaxInt64
	}
	return st
}
