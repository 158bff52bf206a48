package cell_test

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"celld/cell"
)

// leaseModel is leases in a list, in the order in which they were added or renewed, each with its links.
type leaseModel []linked

type linked struct {
	cell.Lease
	links [][2]uint64
}

func (m leaseModel) find(id uint64) int {
	return slices.IndexFunc(m, func(l linked) bool { return l.ID == id })
}

func (m leaseModel) sorted() leaseModel {
	m = slices.Clone(m)
	slices.SortStableFunc(m, func(a, b linked) int { return int(a.EndNS) - int(b.EndNS) })
	return m
}

func (m leaseModel) state(t *rapid.T) cell.State {
	var st cell.State
	for _, l := range m.sorted() {
		m.add(&st, l)
	}
	return st
}

func (leaseModel) add(st *cell.State, l linked) {
	cell.FitLeases(st, 1+len(l.links))
	cell.AddLease(st, l.Lease)
	for _, name := range l.links {
		cell.AddLease(st, cell.Lease{ID: l.ID, EndNS: l.EndNS, Link: true, Name: name})
	}
}

// Whatever is added, renewed, dropped and ends, a state of leases is what a list would be.
func TestLeasesAreAList(t *testing.T) {
	conc := mustLiteral(t, "100/1m,algo=conc")
	rapid.Check(t, func(t *rapid.T) {
		var st cell.State
		var m leaseModel
		last := uint64(0)
		now := int64(100)
		least := uint64(0) // until which leases were dropped: none ends before that
		drawEnd := func() uint64 { return max(uint64(now)+rapid.Uint64Range(0, 20).Draw(t, "lasts"), least) }
		drawName := func() [2]uint64 { return [2]uint64{rapid.Uint64Range(0, 3).Draw(t, "name")} }
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			id := rapid.Uint64Range(0, last+1).Draw(t, "ID")
			at := m.find(id)
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 0, 1:
				last += rapid.Uint64Range(1, 2).Draw(t, "after")
				l := linked{Lease: cell.Lease{ID: last, EndNS: drawEnd(), Cost: rapid.Int64Range(0, 9).Draw(t, "cost"), Name: drawName(), TakenNS: uint64(now), Bound: rapid.Bool().Draw(t, "bound")}}
				for range rapid.IntRange(0, 2).Draw(t, "links") {
					l.links = append(l.links, drawName())
				}
				m.add(&st, l)
				m = append(m, l)
			case 2:
				end := drawEnd()
				if cell.RenewLease(&st, id, end) != (at >= 0) {
					t.Fatalf("renew %d: %v", id, at)
				}
				if at >= 0 {
					l := m[at]
					l.EndNS = end
					m = append(slices.Delete(m, at, at+1), l)
				}
			case 3:
				live := at >= 0 && m[at].EndNS > uint64(now)
				if got, found := cell.DropLease(&st, id, now); found != live || live && got != m[at].Lease {
					t.Fatalf("drop %d: %+v, %v", id, got, found)
				}
				if live {
					m = slices.Delete(m, at, at+1)
				}
			case 4:
				now += rapid.Int64Range(0, 10).Draw(t, "later")
			case 5:
				due := m.sorted()
				due = slices.DeleteFunc(due, func(l linked) bool { return l.EndNS > uint64(now) })
				var got []cell.Lease
				for l := range cell.DropDue(&st, now) {
					got = append(got, l)
				}
				slices.SortFunc(due, func(a, b linked) int { return cmp.Compare(a.ID, b.ID) })
				slices.SortFunc(got, func(a, b cell.Lease) int { return cmp.Compare(a.ID, b.ID) })
				if !slices.EqualFunc(due, got, func(a linked, b cell.Lease) bool { return a.Lease == b }) {
					t.Fatalf("due are %v, want %v", got, due)
				}
				m = slices.DeleteFunc(m, func(l linked) bool { return l.EndNS <= uint64(now) })
				if len(due) > 0 {
					least = uint64(now) + 1
				}
				if len(m) == 0 {
					least = 0
				}
			default:
				if rapid.IntRange(0, 4).Draw(t, "disconnect") > 0 {
					break
				}
				cell.EndBound(&st)
				m = m.sorted()
				for i := range m {
					if m[i].Bound {
						m[i].EndNS, least = min(m[i].EndNS, 1), 0
					}
				}
			}
			wantLeases(t, conc, st, m, now)
			wantFound(t, st, m, id, drawName(), now)
		}
	})
}

func wantLeases(t *rapid.T, conc cell.Limit, st cell.State, m leaseModel, now int64) {
	want := m.state(t)
	if got, want := string(conc.AppendState(nil, &st)), string(conc.AppendState(nil, &want)); got != want {
		t.Fatalf("%s\nwant %s", got, want)
	}
	used, end := int64(0), uint64(0)
	for _, l := range m {
		if end = max(end, l.EndNS); l.EndNS > uint64(now) {
			used += l.Cost
		}
	}
	if d := conc.Decide(&st, now, 0, cell.Peek); d.Remaining != max(0, 100-used) || conc.EndNS(&st) != end {
		t.Fatalf("%+v, want %d used; ends at %d, want %d", d, used, conc.EndNS(&st), end)
	}
	for _, cost := range []int64{1, 50, 100} {
		over, wait := used+cost-100, int64(0)
		for _, l := range m.sorted() {
			if l.EndNS > uint64(now) && over > 0 {
				over, wait = over-l.Cost, int64(l.EndNS)-now
			}
		}
		d := conc.Decide(&st, now, cost, cell.Peek)
		if d.Limited != (wait > 0) || d.Limited && int64(d.RetryAfterNS) != wait {
			t.Fatalf("%d more: %+v, want a wait of %d", cost, d, wait)
		}
	}
	if cell.Leases(&st) > (len(st.Ring)-4)/10 {
		t.Fatal("no room")
	}
}

func wantFound(t *rapid.T, st cell.State, m leaseModel, id uint64, name [2]uint64, now int64) {
	at := m.find(id)
	live := at >= 0 && m[at].EndNS > uint64(now)
	got, found := cell.FindLease(&st, id, now)
	if found != live || live && got != m[at].Lease {
		t.Fatalf("%d is %+v, %v", id, got, found)
	}
	if links, found := cell.Links(&st, id, now); found != live || live && !slices.Equal(links, m[at].links) {
		t.Fatalf("%d leads to %v, %v", id, links, found)
	}
	got, found = cell.FindNamed(&st, name, now)
	is := func(l linked) bool { return l.Name == name && name[0] != 0 && l.EndNS > uint64(now) }
	if found != slices.ContainsFunc(m, is) || found && (got.Name != name || got.Link || m[m.find(got.ID)].Lease != got) {
		t.Fatalf("%v is %+v, %v", name, got, found)
	}
}

// A lease that was granted has the ID that it is given, and no other.
func TestIdentifyLease(t *testing.T) {
	l := mustLiteral(t, "3/1m,algo=conc")
	var st cell.State
	l.IdentifyLease(&st, aDayIn2027, cell.Lease{ID: 7}) // there is none
	for id := range uint64(3) {
		decide(&l, &st, aDayIn2027, 1, cell.Take)
		l.IdentifyLease(&st, aDayIn2027, cell.Lease{ID: 7 + id, EndNS: 1, Cost: 9, Name: [2]uint64{id}})
		l.IdentifyLease(&st, aDayIn2027, cell.Lease{ID: 99})
	}
	for id := range uint64(3) {
		want := cell.Lease{ID: 7 + id, EndNS: aDayIn2027 + uint64(l.PeriodNS), Cost: 1, Name: [2]uint64{id}}
		if got, found := cell.FindLease(&st, 7+id, aDayIn2027); !found || got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	if _, found := cell.FindLease(&st, 7, aDayIn2027+l.PeriodNS); found {
		t.Error("found after its end")
	}
}

// Leases that come and go at the same pace need no more room, and those that are added need few new rings.
func TestLeasesReuseTheirRoom(t *testing.T) {
	var st cell.State
	grown := 0
	for id := range uint64(100_000) {
		if cell.FitLeases(&st, 1) > 0 {
			grown++
		}
		cell.AddLease(&st, cell.Lease{ID: 1 + id, EndNS: 1 + id, Cost: 1})
		if id >= 100 {
			if _, found := cell.DropLease(&st, 1+id-100, 0); !found {
				t.Fatal(id)
			}
		}
	}
	if len(st.Ring) > 4+10*256 || grown > 10 {
		t.Errorf("%d words, grew %d times", len(st.Ring), grown)
	}
	if st := (cell.State{}); cell.FitLeases(&st, 1) != 4+10 || cell.RenewLease(&st, 1, math.MaxInt64) {
		t.Error("a first lease needs fourteen words")
	}
}

// What was used of another limit is no part of the first lease: that gives back its own cost.
func TestWhatWasUsedIsNoLease(t *testing.T) {
	const now = aDayIn2027
	bucket, conc := mustLiteral(t, "10/1h"), mustLiteral(t, "10/1h,algo=conc")
	var st cell.State
	bucket.Decide(&st, now, 5, cell.Take)
	conc.Carry(&st, &bucket, now, now)
	conc.Fit(&st, now)
	conc.Decide(&st, now, 1, cell.Take)
	conc.IdentifyLease(&st, now, cell.Lease{ID: 7})
	cell.DropLease(&st, 7, now)
	if d := conc.Decide(&st, now, 0, cell.Peek); d.Remaining != 5 {
		t.Errorf("%+v", d)
	}
}
