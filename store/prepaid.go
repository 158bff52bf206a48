package store

import "errors"

// errNoRoom is that room must be found for what prepaid asks for. It stays inside.
var errNoRoom = errors.New("no room yet")

// prepaid is room that was claimed before the locks of several keys were taken, as none can be made under them: all that is
// needed at once, so that of two who wait for room none keeps what the other waits for.
type prepaid struct {
	need
	flushes uint64 // by then; a flush since makes it void
	asked   need   // the most that was needed and not there
}

func (n *need) add(m need) { n.keys, n.bytes = n.keys+m.keys, n.bytes+m.bytes }

// claim takes the room out of what was paid, and out of the store's what is lacking. If that is not there, nothing is taken.
func (p *prepaid) claim(s *Store, n need) bool {
	p.check(s)
	if !s.room.claim(need{max(0, n.keys-p.keys), max(0, n.bytes-p.bytes)}) {
		p.asked = need{max(n.keys, p.asked.keys), max(n.bytes, p.asked.bytes)}
		return false
	}
	p.keys, p.bytes = max(0, p.keys-n.keys), max(0, p.bytes-n.bytes)
	return true
}

// release gives back what has not been used. A lock is held.
func (p *prepaid) release(s *Store) {
	p.check(s)
	s.room.release(p.need)
	p.need = need{}
}

func (p *prepaid) check(s *Store) {
	if p.flushes != s.flushes.Load() {
		p.need = need{}
	}
}

// pay claims what was asked for, for which others may have to go. No lock is held but that of sh while it looks.
func (s *Store) pay(sh *shard, p *prepaid, nowNS int64) error {
	sh.lock(nowNS)
	defer sh.mu.Unlock()
	for {
		again, err := s.claim(sh, p.asked, nowNS)
		if err != nil {
			return err
		}
		if !again {
			p.need, p.flushes = p.asked, s.flushes.Load()
			return nil
		}
	}
}
