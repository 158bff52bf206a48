package ahead

import (
	"testing"
	"time"

	"celld/cell"
	"celld/store"
)

// What is not given back has flowed back when the time of the setting is over, of buckets only.
func TestWhatIsNotGivenBackFlowsBack(t *testing.T) {
	h := New(Options{})
	h.SetAhead(Times{All: 90})
	const setting, at = int64(90 * time.Millisecond), int64(1e18)
	window, err := cell.ParseLimit("5/1s,algo=window")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		debtNS, flows int64
		calls         []store.Call
	}{
		{setting / 2, 10, nil}, {setting, 10, nil}, {setting + 1, 0, nil}, {setting, 10, make([]store.Call, 1)},
		{setting, 0, []store.Call{{}, {Limit: &window}}},
	} {
		g := Grant{of: &holding{ask: ask{calls: c.calls}}, lasts: h.Lasts(""), nowNS: at,
			buckets: []bucket{{tatNS: uint64(at + c.debtNS), intervalNS: 1e6}}}
		if n := g.flows(); n != c.flows {
			t.Errorf("a debt of %s: %d, want %d", time.Duration(c.debtNS), n, c.flows)
		}
	}
}
