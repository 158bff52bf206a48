package waiting

import (
	"cmp"
	"maps"
	"slices"
)

// Line holds those who wait for a state, first come first served. Its zero value is empty.
type Line[W Member[W]] struct {
	Waiters []W
}

// First is who comes next; nil: nobody waits.
func (l *Line[W]) First() (first W) {
	if len(l.Waiters) > 0 {
		first = l.Waiters[0]
	}
	return first
}

// Callers is how many callers wait in the line, with those who have joined others.
func (l *Line[W]) Callers() (n int64) {
	for _, as := range l.Waiters {
		w := as.waiter()
		n += int64(len(w.Followers))
		if w.Waker != nil { // else it is a reservation, whose caller has been answered
			n++
		}
	}
	return n
}

// Insert puts a waiter where its ticket belongs, but behind the first waiters, as many as behind says. It returns the place.
func (l *Line[W]) Insert(as W, behind int) (at int) {
	for at = len(l.Waiters); at > behind && l.Waiters[at-1].waiter().Ticket > as.waiter().Ticket; {
		at--
	}
	l.Waiters = slices.Insert(l.Waiters, at, as)
	return at
}

// Remove takes a waiter out, and returns the place where it stood.
func (l *Line[W]) Remove(as W) (at int) {
	if at = l.Index(as); at > 0 {
		l.Waiters = slices.Delete(l.Waiters, at, at+1)
		return at
	}
	clear(l.Waiters[:1])
	l.Waiters = l.Waiters[1:] // the others stay where they are: thousands may be served in a row
	return at
}

// Replace puts another waiter in the place of one.
func (l *Line[W]) Replace(as, by W) { l.Waiters[l.Index(as)] = by }

// Index is the place of a waiter that stands in the Line.
func (l *Line[W]) Index(as W) int {
	at, _ := slices.BinarySearchFunc(l.Waiters, as.waiter().Ticket,
		func(w W, ticket uint64) int { return cmp.Compare(w.waiter().Ticket, ticket) })
	if at < len(l.Waiters) && l.Waiters[at] == as {
		return at
	}
	return slices.Index(l.Waiters, as) // it was put behind others with later tickets
}

// Lines are the lines of each key: one for each of its states that somebody waits for. The zero value is empty.
type Lines[L comparable] struct {
	OfKey map[string][]L
}

// Add adds a line of a key, and reports whether it is the only one.
func (m *Lines[L]) Add(key string, l L) (only bool) {
	if m.OfKey == nil {
		m.OfKey = make(map[string][]L)
	}
	m.OfKey[key] = append(m.OfKey[key], l)
	return len(m.OfKey[key]) == 1
}

// Find is the line of a key of which is reports true, the zero value if there is none.
func (m *Lines[L]) Find(key []byte, is func(L) bool) (found L) {
	of := m.OfKey[string(key)]
	if at := slices.IndexFunc(of, is); at >= 0 {
		found = of[at]
	}
	return found
}

// All are the lines of all keys as they are now.
func (m *Lines[L]) All() []L { return slices.Concat(slices.Collect(maps.Values(m.OfKey))...) }

// Remove removes a line of a key, and reports whether it was the last.
func (m *Lines[L]) Remove(key string, l L) (last bool) {
	left := slices.DeleteFunc(m.OfKey[key], func(o L) bool { return o == l })
	if len(left) > 0 {
		m.OfKey[key] = left
		return false
	}
	delete(m.OfKey, key)
	return true
}
