package cell

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"sort"
)

// Lease is what was granted to somebody who has it until he gives it back, or until it ends.
type Lease struct {
	ID      uint64 // at most MaxLeaseID; 0: not known yet, see IdentifyLease
	EndNS   uint64 // Unix ns
	TakenNS uint64 // Unix ns; of a lease in a companion
	Cost    int64
	Bound   bool      // ends with the connection that has it
	Link    bool      // no lease of its own, but 16 bytes of what belongs to the lease before it, in Name
	Name    [2]uint64 // of its name; 0: it has none
}

// MaxLeases is the most leases that a state may hold: 3 MB of them, which a change moves in 0.1 ms.
const MaxLeases = 1 << 16

// MaxLeaseID is the highest ID, up to which a double is exact.
const MaxLeaseID = 1 << 53

// Leases lie in State.Ring in the order of their ends, without a gap: the first is at State.A>>32, and the lower half of State.A is
// how many there are. Each is six words. The second is the sum of all costs up to and with this lease, so a binary search finds
// when a call passes; State.B is the sum before the first.
//
// A state of leases is that of an algo=conc, or the companion of another limit's state: the leases that were taken from it. What ends
// there is given back to the limit by GiveBack.
type leases struct{ st *State }

const leaseWords = 6

// The words of a lease. Its name is the two from nameWord on.
const (
	endWord = iota
	sumWord
	idWord // ID<<2 | Link<<1 | Bound
	takenWord
	nameWord
)

func (r leases) n() int        { return int(uint32(r.st.A)) }
func (r leases) place() int    { return int(r.st.A >> 32) }
func (r leases) capacity() int { return len(r.st.Ring) / leaseWords }

func (r leases) set(place, n int) { r.st.A = uint64(place)<<32 | uint64(n) }

// word is a word of lease i. Lease 0 is the one that ends first.
func (r leases) word(i, word int) *uint64 { return &r.st.Ring[(r.place()+i)*leaseWords+word] }

func (r leases) end(i int) uint64  { return *r.word(i, endWord) }
func (r leases) id(i int) uint64   { return *r.word(i, idWord) >> 2 }
func (r leases) isLink(i int) bool { return *r.word(i, idWord)&2 != 0 }
func (r leases) name(i int) [2]uint64 {
	return [2]uint64{*r.word(i, nameWord), *r.word(i, nameWord+1)}
}

// sumBefore is the sum of all costs before lease i.
func (r leases) sumBefore(i int) uint64 {
	if i == 0 {
		return r.st.B
	}
	return *r.word(i-1, sumWord)
}

// lastEnd is when the last of all ends; 0: there is none.
func (r leases) lastEnd() uint64 {
	if r.n() == 0 {
		return 0
	}
	return r.end(r.n() - 1)
}

func (r leases) cost(i int) uint64 { return r.sumBefore(i+1) - r.sumBefore(i) }

func (r leases) lease(i int) Lease {
	flags := *r.word(i, idWord) & 3
	return Lease{
		ID: r.id(i), EndNS: r.end(i), TakenNS: *r.word(i, takenWord), Cost: int64(r.cost(i)),
		Bound: flags&1 != 0, Link: flags&2 != 0, Name: r.name(i),
	}
}

// firstAfter is the first lease that has not ended.
func (r leases) firstAfter(now uint64) int {
	return firstOf(0, r.n(), func(i int) bool { return r.end(i) > now })
}

// firstWithSum is the first lease at which the costs from lease i on reach sum.
func (r leases) firstWithSum(i int, sum uint64) int {
	before := r.sumBefore(i)
	return firstOf(i, r.n()-1, func(i int) bool { return *r.word(i, sumWord)-before >= sum })
}

// find returns where the lease of an ID is, or -1. Leases that all last as long end in the order of their IDs, so a binary search
// finds most of them. Where some were renewed, it may not find one, and then all are looked at: 10,000 in 10 µs.
func (r leases) find(id uint64) int {
	n := r.n()
	if i := sort.Search(n, func(i int) bool { return r.id(i) >= id }); i < n && r.id(i) == id && !r.isLink(i) {
		return i
	}
	for i := range n {
		if r.id(i) == id && !r.isLink(i) {
			return i
		}
	}
	return -1
}

// after is the place after lease i and its links.
func (r leases) after(i int) int {
	to, id := i+1, r.id(i)
	for to < r.n() && r.id(to) == id && r.isLink(to) {
		to++
	}
	return to
}

// dropFirst forgets the first i leases.
func (r leases) dropFirst(i int) {
	if i == 0 {
		return
	}
	r.st.B = r.sumBefore(i)
	if n := r.n() - i; n > 0 {
		r.set(r.place()+i, n)
	} else {
		r.set(0, 0)
	}
}

// drop forgets the leases from i up to to.
func (r leases) drop(i, to int) {
	if i == 0 {
		r.dropFirst(to)
		return
	}
	n, gone := r.n(), r.sumBefore(to)-r.sumBefore(i)
	for j := to; j < n; j++ {
		*r.word(j, sumWord) -= gone
	}
	from := r.place() * leaseWords
	ring := r.st.Ring[from : from+n*leaseWords]
	copy(ring[i*leaseWords:], ring[to*leaseWords:])
	r.set(r.place(), n-(to-i))
}

// add puts a lease behind all others that end no later. One of the same ID that ends at the same time becomes part of that.
// There must be room: see fit.
func (r leases) add(l Lease) {
	n := r.n()
	at := n
	if n > 0 && r.end(n-1) > l.EndNS {
		at = sort.Search(n, func(i int) bool { return r.end(i) > l.EndNS })
	}
	l.Cost = min(l.Cost, int64(mostUsed-(r.sumBefore(n)-r.st.B)))
	if at > 0 && !l.Link && r.end(at-1) == l.EndNS && r.id(at-1) == l.ID && !r.isLink(at-1) {
		for i := at - 1; i < n; i++ {
			*r.word(i, sumWord) += uint64(l.Cost)
		}
		return
	}
	r.insert(at, l)
}

// insert puts a lease before lease at.
func (r leases) insert(at int, l Lease) {
	n, cost := r.n(), uint64(l.Cost)
	if r.place()+n == r.capacity() {
		copy(r.st.Ring, r.st.Ring[r.place()*leaseWords:])
		r.set(0, n)
	}
	before := r.sumBefore(at)
	r.set(r.place(), n+1)
	from := r.place() * leaseWords
	ring := r.st.Ring[from : from+(n+1)*leaseWords]
	copy(ring[(at+1)*leaseWords:], ring[at*leaseWords:])
	for i := at + 1; i <= n; i++ {
		*r.word(i, sumWord) += cost
	}
	*r.word(at, endWord), *r.word(at, sumWord), *r.word(at, takenWord) = l.EndNS, before+cost, l.TakenNS
	r.identify(at, l)
}

// identify sets all of a lease but its time and its cost.
func (r leases) identify(i int, l Lease) {
	id := l.ID << 2
	if l.Bound {
		id |= 1
	}
	if l.Link {
		id |= 2
	}
	*r.word(i, idWord), *r.word(i, nameWord), *r.word(i, nameWord+1) = id, l.Name[0], l.Name[1]
}

// fit doubles the ring unless there is room for so many more. It returns by how many words the ring has grown.
func (r leases) fit(more int) (words int) {
	if r.fits(more) {
		return 0
	}
	n, place := r.n(), r.place()
	ring := make([]uint64, max(2*n, n+more)*leaseWords)
	copy(ring, r.st.Ring[place*leaseWords:(place+n)*leaseWords])
	words = len(ring) - len(r.st.Ring)
	r.st.Ring = ring
	r.set(0, n)
	return words
}

// fits reports whether there is room behind the last lease, or so much before the first that it is worth it to move all of them.
func (r leases) fits(more int) bool {
	free := r.capacity() - r.n()
	return r.place()+r.n()+more <= r.capacity() || more <= free && 4*r.place() >= r.capacity()
}

// AddLease adds a lease to a state of leases. FitLeases must have made room.
func AddLease(st *State, l Lease) { leases{st}.add(l) }

// FitLeases makes room in a state of leases for so many more, and returns by how many words the ring has grown.
func FitLeases(st *State, more int) (words int) { return leases{st}.fit(more) }

// Leases is how many leases and links a state of leases has, with those that have ended and are still there.
func Leases(st *State) int { return leases{st}.n() }

// Leased is the sum of the costs of the leases of a state.
func Leased(st *State) int64 {
	r := leases{st}
	return int64(r.sumBefore(r.n()) - st.B)
}

// IdentifyLease says whose lease it is that Decide has just added to a limit of algo=conc. Only what is neither time nor cost is
// taken from l. It does nothing where there is none.
func (l *Limit) IdentifyLease(st *State, nowNS int64, lease Lease) {
	r := leases{st}
	end := uint64(nowNS + l.PeriodNS)
	if i := sort.Search(r.n(), func(i int) bool { return r.end(i) > end }) - 1; i >= 0 && r.end(i) == end && r.id(i) == 0 {
		r.identify(i, lease)
	}
}

// FindLease returns the lease of an ID that has not ended.
func FindLease(st *State, id uint64, nowNS int64) (Lease, bool) {
	r := leases{st}
	if i := r.find(id); i >= 0 && r.end(i) > uint64(nowNS) {
		return r.lease(i), true
	}
	return Lease{}, false
}

// FindNamed returns the lease of a name that has not ended.
func FindNamed(st *State, name [2]uint64, nowNS int64) (Lease, bool) {
	r := leases{st}
	for i := r.firstAfter(uint64(nowNS)); i < r.n(); i++ {
		if r.name(i) == name && !r.isLink(i) {
			return r.lease(i), true
		}
	}
	return Lease{}, false
}

// Links yields the names of the links of a lease, in the order in which they were added.
func Links(st *State, id uint64, yield func([2]uint64)) {
	r := leases{st}
	i := r.find(id)
	if i < 0 {
		return
	}
	for j := i + 1; j < r.after(i); j++ {
		yield(r.name(j))
	}
}

// HighestLease is the highest ID in a state of leases; 0: it has none.
func HighestLease(st *State) (id uint64) {
	r := leases{st}
	for i := range r.n() {
		id = max(id, r.id(i))
	}
	return id
}

// DropLease removes a lease and its links, and reports whether it was there.
func DropLease(st *State, id uint64) bool {
	r := leases{st}
	i := r.find(id)
	if i >= 0 {
		r.drop(i, r.after(i))
	}
	return i >= 0
}

// Due reports whether a state of leases has one that has ended.
func Due(st *State, nowNS int64) bool {
	r := leases{st}
	return r.n() > 0 && r.end(0) <= uint64(nowNS)
}

// NextDue is when the next lease ends, in Unix ns; math.MaxInt64 if there is none.
func NextDue(st *State) int64 {
	r := leases{st}
	if r.n() == 0 {
		return math.MaxInt64
	}
	return int64(min(r.end(0), math.MaxInt64))
}

// DropDue yields the leases that have ended, the first first, and removes all of them.
func DropDue(st *State, nowNS int64) iter.Seq[Lease] {
	return func(yield func(Lease) bool) {
		r := leases{st}
		due := r.firstAfter(uint64(nowNS))
		for i := 0; i < due; i++ {
			if !r.isLink(i) && !yield(r.lease(i)) {
				break
			}
		}
		r.dropFirst(due)
	}
}

// RenewLease has a lease and its links end at another time, in Unix ns, and reports whether it was there.
func RenewLease(st *State, id, endNS uint64) bool {
	r := leases{st}
	i := r.find(id)
	if i < 0 {
		return false
	}
	all := make([]Lease, 0, 1)
	for j := i; j < r.after(i); j++ {
		l := r.lease(j)
		l.EndNS = endNS
		all = append(all, l)
	}
	r.drop(i, i+len(all))
	for _, l := range all {
		r.add(l)
	}
	return true
}

// EndBound has all leases end that are bound, as their connections are gone.
func EndBound(st *State) {
	r := leases{st}
	all := make([]Lease, r.n())
	some, bound := false, false
	for i := range all {
		if all[i] = r.lease(i); !all[i].Link {
			bound = all[i].Bound
		}
		if bound {
			all[i].EndNS = min(all[i].EndNS, 1)
			some = true
		}
	}
	if !some {
		return
	}
	slices.SortStableFunc(all, func(a, b Lease) int { return cmp.Compare(a.EndNS, b.EndNS) })
	r.set(0, 0)
	st.B = 0
	for _, l := range all {
		r.add(l)
	}
}

func (r leases) shift(ns int64) {
	for i := range r.n() {
		for _, word := range []int{endWord, takenWord} {
			*r.word(i, word) = ShiftInstant(*r.word(i, word), ns)
		}
	}
}
