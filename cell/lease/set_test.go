package lease_test

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"celld/cell"
	"celld/cell/lease"
)

// leaseModel is leases in a list, in the order in which they were added or renewed, each with its links.
type leaseModel []linked

type linked struct {
	lease.Lease
	links [][2]uint64
}

func (m leaseModel) find(id uint64) int {
	return slices.IndexFunc(m, func(l linked) bool { return l.ID == id })
}

func (m leaseModel) sorted() leaseModel {
	m = slices.Clone(m)
	slices.SortStableFunc(m, func(a, b linked) int { return int(a.ExpiryNS) - int(b.ExpiryNS) })
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
	st.Leases().Fit(1 + len(l.links))
	st.Leases().Add(l.Lease)
	for _, name := range l.links {
		st.Leases().Add(lease.Lease{ID: l.ID, ExpiryNS: l.ExpiryNS, Link: true, Name: name})
	}
}

// Under any additions, renewals, drops and expiries, a Set is what a list would be.
func TestLeasesAreAList(t *testing.T) {
	conc, err := cell.ParseLimit("100/1m,algo=conc")
	if err != nil {
		t.Fatal(err)
	}
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
				l := linked{Lease: lease.Lease{ID: last, ExpiryNS: drawEnd(), Cost: rapid.Int64Range(0, 9).Draw(t, "cost"),
					Name: drawName(), TakenNS: uint64(now), Bound: rapid.Bool().Draw(t, "bound")}}
				for range rapid.IntRange(0, 2).Draw(t, "links") {
					l.links = append(l.links, drawName())
				}
				m.add(&st, l)
				m = append(m, l)
			case 2:
				end := drawEnd()
				if st.Leases().Renew(id, end) != (at >= 0) {
					t.Fatalf("renew %d: %v", id, at)
				}
				if at >= 0 {
					l := m[at]
					l.ExpiryNS = end
					m = append(slices.Delete(m, at, at+1), l)
				}
			case 3:
				live := at >= 0 && m[at].ExpiryNS > uint64(now)
				if got, found := st.Leases().Drop(id, now); found != live || live && got != m[at].Lease {
					t.Fatalf("drop %d: %+v, %v", id, got, found)
				}
				if live {
					m = slices.Delete(m, at, at+1)
				}
			case 4:
				now += rapid.Int64Range(0, 10).Draw(t, "later")
			case 5:
				due := m.sorted()
				due = slices.DeleteFunc(due, func(l linked) bool { return l.ExpiryNS > uint64(now) })
				var got []lease.Lease
				for l := range st.Leases().DropExpired(now) {
					got = append(got, l)
				}
				slices.SortFunc(due, func(a, b linked) int { return cmp.Compare(a.ID, b.ID) })
				slices.SortFunc(got, func(a, b lease.Lease) int { return cmp.Compare(a.ID, b.ID) })
				if !slices.EqualFunc(due, got, func(a linked, b lease.Lease) bool { return a.Lease == b }) {
					t.Fatalf("due are %v, want %v", got, due)
				}
				m = slices.DeleteFunc(m, func(l linked) bool { return l.ExpiryNS <= uint64(now) })
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
				st.Leases().EndBound(now)
				m = m.sorted()
				for i := range m {
					if m[i].Bound {
						m[i].ExpiryNS, least = min(m[i].ExpiryNS, uint64(now)), 0
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
	used, end, live := int64(0), uint64(0), 0
	for _, l := range m {
		if end = max(end, l.ExpiryNS); l.ExpiryNS > uint64(now) {
			used += l.Cost
			live++
		}
	}
	if n := st.Leases().Count(now); n != live {
		t.Fatalf("%d leases are counted, want %d", n, live)
	}
	if d := conc.Decide(&st, now, 0, cell.Peek); d.Remaining != max(0, 100-used) || conc.EndNS(&st) != end {
		t.Fatalf("%+v, want %d used; ends at %d, want %d", d, used, conc.EndNS(&st), end)
	}
	for _, cost := range []int64{1, 50, 100} {
		over, wait := used+cost-100, int64(0)
		for _, l := range m.sorted() {
			if l.ExpiryNS > uint64(now) && over > 0 {
				over, wait = over-l.Cost, int64(l.ExpiryNS)-now
			}
		}
		d := conc.Decide(&st, now, cost, cell.Peek)
		if d.Limited != (wait > 0) || d.Limited && int64(d.RetryAfterNS) != wait {
			t.Fatalf("%d more: %+v, want a wait of %d", cost, d, wait)
		}
	}
	if st.Leases().Len() > (len(st.Ring)-4)/10 {
		t.Fatal("no room")
	}
}

func wantFound(t *rapid.T, st cell.State, m leaseModel, id uint64, name [2]uint64, now int64) {
	at := m.find(id)
	live := at >= 0 && m[at].ExpiryNS > uint64(now)
	got, found := st.Leases().Find(id, now)
	if found != live || live && got != m[at].Lease {
		t.Fatalf("%d is %+v, %v", id, got, found)
	}
	if links, found := st.Leases().Links(id, now); found != live || live && !slices.Equal(links, m[at].links) {
		t.Fatalf("%d leads to %v, %v", id, links, found)
	}
	got, found = st.Leases().FindNamed(name, now)
	is := func(l linked) bool { return l.Name == name && name[0] != 0 && l.ExpiryNS > uint64(now) }
	if found != slices.ContainsFunc(m, is) || found && (got.Name != name || got.Link || m[m.find(got.ID)].Lease != got) {
		t.Fatalf("%v is %+v, %v", name, got, found)
	}
}

// Leases that come and go at the same pace need no more room, and those that only come need few new rings.
func TestLeasesReuseTheirRoom(t *testing.T) {
	var st cell.State
	grown := 0
	for id := range uint64(100_000) {
		if st.Leases().Fit(1) > 0 {
			grown++
		}
		st.Leases().Add(lease.Lease{ID: 1 + id, ExpiryNS: 1 + id, Cost: 1})
		if id >= 100 {
			if _, found := st.Leases().Drop(1+id-100, 0); !found {
				t.Fatal(id)
			}
		}
	}
	if len(st.Ring) > 4+10*256 || grown > 10 {
		t.Errorf("%d words, grew %d times", len(st.Ring), grown)
	}
	if st := (cell.State{}); st.Leases().Fit(1) != 4+10 || st.Leases().Renew(1, math.MaxInt64) {
		t.Error("a first lease needs fourteen words")
	}
}
