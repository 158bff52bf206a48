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
	with := func(c Call, change func(c *Call)) Call { change(&c); return c }
	denied := func(began, atNS int64) Call {
		return with(acquire(began, began, 0, atNS), func(c *Call) { c.Answer[0] = 1 })
	}
	lost := func(began, atNS int64) Call {
		return with(acquire(began, began, 0, atNS), func(c *Call) { c.Answer = nil })
	}
	renew := func(began, id, atNS int64) Call {
		return with(release(began, id, atNS), func(c *Call) { c.Kind, c.WaitNS = Renew, 5*s })
	}
	named := func(c Call) Call { return with(c, func(c *Call) { c.ID = "n" }) }
	unbound := func(c Call) Call { return with(c, func(c *Call) { c.BoundNS, c.UnboundNS = c.ToNS+1, c.ToNS+1 }) }
	refused := func(atNS int64) Call { // after it has waited
		return with(denied(2, 9*s+1), func(c *Call) { c.Ended, c.Waits, c.WaitNS, c.ToNS = 9, true, s, atNS })
	}
	granted := func(atNS int64) Call {
		return with(refused(atNS), func(c *Call) { c.Answer[0], c.Answer[7], c.First = 0, 8, true })
	}
	failed := func(c Call) Call { return with(c, func(c *Call) { c.Answer, c.Error = nil, "STOREDOWN it is away" }) }
	behind := func(c Call) Call { return with(c, func(c *Call) { c.First = false }) }
	other := func(atNS int64) Call { return with(refused(atNS), func(c *Call) { c.Began, c.Ended = 1, 8 }) }
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
		{"denied while one is held", []Call{acquire(1, 2, 7, 9*s), denied(3, 9*s+1)}, false, false},
		{"denied after a release", []Call{acquire(1, 2, 7, 9*s), release(3, 7, 9*s+1), denied(4, 9*s+2)}, false, true},
		{"denied after its time", []Call{acquire(1, 2, 7, 9*s), denied(4, 10*s+1)}, false, true},
		{"denied after a release for which it waited", []Call{acquire(1, 1, 7, 9*s), refused(9*s + s/2), release(3, 7, 9*s+2)}, false, true},
		{"denied soon after such a release", []Call{acquire(1, 1, 7, 9*s), refused(9*s + s/8), release(3, 7, 9*s+2)}, false, false},
		{"two who waited denied", []Call{acquire(1, 1, 7, 9*s), other(9*s + s/2), refused(9*s + s/2), release(3, 7, 9*s+2)}, false, true},
		{"denied while another waited, who had an error", []Call{acquire(1, 1, 7, 9*s), failed(other(9*s + s/2)), refused(9*s + s/2),
			release(3, 7, 9*s+2)}, false, false},
		{"two denied soon after it", []Call{acquire(1, 1, 7, 9*s), other(9*s + s/8), refused(9*s + s/8), release(3, 7, 9*s+2)}, false, false},
		{"granted long after a release", []Call{acquire(1, 1, 7, 9*s), granted(9*s + s/2), release(3, 7, 9*s+2)}, false, true},
		{"granted behind another", []Call{acquire(1, 1, 7, 9*s), behind(granted(9*s + s/2)), release(3, 7, 9*s+2)}, false, false},
		{"granted soon after a release", []Call{acquire(1, 1, 7, 9*s), granted(9*s + s/8), release(3, 7, 9*s+2)}, false, false},
		{"denied as one may be held", []Call{lost(1, 9*s), denied(4, 10*s+1)}, false, false},
		{"denied after its connection has ended", []Call{unbound(acquire(1, 2, 7, 9*s)), denied(4, 9*s+2)}, false, true},
		{"granted after its connection has ended", []Call{unbound(acquire(1, 2, 7, 9*s)), acquire(4, 5, 8, 9*s+2)}, false, false},
		{"two at once, as the first was renewed", []Call{acquire(1, 2, 7, 9*s), renew(3, 7, 9*s+1), acquire(4, 5, 8, 10*s)}, false, true},
		{"denied after its first time, as it was renewed", []Call{acquire(1, 2, 7, 9*s), renew(3, 7, 9*s+1), denied(4, 10*s+1)}, false, false},
		{"a repeat", []Call{named(acquire(1, 2, 7, 9*s)), named(acquire(3, 4, 7, 9*s+1))}, false, false},
		{"a repeat of what nobody was told", []Call{named(lost(1, 9*s)), named(acquire(3, 4, 7, 9*s+1))}, false, false},
		{"an id that is not higher", []Call{acquire(1, 2, 7, 9*s), release(3, 7, 9*s+1), acquire(4, 5, 7, 9*s+2)}, false, true},
	} {
		h := History{Calls: c.calls, WakesNS: s / 4}
		if c.loss {
			h.Losses = []Loss{{Began: 3, Ended: 3, FromNS: 9 * s}}
		}
		if faults := Leases(h); (len(faults) > 0) != c.wrong {
			t.Errorf("%s: %v", c.name, faults)
		}
	}
	three, err := cell.ParseLimit("3/1s,algo=conc")
	if err != nil {
		t.Fatal(err)
	}
	of := func(c Call) Call { return with(c, func(c *Call) { c.Limit = three }) }
	first, unblocked := of(with(granted(9*s+s/4), func(c *Call) { c.Began, c.Ended = 1, 5 })), of(refused(9*s+s/4))
	for want, calls := range [][]Call{{first, unblocked}, {unblocked}} {
		if faults := Leases(History{Calls: calls, WakesNS: s / 4}); len(faults) != want {
			t.Errorf("an operator has ended the wait of the last of %d: %v", len(calls), faults)
		}
	}
	if faults := Leases(History{Calls: []Call{of(named(acquire(1, 2, 7, 9*s))), of(named(acquire(3, 4, 8, 9*s+1)))}}); len(faults) != 1 {
		t.Errorf("a repeat that is given a lease of its own: %v", faults)
	}
}
