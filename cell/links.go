package cell

import "iter"

// AllLinks yields the names of the links of each lease that has some, as Links does for one. whole is false where links stand behind no
// lease of theirs, as they may in a text that somebody has written: another lease may come between them, or theirs may go without them.
func AllLinks(st *State) iter.Seq2[[][2]uint64, bool] {
	return func(yield func(names [][2]uint64, whole bool) bool) {
		r := leases{st}
		for n := r.first(); n != 0; n = r.next(byEnd, n) {
			var names [][2]uint64
			if r.isLink(n) {
				names = append(names, r.name(n))
			} else {
				for link := r.firstLink(n); link != 0; link = r.firstLink(link) {
					names = append(names, r.name(link))
				}
			}
			if len(names) > 0 && !yield(names, !r.isLink(n)) {
				return
			}
		}
	}
}
