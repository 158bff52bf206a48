package check

import "testing"

func TestBounds(t *testing.T) {
	bounded := func(calls ...Call) (h History) {
		for _, c := range calls {
			c.Bounded = true
			h.Calls = append(h.Calls, c)
		}
		return h
	}
	grant, deny := []int64{0, 2, 0, -1, 0}, []int64{1, 2, 0, 1, 0}
	for _, c := range []struct {
		name  string
		h     History
		loss  bool
		wrong bool
	}{
		{"as many as the limit", bounded(call(0, 1, 2, grant, 9*s), call(1, 1, 2, grant, 9*s)), false, false},
		{"one more", bounded(call(0, 1, 2, grant, 9*s), call(1, 1, 2, grant, 9*s), call(2, 3, 4, grant, 9*s)), false, true},
		{"one more after a loss", bounded(call(0, 1, 2, grant, 9*s), call(1, 1, 2, grant, 9*s), call(2, 3, 4, grant, 9*s)), true, false},
		{"one more after a second", bounded(call(0, 1, 2, grant, 9*s), call(1, 1, 2, grant, 9*s), call(2, 3, 4, grant, 10*s)), false, false},
		{"denied while there is room", bounded(call(0, 1, 2, grant, 9*s), call(1, 3, 4, deny, 9*s)), false, true},
		{"denied after a call that may count", bounded(call(0, 1, 2, grant, 9*s), call(1, 1, 2, nil, 9*s), call(1, 3, 4, deny, 9*s)), false, false},
	} {
		if c.loss {
			c.h.Losses = []Loss{{Began: 2, Ended: 3}}
		}
		if faults := Bounds(c.h); (len(faults) > 0) != c.wrong {
			t.Errorf("%s: %v", c.name, faults)
		}
	}
}
