package policy

import (
	"strconv"
	"sync"
)

// ids are the IDs of leases, which grow for ever: across restarts, and when the clock is set back. A file has an ID that is higher
// than all that were given, so it need not be written with each.
type ids struct {
	mu    sync.Mutex
	last  uint64
	saved uint64 // what files have, or will have
}

// idsAhead is how much higher that is: 10 s of the clock in µs.
const idsAhead = 10_000_000

// MostID is the highest ID that a file, a client or an engine may raise the last one to, of the year 2112. It leaves room for those that
// follow.
const MostID = 1 << 52

var idSetting = Setting{IDSetting, "id"}

// NextID returns an ID that is higher than all before: the µs since 1970, if that is.
func (s *Set) NextID(us int64) uint64 { return s.NextIDOf(us, 0, 1) }

// NextIDOf is NextID for one of several processes, which is a power of two: an ID modulo their number is the process's.
func (s *Set) NextIDOf(us int64, process, processes uint64) uint64 {
	s.ids.mu.Lock()
	defer s.ids.mu.Unlock()
	least := max(s.ids.last+1, uint64(max(us, 0)))
	s.ids.last = least + (process-least)&(processes-1)
	if s.ids.last > s.ids.saved {
		s.ids.saved = s.ids.last + idsAhead
		s.note(idSetting, false)
	}
	return s.ids.last
}

// RaiseID makes all further IDs higher than that one, unless it is none that was ever given.
func (s *Set) RaiseID(id uint64) {
	s.ids.mu.Lock()
	defer s.ids.mu.Unlock()
	if id <= MostID && id > s.ids.last {
		s.ids.last = id
		if id > s.ids.saved {
			s.ids.saved = id
			s.note(idSetting, false)
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
