//go:build linux

package transport

import "testing"

// load sends one batch after the other on some connections, and each nap gathers as many of them as given. It returns how many naps
// there were in 10,000 batches.
func load(n *naps, connections, gathered int) (count int) {
	notes := make([]uint32, connections)
	for i := range 10_000 {
		n.served(&notes[i%connections])
		if n.due() {
			count++
			n.gathered(gathered)
		}
	}
	return count
}

func TestNapsAreForLoadFromMany(t *testing.T) {
	for _, c := range []struct {
		name                  string
		connections, gathered int
		naps                  bool
	}{
		{"one that waits for each answer", 1, 1, false},
		{"few, which all wait for their answers", 8, 8, false},
		{"more than half of them wait", 50, 26, false},
		{"many that seldom ask", 50, 1, false},
		{"nobody asks", 50, 0, false},
		{"two of 50 ask during a nap", 50, 2, true},
		{"four of 50 ask during a nap", 50, 4, true},
		{"half of 50 ask during a nap", 50, 25, true},
		{"more connections than batches between trials", 5000, 4, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var n naps
			count := load(&n, c.connections, c.gathered)
			trials := 10_000 / napEvery
			if c.naps && count < 9_000 {
				t.Errorf("%d naps, want one whenever there is nothing to do", count)
			}
			if !c.naps && count != trials {
				t.Errorf("%d naps, want the %d trials", count, trials)
			}
		})
	}
}

func TestNapsEndWhenTheyStopPaying(t *testing.T) {
	var n naps
	load(&n, 50, 4)
	if count := load(&n, 1, 1); count > 10_000/napEvery+1 {
		t.Errorf("%d naps after the load was gone, want the trials", count)
	}
}
