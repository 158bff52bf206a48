package waits

import (
	"slices"
	"testing"
	"time"

	"celld/store"
)

// Those who wait move up into the grants before them if these are alike. A lease with a name is its caller's, who may come back for it:
// nobody else gets its grant, and it gets nobody else's.
func TestWhoseAGrantMayBe(t *testing.T) {
	s := newStore(t, "", nil)
	newOne := func(name, limit string, cost int64) *waiter {
		r := &store.TakeRequest{Calls: []store.Call{takeCall(t, "k", limit)},
			TakeOptions: store.TakeOptions{Cost: cost, Terms: &store.Terms{Mode: store.Wait, LeaseNS: 1e9, Name: name}}}
		v, err := s.waits.newWaiter(r, store.Access{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	plain, same := newOne("", "1/1s", 1), newOne("", "1/1s", 1)
	named, other := newOne("a", "1/1s", 1), newOne("b", "1/1s", 1)
	for _, c := range []struct {
		what string
		by   *waiter
		v    *waiter
		fits bool
	}{
		{"its own", plain, plain, true},
		{"its own, with a name", named, named, true},
		{"one alike", plain, same, true},
		{"a named one's, for one without a name", named, plain, false},
		{"one without a name, for a named one", plain, named, false},
		{"another name's", named, other, false},
		{"one of another cost", plain, newOne("", "1/1s", 2), false},
		{"one of another limit", plain, newOne("", "2/1s", 1), false},
	} {
		if got := (&grant{by: c.by, from: time.Now()}).fits(c.v); got != c.fits {
			t.Errorf("%s: %v", c.what, got)
		}
	}

	l := &line{waits: s.waits}
	l.Waiters = []*waiter{plain, named, same}
	for _, v := range l.Waiters {
		l.grants = append(l.grants, grant{by: v, answer: v.own, at: time.Now(), from: time.Now()})
	}
	l.remove(plain)
	var holders []*waiter
	for _, slot := range l.grants {
		holders = append(holders, slot.by)
	}
	if !slices.Equal(holders, []*waiter{named, same}) || !slices.Equal(l.Waiters, holders) {
		t.Errorf("the slots are those of %v, and %v wait", holders, l.Waiters)
	}
	if n := len(s.waits.changes); n != 1 {
		t.Errorf("%d slots are given back, want that of the one who left", n)
	}
}
