package waits

import (
	"strings"
	"testing"

	"celld/store"
	"celld/store/policy"
	"celld/store/remote/view"
)

// A Take whose keys have rules asks nothing of the engine. Without a rule for one of them, it asks about that key only; what is given back
// is about all keys.
func TestTheKeysOfAChange(t *testing.T) {
	s := newStore(t, "p:", nil)
	for _, rule := range []policy.Rule{{Pattern: "good"}, {Pattern: "fine"}, {Deny: true, Pattern: "bad"}} {
		if _, err := s.policies.PutRule(rule, atNS); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		keys    string
		cost    int64
		asked   string // keys that are read
		limited bool
	}{
		{"good", 1, "", false},
		{"good fine", 1, "", false},
		{"good bad", 1, "", true},
		{"good", 0, "", false},
		{"other", 1, "p:other", false},
		{"good other", 1, "p:other", false},
		{"other another", 1, "p:other p:another", false},
		{"good", -1, "p:good", false},
		{"good other", -1, "p:good p:other", false},
	} {
		var read []string
		s.waits.Enqueue = func(c *view.Change) {
			read = c.Keys
			c.Answer(store.ErrFull)
		}
		var calls []store.Call
		for key := range strings.FieldsSeq(c.keys) {
			calls = append(calls, takeCall(t, key, "10/1m,algo=log"))
		}
		r := s.plainly(t, c.cost, calls...).reqs[0]
		if got := strings.Join(read, " "); (r.Err == nil) != (c.asked == "") || got != c.asked || r.Taken.Limited != c.limited {
			t.Errorf("%+v: read %q, %+v, %v", c, got, r.Taken, r.Err)
		}
	}
}
