package memory

// listName names the list that a slot is in, of a segmented LRU (Karedla, Love and Wherry, "Caching strategies to
// improve disk system performance", 1994).
type listName uint8

const (
	freeList  listName = iota
	probation          // keys seen once, and those that fell back
	protected          // keys used again: a flood of keys seen once does not reach them
	spentList          // keys that hold no limit
)

// use is an order of use, the youngest first.
type use struct {
	first, last uint32
	keys        int
}

// lists are the three orders; the index is the listName less 1.
type lists [3]use

func (l *lists) of(name listName) *use { return &l[name-1] }

// push puts a slot that is in no list before all others of one.
func (l *lists) push(s *slabs, name listName, n uint32, e *slot) {
	u := l.of(name)
	e.use = e.use&flagFirst | uint64(u.first)
	e.setInfo(flagList, uint64(name)*flagProbation)
	if u.first != noSlot {
		s.at(u.first).setYounger(n)
	} else {
		u.last = n
	}
	u.first = n
	u.keys++
}

// pull takes a slot out of its list. Its links are left as they are.
func (l *lists) pull(s *slabs, e *slot) {
	u := l.of(e.list())
	younger, older := e.younger(), e.older()
	if younger != noSlot {
		s.at(younger).setOlder(older)
	} else {
		u.first = older
	}
	if older != noSlot {
		s.at(older).setYounger(younger)
	} else {
		u.last = younger
	}
	u.keys--
}

// touch is a use of a key: one on probation becomes protected, any other the youngest of its list.
func (l *lists) touch(s *slabs, n uint32, e *slot) {
	name := e.list()
	if name == probation {
		name = protected
	} else if l.of(name).first == n {
		return
	}
	l.pull(s, e)
	l.push(s, name, n, e)
}

// victim returns the slot that goes for another one: the last on probation. Before that, what is protected beyond 80 %
// of the keys falls back to the head of probation, 64 keys at most for each that goes.
//
// It is done here and not when a key becomes protected, as until a key must go the order tells nothing, and most
// stores never are full: in one where all keys are in use, every hit would then push another key out and touch four
// more cache lines.
func (l *lists) victim(s *slabs) uint32 {
	unsure, sure := l.of(probation), l.of(protected)
	most := (unsure.keys + sure.keys + l.of(spentList).keys) * 4 / 5
	for range min(sure.keys-most, perLock) {
		n := sure.last
		e := s.at(n)
		l.pull(s, e)
		l.push(s, probation, n, e)
	}
	if unsure.last != noSlot {
		return unsure.last
	}
	if sure.last != noSlot {
		return sure.last
	}
	return l.of(spentList).last
}
