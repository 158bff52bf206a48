package remote

import (
	"testing"

	"celld/store"
)

// An ID is higher than those of all leases of its key that were there before, also if they have ended while its own was being stored.
func TestIDsAfterLeasesThatHaveEnded(t *testing.T) {
	all := testStores(t, 2)
	one, other := all[0], all[1]
	lease := func(v *View) uint64 {
		terms := store.Terms{Bound: true}
		r := [1]store.TakeRequest{{Calls: []store.Call{takeCall(t, "k", "1/1h,algo=conc")}, TakeOptions: store.TakeOptions{Cost: 1, Terms: &terms}}}
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
