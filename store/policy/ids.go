package policy

import (
	"strconv"
	"sync"
)

// ids gives leases their IDs, which grow for ever: across restarts, and when the clock is set back. A file holds an ID above all that were
// given, so it is not written for each.
type ids struct {
	mu    sync.Mutex
	last  uint64
	saved uint64 // what files hold, or will hold
}

// idsAhead is how much higher that is: 10 s of the clock in µs.
const idsAhead = 10_000_000

// MostID is the highest ID to which a file, a client or an engine may raise the last one, of the year 2112. It leaves room for later IDs.
const MostID = 1 << 52

var idSetting = Setting{IDSetting, "id"}

// NextID returns an ID above all before: us, the µs since 1970, if that is.
func (s *Set) NextID(us int64) uint64 { return s.NextIDOf(us, 0, 1) }

// NextIDOf is NextID for one of several processes: an ID modulo processes, a power of two, is the process.
func (s *Set) NextIDOf(us int64, process, processes uint64) uint64 {
	s.ids.mu.Lock()
	defer s.ids.mu.Unlock()
	least := max(s.ids.last+1, uint64(max(us, 0)))
	s.ids.last = least + (process-least)&(processes-1)
	if s.ids.last > s.ids.saved {
		s.ids.saved = s.ids.last + idsAhead
		s.note(idSetting, nil)
	}
	return s.ids.last
}

// RaiseID makes all further IDs higher than that one. It ignores one above MostID, which was never given.
func (s *Set) RaiseID(id uint64) {
	s.ids.mu.Lock()
	defer s.ids.mu.Unlock()
	if id <= MostID && id > s.ids.last {
		s.ids.last = id
		if id > s.ids.saved {
			s.ids.saved = id
			s.note(idSetting, nil)
		}
	}
}

// LastID is the last ID that NextID has returned, or to which RaiseID has raised it.
func (s *Set) LastID() uint64 {
	s.ids.mu.Lock()
	defer s.ids.mu.Unlock()
	return s.ids.last
}

func (s *Set) savedID() (text string, ok bool) {
	s.ids.mu.Lock()
	defer s.ids.mu.Unlock()
	return strconv.FormatUint(s.ids.saved, 10), s.ids.saved > 0
}
