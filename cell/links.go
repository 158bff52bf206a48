package cell

import "iter"

// Links are the names of the links of a lease that has not ended, in the order in which they were added.
func Links(st *State, id uint64, nowNS int64) (names [][2]uint64, found bool) {
	r := leases{st}
	n := r.find(byID, [2]uint64{id}, r.afterNS(nowNS))
	return r.linksOf(n), n != 0
}

// AllLinks yields the names of the links of each lease that has some, as Links does for one. whole is false where links stand behind no
// lease of theirs, as they may in a text that somebody has written: another lease may come between them, or theirs may go without them.
func AllLinks(st *State) iter.Seq2[[][2]uint64, bool] {
	return func(yield func(names [][2]uint64, whole bool) bool) {
		r := leases{st}
		for n := r.first(); n != 0; n = r.next(n) {
			names := r.linksOf(n)
			if r.isLink(n) {
				names = [][2]uint64{r.name(n)}
			}
			if len(names) > 0 && !yield(names, !r.isLink(n)) {
				return
			}
		}
	}
}

func (r leases) linksOf(n node) (names [][2]uint64) {
	for link := r.firstLink(n); link != 0; link = r.next(link) {
		names = append(names, r.name(link))
	}
	return names
}
