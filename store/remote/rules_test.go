package remote

import (
	"testing"
	"time"

	"celld/cell"
	"celld/store"
	"celld/store/policy"
	"celld/store/remote/link/linktest"
)

// A rule decides on what is taken. What is given back goes to the limit under the key, as in memory.
func TestGiveUnderARule(t *testing.T) {
	s := newTestStore(t, linktest.StartRedis(t), Options{})
	for _, text := range []string{"10/1h", "10/1h,algo=window", "10/1h,algo=conc"} {
		for _, deny := range []bool{false, true} {
			limit := linktest.Literal(t, text)
			ask := func(cost int64, mode cell.Mode) store.TakeRequest {
				r := store.TakeRequest{Calls: []store.Call{{Key: []byte(text), Limit: limit}},
					TakeOptions: store.TakeOptions{Cost: cost, Mode: mode}}
				if s.takeNow(&r); r.Err != nil {
					t.Fatal(r.Err)
				}
				return r
			}
			ask(4, cell.Take)
			rule := policy.Rule{Pattern: text, Deny: deny}
			if _, err := s.policies.PutRule(rule, time.Now().UnixNano()); err != nil {
				t.Fatal(err)
			}
			given := ask(-3, cell.Take).Taken.Granted
			s.policies.DeleteRule(rule, time.Now().UnixNano())
			if left := ask(0, cell.Peek).Calls[0].Decision.Remaining; given != -3 || left != 9 {
				t.Errorf("%s, deny %v: %d given back, and %d remain", text, deny, -given, left)
			}
			ask(-1, cell.Take)
		}
	}
}
