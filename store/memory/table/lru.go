package table

// listName names the list that a slot is in, of a segmented LRU (Karedla, Love and Wherry, "Caching strategies to
// improve disk system performance", 1994).
type listName uint8

const (
	NoList    listName = iota
	Probation          // keys seen once, and those that fell back
	Protected          // keys used again: a flood of keys seen once does not reach them
)

// use is an order of use, the youngest first.
type use struct {
	first, Last uint32
	Keys        int
}

// lists are the two orders; the index is the listName less 1.
type lists [2]use

func (l *lists) Of(name listName) *use { return &l[name-1] }

// Push puts a slot that is in no list before all others of one.
func (l *lists) Push(s *slabs, name listName, n uint32, e *Slot) {
	u := l.Of(name)
	e.use = e.use&flagFirst | uint64(u.first)
	e.SetInfo(flagList, uint64(name)*flagProbation)
	if u.first != NoSlot {
		s.At(u.first).setYounger(n)
	} else {
		u.Last = n
	}
	u.first = n
	u.Keys++
}

// Pull takes a slot out of its list. Its links are left as they are.
func (l *lists) Pull(s *slabs, e *Slot) {
	u := l.Of(e.List())
	younger, older := e.younger(), e.Older()
	if younger != NoSlot {
		s.At(younger).setOlder(older)
	} else {
		u.first = older
	}
	if older != NoSlot {
		s.At(older).setYounger(younger)
	} else {
		u.Last = younger
	}
	u.Keys--
}

// Touch is a use of a key: one on probation becomes protected, any other the youngest of its list.
func (l *lists) Touch(s *slabs, n uint32, e *Slot) {
	name := e.List()
	if name == Probation {
		name = Protected
	} else if l.Of(name).first == n {
		return
	}
	l.Pull(s, e)
	l.Push(s, name, n, e)
}

// mostFallBack is how many keys fall back for each that goes.
const mostFallBack = 64

// Victim returns the slot that goes for another one: the last on probation. Before that, what is protected beyond 80 %
// of the keys falls back to the head of probation, 64 keys at most for each that goes.
//
// This is done here, not when a key becomes protected: the order matters only when a key must go, and most stores are never full. Done
// earlier, in a store whose keys are all in use, each hit would push another key out and touch four more cache lines.
func (l *lists) Victim(s *slabs) uint32 {
	unsure, sure := l.Of(Probation), l.Of(Protected)
	most := (unsure.Keys + sure.Keys) * 4 / 5
	for range min(sure.Keys-most, mostFallBack) {
		n := sure.Last
		e := s.At(n)
		l.Pull(s, e)
		l.Push(s, Probation, n, e)
	}
	if unsure.Last != NoSlot {
		return unsure.Last
	}
	return sure.Last
}
