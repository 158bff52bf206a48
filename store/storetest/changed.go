package storetest

import (
	"fmt"
	"testing"

	"celld/cell"
	"celld/store"
)

// changedLimits: what was used stays used, as a number. The first call with another count changes the limit, also where it is denied, and a
// peek does not: so from then on a bucket flows back at another rate.
func changedLimits(t *testing.T, newAsker func() *asker) {
	const thirdNS = 1_200e9 // of an hour
	k := newAsker()
	for i, test := range []struct {
		algo          string
		passesNS      int64
		denied, peeks int64 // what remains of 1000/1h after that with 1/1h
	}{
		{"", thirdNS, 999, 1000},
		{",algo=window", 1000, 999, 999},
		{",algo=window,align=clock", 1000, 999, 999},
		{",algo=slide", 1000, 999, 999},
		{",algo=slide,buckets=4", 1000, 999, 999},
		{",algo=log", 1000, 999, 999},
		{",algo=conc", 1000, 999, 999},
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
					k.pass(test.passesNS) // also the block
					if r := ask("1000/1h"+test.algo, cell.Peek); r.Calls[0].Decision.Remaining != want {
						t.Errorf("1000/1h%s after mode %d of 1/1h%s, several %v: %+v, want %d left", test.algo, mode, block, several,
							r.Calls[0].Decision, want)
					}
				}
			}
		}
	}
}
