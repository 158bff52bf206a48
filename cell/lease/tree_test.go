package lease

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// newSet is a Set in words of its own.
func newSet() Set { return SetIn(new(uint64), new([]uint64)) }

// wantTrees holds the list and the three trees to what they promise, and returns how high the highest tree is.
func wantTrees(t rapid.TB, s Set) (height int) {
	t.Helper()
	var all []node
	before, free, links, total := node(0), 0, 0, uint64(0)
	for n := s.next(0); n != 0; n = s.next(n) {
		if s.previous(n) != before || before != 0 && s.expiry(n) < s.expiry(before) {
			t.Fatalf("%d is behind %d", n, before)
		}
		for link := s.firstLink(n); link != 0; link = s.next(link) {
			links++
		}
		all, before, total = append(all, n), n, total+s.cost(n)
	}
	for n := s.free(); n != 0; n = s.next(n) {
		free++
	}
	if s.previous(0) != before || s.inUse() != len(all)+links || s.used() != s.inUse()+free ||
		*s.ring != nil && (*s.ring)[totalWord] != total {
		t.Fatalf("%d leases, %d links and %d free; %d are in use of %d; they cost %d", len(all), links, free, s.inUse(), s.used(), total)
	}
	for _, in := range []tree{byExpiry, byID, byName} {
		before, want := node(0), slices.DeleteFunc(slices.Clone(all), func(n node) bool { return !s.hasTrees() || !s.isIn(in, n) })
		slices.SortStableFunc(want, func(a, b node) int { return new(s.key(in, a)).compare(new(s.key(in, b))) })
		var below func(n, up node) (height int, sum uint64)
		below = func(n, up node) (int, uint64) {
			if n == 0 {
				return 0, 0
			}
			if s.ref(in, n, above) != up {
				t.Fatalf("tree %d: %d is not below %d", in, n, up)
			}
			low, lowSum := below(s.ref(in, n, left), n)
			if len(want) == 0 || s.key(in, n) != s.key(in, want[0]) || in == byExpiry && n != want[0] {
				t.Fatalf("tree %d: %d is behind %d; then come %v", in, n, before, want)
			}
			before, want = n, want[1:]
			high, highSum := below(s.ref(in, n, right), n)
			if by := low - high; by < -1 || by > 1 || s.height(in, n) != 1+max(low, high) {
				t.Fatalf("tree %d: %d has heights of %d and %d below, and %d", in, n, low, high, s.height(in, n))
			}
			sum := lowSum + highSum + s.cost(n)
			if in == byExpiry && sum != s.sum(n) {
				t.Fatalf("%d sums up to %d, and says %d", n, sum, s.sum(n))
			}
			return 1 + max(low, high), sum
		}
		high, _ := below(s.root(in), 0)
		if height = max(height, high); len(want) > 0 {
			t.Fatalf("tree %d lacks %v", in, want)
		}
	}
	return height
}

func TestTreesStayBalanced(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSet()
		lastID := uint64(0)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			id := rapid.Uint64Range(0, lastID).Draw(t, "ID")
			end := rapid.Uint64Range(0, 50).Draw(t, "end")
			switch rapid.IntRange(0, 7).Draw(t, "step") {
			case 0:
				s.Drop(id, 0)
			case 1:
				s.Renew(id, end)
			case 2:
				if rapid.IntRange(0, 3).Draw(t, "end some") == 0 {
					for range s.DropExpired(int64(end)) { //nolint:revive // what is yielded does not matter
					}
				}
			case 3:
				by := rapid.Int64Range(-9, 9).Draw(t, "shift")
				s.Shift(func(ns uint64) uint64 { return uint64(max(0, int64(ns)+by)) })
			default:
				lastID++
				links := rapid.IntRange(0, 2).Draw(t, "links")
				s.Fit(1 + links)
				s.Add(Lease{ID: lastID, ExpiryNS: end, Cost: int64(end), Name: [2]uint64{id}})
				for range links {
					s.Add(Lease{ID: lastID, ExpiryNS: end, Link: true})
				}
			}
			wantTrees(t, s)
		}
	})
}

// Few leases are in no trees. More of them are, until all are gone.
func TestFewLeasesHaveNoTrees(t *testing.T) {
	s := newSet()
	for _, first := range []uint64{1, 101} {
		var all []Lease
		for id := first; id <= first+few; id++ {
			s.Fit(1)
			all = append(all, Lease{ID: id, ExpiryNS: 1, Cost: 1})
			s.Add(all[len(all)-1])
			if wantTrees(t, s); s.hasTrees() != (len(all) > few) {
				t.Fatalf("%d: %v", len(all), s.hasTrees())
			}
		}
		for _, l := range all {
			if !s.hasTrees() {
				t.Fatalf("%d to go: no trees", l.ID)
			}
			s.Drop(l.ID, 0)
			wantTrees(t, s)
		}
		for _, n := range []int{few, few + 1} {
			read := newSet()
			read.Fit(len(all))
			read.refill(all[:n])
			if wantTrees(t, read); read.hasTrees() != (n > few) {
				t.Fatalf("%d were read: %v", n, !(n > few))
			}
		}
	}
}

// With as many leases as a state may hold, none is more than 23 steps from a root, in whatever order they came and however they were
// renewed.
func TestNoLeaseIsFarFromTheRoot(t *testing.T) {
	orders := map[string]func(i uint64) uint64{
		"the later, the later it ends":  func(i uint64) uint64 { return i },
		"the later, the sooner it ends": func(i uint64) uint64 { return Max - i },
		"all end at one instant":        func(uint64) uint64 { return 7 },
		"in no order":                   func(i uint64) uint64 { return i * 0x9e3779b97f4a7c15 >> 40 },
	}
	for name, end := range orders {
		s := newSet()
		var all []Lease
		for i := range uint64(Max) {
			l := Lease{ID: 1 + i, ExpiryNS: 1 + end(i), Cost: 1, Name: [2]uint64{i * 0x9e3779b97f4a7c15, 1}}
			s.Fit(1)
			s.Add(l)
			all = append(all, l)
		}
		for i := uint64(0); i < Max; i += 3 {
			s.Renew(1+i, 1+end(i)/2)
			s.Drop(2+i, 0)
		}
		if height := wantTrees(t, s); height > 23 {
			t.Errorf("%s: %d steps", name, height)
		}
		slices.SortStableFunc(all, func(a, b Lease) int { return int(a.ExpiryNS) - int(b.ExpiryNS) })
		s.Fit(Max)
		s.refill(all)
		if height := wantTrees(t, s); height > 23 {
			t.Errorf("%s, read: %d steps", name, height)
		}
	}
}

// Where many leases have ended they are not looked for in the list, whose nodes lie in any order: 65,536 would take 17 ms.
func TestManyThatHaveEndedAreFoundInTheRing(t *testing.T) {
	for _, ended := range []uint64{Max / 64, Max / 4, Max} {
		s := newSet()
		for i := range uint64(Max) {
			s.Fit(1)
			s.Add(Lease{ID: 1 + i, ExpiryNS: 1 + i*0x9e3779b1%Max, Cost: int64(i), TakenNS: i})
		}
		var got []uint64
		for l := range s.DropExpired(int64(ended)) {
			if l.Cost != int64(l.TakenNS) {
				t.Fatalf("%+v, want a cost of %d", l, l.TakenNS)
			}
			got = append(got, l.TakenNS)
		}
		if len(got) != int(ended) || slices.IsSorted(got) != (ended > Max/16) {
			t.Errorf("%d ended, %d found; in the order of the ring: %v", ended, len(got), slices.IsSorted(got))
		}
	}
}

func BenchmarkLeases(b *testing.B) {
	for _, n := range []uint64{1, 10, 100, Max - 1} {
		s := newSet()
		for i := range n {
			s.Fit(2)
			s.Add(Lease{ID: 1 + i, ExpiryNS: i, Cost: 1, Name: [2]uint64{i * 0x9e3779b97f4a7c15, 1}})
		}
		next := n
		b.Run(fmt.Sprintf("renew the oldest of %d", n), func(b *testing.B) {
			for range b.N {
				s.Renew(s.id(s.next(0)), next)
				next++
			}
		})
		b.Run(fmt.Sprintf("take one of %d and release it", n), func(b *testing.B) {
			for range b.N {
				s.Fit(1)
				s.Add(Lease{ID: 1 + next, ExpiryNS: next, Cost: 1, Name: [2]uint64{next * 0x9e3779b97f4a7c15, 1}})
				s.Drop(s.id(s.next(0)), 0)
				next++
			}
		})
	}
}
