package waits

import (
	"fmt"
	"strings"
	"testing"

	"celld/cell"
	"celld/store"
	"celld/store/policy"
	"celld/store/remote/link/linktest"
)

// A forecast tells each in a line how long it waits, behind those before it.
func TestForecasts(t *testing.T) {
	if f := (&forecast{}); f.book(5) != 0 || f.tailNS != 0 {
		t.Error("it knows nothing, and tells", f)
	}
	full := func(limit string) *forecast {
		l := linktest.Literal(t, limit)
		f := &forecast{known: true, nowNS: atNS, limit: *l}
		f.limit.Decide(&f.st, atNS, l.Capacity(), cell.Take)
		return f
	}
	f := full("1/1s,burst=2")
	for i, want := range []uint64{1e9, 2e9, 4e9} {
		if wait := f.book(int64(1 + i/2)); wait != want || f.tailNS != atNS+int64(want) {
			t.Errorf("%d: %d, the last at %d", i, wait, f.tailNS-atNS)
		}
	}
	f.unbook()
	if wait := f.book(1); wait != 3e9 {
		t.Errorf("after an unbooking: %d", wait)
	}
	if wait := f.book(3); wait != cell.Never || f.tailNS != 1<<63-1 {
		t.Errorf("what never passes: %d, %d", wait, f.tailNS)
	}
	f = full("1/1s,burst=2")
	f.skip(3)
	if wait := f.book(1); wait != 4e9 {
		t.Errorf("behind 3: %d", wait)
	}
	f.skip(0)
	if wait := f.book(1); wait != 5e9 {
		t.Errorf("behind nobody more: %d", wait)
	}
	f = full("2/1s,algo=window")
	f.skip(5) // two windows and a half
	if wait := f.book(1); wait < 2e9 || wait > 3e9 || f.limit.Algo != cell.Window {
		t.Errorf("the third window: %d", wait)
	}
	first := f.tailNS
	if f.book(1); f.tailNS == first {
		t.Error("the third window has more than two")
	}
	f = &forecast{known: true, nowNS: atNS, limit: *linktest.Literal(t, "2/1s,algo=log"), firstNS: 7e9}
	f.skip(100)
	if wait := f.book(1); wait != 7e9 || f.tailNS != 0 {
		t.Errorf("behind the first, which waits longer: %d", wait)
	}
	if wait := f.book(3); wait != cell.Never {
		t.Errorf("what never passes: %d", wait)
	}
	blocked := full("1/1s,burst=2,block=10s")
	blocked.st.BlockedNS = uint64(atNS + 10e9)
	blocked.skip(1)
	if wait := blocked.book(1); wait < 10e9 {
		t.Errorf("a block ends: %d", wait)
	}
	none := &forecast{limit: f.limit}
	if none.skip(5); none.st.A != 0 || none.st.B != 0 {
		t.Error("it knows nothing, and books", none.st)
	}
}

// The state that a line waits for is its call's own: not another policy's or limit's, and not what leases hold.
func TestTheStateOfACall(t *testing.T) {
	s := newStore(t, "", nil)
	for _, name := range []string{"api", "other"} {
		if _, err := s.policies.SetPolicy(name, []cell.Limit{*linktest.Literal(t, "9/9s")}, policy.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	v := s.views.Blank(atNS)
	defer v.Close()
	a := store.Access{NowNS: atNS}
	api, other := policyCall(s, "k", "api"), policyCall(s, "k", "other")
	plain, lease := takeCall(t, "k", "5/5s"), takeCall(t, "k", "7/7s")
	for i, c := range []store.Call{api, other, plain} {
		if _, err := v.Take([]store.Call{c}, store.TakeOptions{Cost: int64(1 + i)}, a); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := v.Take([]store.Call{lease}, store.TakeOptions{Cost: 1, Terms: &store.Terms{LeaseNS: 1e9}}, a); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Throttle([]byte("tat"), linktest.Literal(t, "10/10s").Bucket(), 1, a); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		call   store.Call
		tat    int64
		leased bool
	}{
		{api, 1e9, false}, {other, 2e9, false}, {plain, 3e9, false}, {lease, 0, true}, {takeCall(t, "k", "6/1m,algo=log"), 0, false},
		{takeCall(t, "tat", "5/5s"), 0, false}, {takeCall(t, "none", "5/5s"), 0, false},
	} {
		st, leased := stateOf(v, &c.call)
		if want := uint64(atNS + c.tat); leased != c.leased || !leased && c.tat == 0 && st.A != 0 || c.tat != 0 && st.A != want {
			t.Errorf("%d: %+v, leased %v", i, st, leased)
		}
	}
	text := stateText(v, &store.TakeRequest{Calls: []store.Call{api, plain}})
	if !strings.Contains(text, fmt.Sprint(atNS+1e9)) || !strings.Contains(text, fmt.Sprint(atNS+3e9)) || !strings.HasSuffix(text, " ") {
		t.Errorf("%q", text)
	}
}
