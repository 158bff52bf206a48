package storetest

import (
	"fmt"
	"testing"

	"celld/cell"
	"celld/store"
)

// changedLimits: the first call with another count changes the limit, also where it is denied, and a peek does not. A third limit then
// shows of which of the two the state is: a window that was full under 1/1h is full under 1000/1h.
func changedLimits(t *testing.T, newAsker func() *asker) {
	k := newAsker()
	for i, test := range []struct {
		algo          string
		denied, peeks int64 // what remains of 1000/1h after that with 1/1h
	}{
		{"", 666, 666},
		{",algo=window", 0, 666},
		{",algo=window,align=clock", 0, 666},
		{",algo=slide", 0, 666},
		{",algo=slide,buckets=4", 0, 666},
		{",algo=log", 999, 999},
		{",algo=conc", 999, 999},
	} {
		for _, block := range []string{"", ",block=1us"} {
			for mode, want := range map[cell.Mode]int64{cell.Take: test.denied, cell.Peek: test.peeks} {
				for _, several := range []bool{false, true} {
					name := fmt.Sprint(i, block, mode, several)
					ask := func(limit string, mode cell.Mode) store.TakeRequest {
						of := calls(t, name, limit)
						if several {
							of = append(of, calls(t, name+" beside", "1000/1d")...)
						}
						return k.takes(t, store.TakeOptions{Cost: 1, Mode: mode}, of)
					}
					ask("3/1h"+test.algo, cell.Take)
					if r := ask("1/1h"+test.algo+block, mode); !r.Taken.Limited {
						t.Errorf("1/1h%s%s: %+v", test.algo, block, r.Taken)
					}
					k.pass(1000) // the block
					if r := ask("1000/1h"+test.algo, cell.Peek); r.Calls[0].Decision.Remaining != want {
						t.Errorf("1000/1h%s after mode %d of 1/1h%s, several %v: %+v, want %d left", test.algo, mode, block, several,
							r.Calls[0].Decision, want)
					}
				}
			}
		}
	}
}
