package store

import "celld/cell"

// Throttle decides on a call under the key and remembers it. The error is a *cell.RangeError for the quantity, or
// ErrFull for a new key; then nothing has been stored.
//
// An allowed call of a quantity other than 0 puts the new TAT, with the expiry AtTAT whatever it was before, as
// redis-cell's SET does. A refund up to full deletes the key, and never creates one. Any other call changes nothing but
// the order of use. It allocates nothing for a key that is there.
func (s *Store) Throttle(key []byte, l cell.Limit, quantity int64, a Access) (cell.Decision, error) {
	sh := s.shardOf(key)
	sh.lock(a.NowNS)
	defer sh.mu.Unlock()
	e := sh.find(key, a)
	sh.countLookup(e)
	for {
		var tat uint64
		if e != nil && !e.spent {
			tat = e.tat
		}
		next, d, err := l.Throttle(tat, a.NowNS, quantity)
		if err != nil || d.Limited || quantity == 0 {
			return d, err
		}
		full := next <= uint64(a.NowNS)
		switch {
		case full && e != nil:
			sh.remove(e)
			return d, nil
		case full:
			return d, nil
		case e != nil:
			sh.set(e, State{TAT: next}, false)
			return d, nil
		}
		again, err := s.claim(sh, costBytes(len(key)), a.NowNS)
		if err != nil {
			return cell.Decision{}, err
		}
		if !again {
			sh.link(string(key), State{TAT: next}, false, a.NowNS)
			return d, nil
		}
		e = sh.find(key, a)
	}
}
