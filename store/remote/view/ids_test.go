package view

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"celld/internal/celldtest"
	"celld/store"
	"celld/store/policy"
	"celld/store/remote/link"
	"celld/store/remote/link/linktest"
)

// An ID is higher than those of all leases of its key that were there before, also if they have ended while its own was being stored.
func TestIDsAfterLeasesThatHaveEnded(t *testing.T) {
	all := testStores(t, 2)
	one, other := all[0], all[1]
	lease := func(v *View) uint64 {
		terms := store.Terms{Bound: true}
		r := [1]store.TakeRequest{{Calls: []store.Call{takeCall(t, "k", "1/1h,algo=conc")},
			TakeOptions: store.TakeOptions{Cost: 1, Terms: &terms}}}
		v.TakeBatch(r[:], store.Access{NowNS: v.NowNS}, nil)
		return uint64(terms.Lease)
	}
	w := make(signal, 1)
	v := one.Open([][]byte{[]byte("k")}, w)
	<-w
	v.Table()
	late := lease(v)
	var early uint64
	other.on(t, func(v *View) { early = lease(v) }, "k")
	other.on(t, func(v *View) { v.Release([]byte("k"), int64(early), store.Access{NowNS: v.NowNS}) }, "k")
	for !v.Commit(w) {
		if <-w; !v.Conflict() {
			break
		}
		v.Table()
		late = lease(v)
	}
	if v.Err != nil || late <= early {
		t.Errorf("%v: the ID %d comes after %d", v.Err, late, early)
	}
	v.Close()
}

// In a Cluster the marks of a key are in the key's hash slot, whatever the prefix is.
func TestMarksAreInTheHashSlotOfTheirKey(t *testing.T) {
	for _, prefix := range []string{"", "p:", "{p}:", "p{", "p}", "{}", "{"} {
		s := newStore(Options{Prefix: prefix, Policies: &policy.Set{}})
		linktest.InCluster(s.Link)
		hashes := map[string]bool{}
		for i := range 1000 {
			key := prefix + fmt.Sprint("k", i)
			name := s.Link.PerHashSlot(key)
			if link.HashSlot(name) != link.HashSlot(key) {
				t.Fatalf("prefix %q: the marks of %q are in %q", prefix, key, name)
			}
			if !Own(strings.TrimPrefix(name, prefix)) {
				t.Fatalf("%q is shown", name)
			}
			hashes[name] = true
		}
		if one := prefix == "{p}:"; (len(hashes) == 1) != one {
			t.Errorf("prefix %q: %d hashes", prefix, len(hashes))
		}
	}
}

// What an earlier build has left of the IDs of a key does not make it another's: it goes with the first change.
func TestIDsOfEarlierBuilds(t *testing.T) {
	s := testStores(t, 1)[0]
	for _, key := range []string{"leases", "Lingers"} {
		if key == "leases" {
			s.plainly(t, 1, takeCall(t, key, "5/1h,algo=window"))
		}
		s.do(t, "HSET", key, idField, "1795369162355930")
		r := s.plainly(t, 1, takeCall(t, key, "5/1h,algo=window"))
		if r.Err != nil || r.Taken.Granted != 1 {
			t.Errorf("%s: %+v", key, r)
		}
		if got := s.hash(t, key); len(got) != 1 || got[idField] != "" {
			t.Errorf("%s: %v", key, got)
		}
	}
}

// An engine that is known to refuse writes is not asked for a number.
func TestNoNumberIsAskedOfAnEngineThatRefuses(t *testing.T) {
	e := celldtest.NewAiling(t)
	s := newTestStore(t, e.Socket, Options{})
	h := s.hands
	s.Link.Break("k", linktest.Down)
	s.RequestNumber()
	if e.Count() != 0 || s.process.given.Load() {
		t.Errorf("%d commands", e.Count())
	}
	celldtest.Eventually(t, "it takes calls again", func() bool { h.Pass(time.Second); return s.Link.Down() == nil })
	s.RequestNumber()
	celldtest.Eventually(t, "the number is there", func() bool { return s.process.number.Load() == 1 })
}
