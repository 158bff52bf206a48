package cell

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// wantTrees holds the list and the three trees to what they promise, and returns how high the highest tree is.
func wantTrees(t rapid.TB, st *State) (height int) {
	t.Helper()
	r := leases{st}
	var all []node
	before, free, links, total := node(0), 0, 0, uint64(0)
	for n := r.next(0); n != 0; n = r.next(n) {
		if r.previous(n) != before || before != 0 && r.end(n) < r.end(before) {
			t.Fatalf("%d is behind %d", n, before)
		}
		for link := r.firstLink(n); link != 0; link = r.next(link) {
			links++
		}
		all, before, total = append(all, n), n, total+r.cost(n)
	}
	for n := r.free(); n != 0; n = r.next(n) {
		free++
	}
	if r.previous(0) != before || r.inUse() != len(all)+links || r.used() != r.inUse()+free || st.Ring != nil && st.Ring[totalWord] != total {
		t.Fatalf("%d leases, %d links and %d free; %d are in use of %d; they cost %d", len(all), links, free, r.inUse(), r.used(), total)
	}
	for _, in := range []tree{byEnd, byID, byName} {
		before, want := node(0), slices.DeleteFunc(slices.Clone(all), func(n node) bool { return !r.hasTrees() || !r.isIn(in, n) })
		slices.SortStableFunc(want, func(a, b node) int { return new(r.key(in, a)).compare(new(r.key(in, b))) })
		var below func(n, up node) (height int, sum uint64)
		below = func(n, up node) (int, uint64) {
			if n == 0 {
				return 0, 0
			}
			if r.ref(in, n, above) != up {
				t.Fatalf("tree %d: %d is not below %d", in, n, up)
			}
			low, lowSum := below(r.ref(in, n, left), n)
			if len(want) == 0 || r.key(in, n) != r.key(in, want[0]) || in == byEnd && n != want[0] {
				t.Fatalf("tree %d: %d is behind %d; then come %v", in, n, before, want)
			}
			before, want = n, want[1:]
			high, highSum := below(r.ref(in, n, right), n)
			if by := low - high; by < -1 || by > 1 || r.height(in, n) != 1+max(low, high) {
				t.Fatalf("tree %d: %d has heights of %d and %d below, and %d", in, n, low, high, r.height(in, n))
			}
			sum := lowSum + highSum + r.cost(n)
			if in == byEnd && sum != r.sum(n) {
				t.Fatalf("%d sums up to %d, and says %d", n, sum, r.sum(n))
			}
			return 1 + max(low, high), sum
		}
		high, _ := below(r.root(in), 0)
		if height = max(height, high); len(want) > 0 {
			t.Fatalf("tree %d lacks %v", in, want)
		}
	}
	return height
}

func TestTreesStayBalanced(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var st State
		lastID := uint64(0)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			id := rapid.Uint64Range(0, lastID).Draw(t, "ID")
			end := rapid.Uint64Range(0, 50).Draw(t, "end")
			switch rapid.IntRange(0, 7).Draw(t, "step") {
			case 0:
				DropLease(&st, id, 0)
			case 1:
				RenewLease(&st, id, end)
			case 2:
				if rapid.IntRange(0, 3).Draw(t, "end some") == 0 {
					for range DropDue(&st, int64(end)) { //nolint:revive // what is yielded does not matter
					}
				}
			case 3:
				leases{&st}.shift(rapid.Int64Range(-9, 9).Draw(t, "shift"))
			default:
				lastID++
				links := rapid.IntRange(0, 2).Draw(t, "links")
				FitLeases(&st, 1+links)
				AddLease(&st, Lease{ID: lastID, EndNS: end, Cost: int64(end), Name: [2]uint64{id}})
				for range links {
					AddLease(&st, Lease{ID: lastID, EndNS: end, Link: true})
				}
			}
			wantTrees(t, &st)
		}
	})
}

// Few leases are in no trees. More of them are, until all are gone.
func TestFewLeasesHaveNoTrees(t *testing.T) {
	var st State
	r := leases{&st}
	for _, first := range []uint64{1, 101} {
		var all []Lease
		for id := first; id <= first+fewLeases; id++ {
			FitLeases(&st, 1)
			all = append(all, Lease{ID: id, EndNS: 1, Cost: 1})
			AddLease(&st, all[len(all)-1])
			if wantTrees(t, &st); r.hasTrees() != (len(all) > fewLeases) {
				t.Fatalf("%d: %v", len(all), r.hasTrees())
			}
		}
		for _, l := range all {
			if !r.hasTrees() {
				t.Fatalf("%d to go: no trees", l.ID)
			}
			DropLease(&st, l.ID, 0)
			wantTrees(t, &st)
		}
		for _, n := range []int{fewLeases, fewLeases + 1} {
			read := State{Ring: make([]uint64, len(st.Ring))}
			leases{&read}.refill(all[:n])
			if wantTrees(t, &read); (leases{&read}).hasTrees() != (n > fewLeases) {
				t.Fatalf("%d were read: %v", n, !(n > fewLeases))
			}
		}
	}
}

// With as many leases as a state may hold, none is more than 23 steps from a root, in whatever order they came and however they were
// renewed.
func TestNoLeaseIsFarFromTheRoot(t *testing.T) {
	orders := map[string]func(i uint64) uint64{
		"the later, the later it ends":  func(i uint64) uint64 { return i },
		"the later, the sooner it ends": func(i uint64) uint64 { return MaxLeases - i },
		"all end at one instant":        func(uint64) uint64 { return 7 },
		"in no order":                   func(i uint64) uint64 { return i * 0x9e3779b97f4a7c15 >> 40 },
	}
	for name, end := range orders {
		var st State
		var all []Lease
		for i := range uint64(MaxLeases) {
			l := Lease{ID: 1 + i, EndNS: 1 + end(i), Cost: 1, Name: [2]uint64{i * 0x9e3779b97f4a7c15, 1}}
			FitLeases(&st, 1)
			AddLease(&st, l)
			all = append(all, l)
		}
		for i := uint64(0); i < MaxLeases; i += 3 {
			RenewLease(&st, 1+i, 1+end(i)/2)
			DropLease(&st, 2+i, 0)
		}
		if height := wantTrees(t, &st); height > 23 {
			t.Errorf("%s: %d steps", name, height)
		}
		slices.SortStableFunc(all, func(a, b Lease) int { return int(a.EndNS) - int(b.EndNS) })
		leases{&st}.fit(MaxLeases)
		leases{&st}.refill(all)
		if height := wantTrees(t, &st); height > 23 {
			t.Errorf("%s, read: %d steps", name, height)
		}
	}
}

// Where many leases have ended they are not looked for in the list, whose nodes lie in any order: 65,536 would take 17 ms.
func TestManyThatHaveEndedAreFoundInTheRing(t *testing.T) {
	for _, ended := range []uint64{MaxLeases / 64, MaxLeases / 4, MaxLeases} {
		var st State
		for i := range uint64(MaxLeases) {
			FitLeases(&st, 1)
			AddLease(&st, Lease{ID: 1 + i, EndNS: 1 + i*0x9e3779b1%MaxLeases, Cost: int64(i), TakenNS: i})
		}
		var got []uint64
		for l := range DropDue(&st, int64(ended)) {
			if l.Cost != int64(l.TakenNS) {
				t.Fatalf("%+v, want a cost of %d", l, l.TakenNS)
			}
			got = append(got, l.TakenNS)
		}
		if len(got) != int(ended) || slices.IsSorted(got) != (ended > MaxLeases/16) {
			t.Errorf("%d ended, %d found; in the order of the ring: %v", ended, len(got), slices.IsSorted(got))
		}
	}
}

func BenchmarkLeases(b *testing.B) {
	for _, n := range []uint64{1, 10, 100, MaxLeases - 1} {
		var st State
		for i := range n {
			FitLeases(&st, 2)
			AddLease(&st, Lease{ID: 1 + i, EndNS: i, Cost: 1, Name: [2]uint64{i * 0x9e3779b97f4a7c15, 1}})
		}
		next := n
		b.Run(fmt.Sprintf("renew the oldest of %d", n), func(b *testing.B) {
			for range b.N {
				r := leases{&st}
				RenewLease(&st, r.id(r.next(0)), next)
				next++
			}
		})
		b.Run(fmt.Sprintf("take one of %d and release it", n), func(b *testing.B) {
			for range b.N {
				FitLeases(&st, 1)
				AddLease(&st, Lease{ID: 1 + next, EndNS: next, Cost: 1, Name: [2]uint64{next * 0x9e3779b97f4a7c15, 1}})
				r := leases{&st}
				DropLease(&st, r.id(r.next(0)), 0)
				next++
			}
		})
	}
}
