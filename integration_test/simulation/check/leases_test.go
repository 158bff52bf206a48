package check

import (
	"testing"

	"celld/cell"
)

func TestLeases(t *testing.T) {
	l, err := cell.ParseLimit("1/1s,algo=conc")
	if err != nil {
		t.Fatal(err)
	}
	acquire := func(began, ended, id, atNS int64) Call {
		return Call{Key: "k", Kind: Acquire, Limit: l, Cost: 1, Began: began, Ended: ended, Answer: []int64{0, 1, 0, -1, 1000, 1, 0, id},
			FromNS: atNS, ToNS: atNS}
	}
	release := func(began, id, atNS int64) Call {
		return Call{Key: "k", Kind: Release, Lease: id, Began: began, Ended: began, Answer: []int64{1}, FromNS: atNS, ToNS: atNS}
	}
	for _, c := range []struct {
		name  string
		calls []Call
		loss  bool
		wrong bool
	}{
		{"after a release", []Call{acquire(1, 2, 7, 9*s), release(3, 7, 9*s+1), acquire(4, 5, 8, 9*s+2)}, false, false},
		{"two at once", []Call{acquire(1, 2, 7, 9*s), acquire(4, 5, 8, 9*s+2)}, false, true},
		{"after a loss", []Call{acquire(1, 2, 7, 9*s), acquire(4, 5, 8, 9*s+2)}, true, false},
		{"after its time", []Call{acquire(1, 2, 7, 9*s), acquire(4, 5, 8, 10*s)}, false, false},
		{"an id that is not higher", []Call{acquire(1, 2, 7, 9*s), release(3, 7, 9*s+1), acquire(4, 5, 7, 9*s+2)}, false, true},
	} {
		h := History{Calls: c.calls}
		if c.loss {
			h.Losses = []Loss{{Began: 3, Ended: 3, FromNS: 9 * s}}
		}
		if faults := Leases(h); (len(faults) > 0) != c.wrong {
			t.Errorf("%s: %v", c.name, faults)
		}
	}
}
