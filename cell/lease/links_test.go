package lease_test

import (
	"fmt"
	"strings"
	"testing"

	"celld/cell"
)

// The links of each lease are read, and it is seen where they stand apart from it.
func TestAllLinks(t *testing.T) {
	link := func(id, end int, last byte) string { return fmt.Sprintf("%d:%d:0:k%031x%c", id, end, 0, last) }
	for leases, want := range map[string]string{
		"":                           "",
		"1:50:1":                     "",
		"1:50:1," + link(1, 50, '7'): "[7] true",
		"1:50:1," + link(1, 50, '7') + "," + link(1, 50, '8') + ",2:50:1,3:50:1," + link(3, 50, '9'): "[7 8] true [9] true",
		link(1, 50, '7'):             "[7] false",
		"1:50:1," + link(1, 60, '7'): "[7] false",
		"1:50:1," + link(1, 50, '7') + "," + link(1, 60, '8'):   "[7] true [8] false",
		"1:50:1," + link(2, 50, '7'):                            "[7] false",
		"1:50:1," + link(1, 50, '7') + "," + link(2, 50, '8'):   "[7] true [8] false",
		"1:50:1,2:50:1," + link(1, 50, '7'):                     "[7] false",
		"1:50:1:n" + strings.Repeat("1", 32) + ",1:60:1,2:60:1": "",
	} {
		_, st, err := cell.ParseState("limit=9/1m,algo=conc leases=" + leases)
		if err != nil {
			t.Fatal(leases, err)
		}
		var got []string
		for names, whole := range st.Leases().AllLinks {
			var last []uint64
			for _, name := range names {
				last = append(last, name[1])
			}
			got = append(got, fmt.Sprint(last, whole))
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("%s: %s, want %s", leases, got, want)
		}
		for range st.Leases().AllLinks { // it may be left early
			break
		}
	}
}
