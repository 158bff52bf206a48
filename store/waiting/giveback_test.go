package waiting_test

import (
	"fmt"
	"slices"
	"testing"

	"celld/cell"
	"celld/store"
	"celld/store/policy"
	"celld/store/waiting"
)

// giver notes what is given back.
type giver []string

func (g *giver) Release(key []byte, id int64, _ store.Access) (bool, error) {
	*g = append(*g, fmt.Sprintf("release %s %d", key, id))
	return true, nil
}

func (g *giver) GiveBack(key []byte, l *cell.Limit, p *policy.Limit, n int64, takenNS uint64, a store.Access) (int64, error) {
	*g = append(*g, fmt.Sprintf("give %s %v %d of %d at %d", key, p != nil, n, takenNS, a.NowNS))
	return n, nil
}

func TestGivesBack(t *testing.T) {
	for _, c := range []struct {
		what string
		r    store.TakeRequest
		want bool
	}{
		{"granted", store.TakeRequest{TakeOptions: store.TakeOptions{Terms: &store.Terms{}}}, true},
		{"denied", store.TakeRequest{Taken: store.Taken{Limited: true}, TakeOptions: store.TakeOptions{Terms: &store.Terms{}}}, false},
		{"an error", store.TakeRequest{Err: store.ErrFull, TakeOptions: store.TakeOptions{Terms: &store.Terms{}}}, false},
		{"a lease with a name", store.TakeRequest{TakeOptions: store.TakeOptions{Terms: &store.Terms{Name: "n"}}}, false},
		{"one that ends with the connection", store.TakeRequest{TakeOptions: store.TakeOptions{Terms: &store.Terms{Name: "n", Bound: true}}}, true},
	} {
		if got := waiting.GivesBack(&c.r); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
}

// A lease of so many ns is released. What was counted is given back to each limit that has taken it by itself.
func TestGiveBack(t *testing.T) {
	limit := func(text string) *cell.Limit {
		l, err := cell.ParseLimit(text)
		if err != nil {
			t.Fatal(err)
		}
		return &l
	}
	calls := []store.Call{
		{Key: []byte("a"), Limit: limit("1/1s"), Policy: &policy.Limit{}},
		{Key: []byte("conc"), Limit: limit("1/1s,algo=conc")},
		{Key: []byte("shadow"), Limit: limit("1/1s"), Decision: cell.Decision{Limited: true}},
		{Key: []byte("ruled"), Limit: limit("1/1s"), Ruled: true},
		{Key: []byte("b"), Limit: limit("1/1s"), Decision: cell.Decision{ResetAfterNS: 3}},
		{Key: []byte("c"), Limit: limit("1/1s,algo=window"), Decision: cell.Decision{ResetAfterNS: 3}, Own: true, Cost: 7},
	}
	given := []string{"give a true 2 of 5 at 9", "give b false 2 of 8 at 9", "give c false 7 of 5 at 9"}
	for _, c := range []struct {
		what    string
		terms   store.Terms
		counted bool
		want    []string
	}{
		{"counted", store.Terms{PassNS: 5}, true, given},
		{"counted, nobody knows when", store.Terms{}, true,
			[]string{"give a true 2 of 0 at 9", "give b false 2 of 0 at 9", "give c false 7 of 0 at 9"}},
		{"not counted", store.Terms{}, false, nil},
		{"a lease", store.Terms{Lease: 7, LeaseNS: 1}, true, []string{"release a 7"}},
		{"of algo=conc", store.Terms{Lease: 7, PassNS: 5}, true, append([]string{"release a 7"}, given...)},
		{"of algo=conc, not counted", store.Terms{Lease: 7}, false, []string{"release a 7"}},
	} {
		var g giver
		r := store.TakeRequest{Calls: calls, TakeOptions: store.TakeOptions{Terms: &c.terms}, Taken: store.Taken{Granted: 2}}
		waiting.GiveBack(&r, c.counted, &g, store.Access{NowNS: 9})
		if !slices.Equal(g, c.want) {
			t.Errorf("%s: %q, want %q", c.what, g, c.want)
		}
	}
}
