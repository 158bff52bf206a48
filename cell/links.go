package cell

import "iter"

// AllLinks yields the names of the links of each lease that has some, as Links does for one. whole is false where they do not stand right
// behind their lease, or do not end with it: another lease may come between them, or theirs may go without them.
func AllLinks(st *State) iter.Seq2[[][2]uint64, bool] {
	return func(yield func(names [][2]uint64, whole bool) bool) {
		r := leases{st}
		for i := 0; i < r.n(); {
			if !r.isLink(i) {
				i++
				continue
			}
			first, to := max(i-1, 0), r.after(i)
			names := make([][2]uint64, 0, to-i)
			for j := i; j < to; j++ {
				names = append(names, r.name(j))
			}
			whole := !r.isLink(first) && r.id(first) == r.id(i) && r.end(first) == r.end(to-1)
			if !yield(names, whole) {
				return
			}
			i = to
		}
	}
}
