package limit

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"celld/cell"
	"celld/resp/command/calltest"
	"celld/store"
	"celld/store/memory"
)

// inWords is a reply without the lengths of its texts, and in one line.
func inWords(reply string) string {
	reply = regexp.MustCompile(`\$\d+\r\n`).ReplaceAllString(reply, "")
	return strings.TrimSpace(strings.NewReplacer("\r\n:", " ", "\r\n", " ").Replace(reply))
}

// take takes from a limit of key k: a literal, or @ and a policy of one limit.
func take(t testing.TB, h *calltest.Host, limit string, o store.TakeOptions) {
	t.Helper()
	c := store.Call{Key: []byte("k")}
	if name, named := strings.CutPrefix(limit, "@"); named {
		c = store.CallOf(c.Key, h.Store.PolicyNamed(name).Limits[0])
	} else {
		l, err := cell.ParseLimit(limit)
		if err != nil {
			t.Fatal(err)
		}
		c.Limit = &l
	}
	reqs := []store.TakeRequest{{Calls: []store.Call{c}, TakeOptions: o}}
	if h.Store.TakeBatch(reqs, h.Access(), nil); reqs[0].Err != nil {
		t.Fatal(reqs[0].Err)
	}
}

func shows(t testing.TB, h *calltest.Host, key, want string) {
	t.Helper()
	if got := inWords(h.Do("CL.SHOW", key)); got != want {
		t.Errorf("%s\n got %s\nwant %s", key, got, want)
	}
}

func TestShow(t *testing.T) {
	for _, test := range []struct {
		limit string
		o     store.TakeOptions
		want  string
	}{
		{"5/1m", store.TakeOptions{Cost: 2}, "limit 5/1m policy $-1 capacity 5 used 2 remaining 3 full_in_ms 24000 next_in_ms 0 waiting 0 leases 0 blocked_ms 0"},
		{"5/1m", store.TakeOptions{Cost: 5}, "limit 5/1m policy $-1 capacity 5 used 5 remaining 0 full_in_ms 60000 next_in_ms 12000 waiting 0 leases 0 blocked_ms 0"},
		{"5/1m", store.TakeOptions{Cost: 7, Mode: cell.Force}, "limit 5/1m policy $-1 capacity 5 used 7 remaining 0 full_in_ms 84000 next_in_ms 36000 waiting 0 leases 0 blocked_ms 0"},
		{"9/1s,burst=2", store.TakeOptions{Cost: 1}, "limit 9/1s,burst=2 policy $-1 capacity 2 used 1 remaining 1 full_in_ms 112 next_in_ms 0 waiting 0 leases 0 blocked_ms 0"},
		{"5/minute", store.TakeOptions{Cost: 5}, "limit 5/minute policy $-1 capacity 5 used 5 remaining 0 full_in_ms 60000 next_in_ms 60000 waiting 0 leases 0 blocked_ms 0"},
		{"5/1m,algo=slide,buckets=6", store.TakeOptions{Cost: 4}, "limit 5/1m,algo=slide,buckets=6 policy $-1 capacity 5 used 4 remaining 1 full_in_ms 60000 next_in_ms 0 waiting 0 leases 0 blocked_ms 0"},
		{"5/1m,algo=log", store.TakeOptions{Cost: 5}, "limit 5/1m,algo=log policy $-1 capacity 5 used 5 remaining 0 full_in_ms 60000 next_in_ms 60000 waiting 0 leases 0 blocked_ms 0"},
		{"5/1m,algo=conc", store.TakeOptions{Cost: 3}, "limit 5/1m,algo=conc policy $-1 capacity 5 used 3 remaining 2 full_in_ms 60000 next_in_ms 0 waiting 0 leases 1 blocked_ms 0"},
		{"60/1m,warmup=5s", store.TakeOptions{Cost: 2}, "limit 60/1m,burst=1,warmup=5s policy $-1 capacity 60 used 1 remaining 0 full_in_ms 6400 next_in_ms 4400 waiting 0 leases 0 blocked_ms 0"},
		{"5/1m", store.TakeOptions{Cost: 5, Terms: &store.Terms{LeaseNS: 1e9}}, "limit 5/1m policy $-1 capacity 5 used 5 remaining 0 full_in_ms 60000 next_in_ms 12000 waiting 0 leases 1 blocked_ms 0"},
		{"1/1ms", store.TakeOptions{Cost: 1, Terms: &store.Terms{LeaseNS: 1e9}}, "limit 1/1ms policy $-1 capacity 1 used 1 remaining 0 full_in_ms 1 next_in_ms 1 waiting 0 leases 1 blocked_ms 0"},
	} {
		h := host()
		take(t, h, test.limit, test.o)
		shows(t, h, "k", "*1 *20 "+test.want)
		if test.limit == "1/1ms" { // only its lease is left
			h.NowNS += 5e6
			shows(t, h, "k", "*1 *20 limit 1/1ms policy $-1 capacity 1 used 0 remaining 1 full_in_ms 0 "+
				"next_in_ms 0 waiting 0 leases 1 blocked_ms 0")
		}
	}
}

// A call with another count changes a limit, granted or denied, and CL.SHOW tells so, whether or not a lease is held.
func TestShowAChangedLimit(t *testing.T) {
	for _, leaseNS := range []int64{0, 1e9} {
		h := host()
		take(t, h, "10/1h", store.TakeOptions{Cost: 5, Terms: &store.Terms{LeaseNS: leaseNS}})
		take(t, h, "4/1h", store.TakeOptions{Cost: 3})
		shows(t, h, "k", "*1 *20 limit 4/1h policy $-1 capacity 4 used 5 remaining 0 full_in_ms 4500000 next_in_ms 1800000 waiting 0 "+
			"leases "+fmt.Sprint(leaseNS/1e9)+" blocked_ms 0")
	}
}

// A policy shows its present limit, by which the next call is decided: what was used is carried over, and a block ends as it says.
func TestShowPolicies(t *testing.T) {
	h := host()
	h.Do("CL.POLICY", "SET", "p", "5/1m,block=10m")
	take(t, h, "@p", store.TakeOptions{Cost: 4})
	take(t, h, "5/1m,algo=window", store.TakeOptions{Cost: 1})
	const window = "limit 5/1m,algo=window policy $-1 capacity 5 used 1 remaining 4 full_in_ms 60000 next_in_ms 0 waiting 0 leases 0 blocked_ms 0"
	show := func(policy string) {
		t.Helper()
		shows(t, h, "k", "*2 *20 "+window+" *20 "+policy)
	}
	show("limit 5/1m,block=10m policy p capacity 5 used 4 remaining 1 full_in_ms 48000 next_in_ms 0 waiting 0 leases 0 blocked_ms 0")
	h.Do("CL.POLICY", "SET", "p", "50/1m,block=10m")
	show("limit 50/1m,block=10m policy p capacity 50 used 4 remaining 46 full_in_ms 4800 next_in_ms 0 waiting 0 leases 0 blocked_ms 0")
	take(t, h, "@p", store.TakeOptions{Cost: 47})
	show("limit 50/1m,block=10m policy p capacity 50 used 4 remaining 0 " +
		"full_in_ms 600000 next_in_ms 600000 waiting 0 leases 0 blocked_ms 600000")
	h.Do("CL.POLICY", "SET", "p", "50/1m,block=1s")
	show("limit 50/1m,block=1s policy p capacity 50 used 4 remaining 0 " +
		"full_in_ms 4800 next_in_ms 1000 waiting 0 leases 0 blocked_ms 1000")
	h.Do("CL.POLICY", "DEL", "p")
	shows(t, h, "k", "*1 *20 "+window)
}

func TestShowStrings(t *testing.T) {
	h := host()
	shows(t, h, "k", "*0")
	put := func(v store.Value) {
		if err := h.Store.Update([]byte("k"), h.Access(), func(store.Value, bool) (store.Value, bool) { return v, true }); err != nil {
			t.Fatal(err)
		}
	}
	put(store.Value{TAT: uint64(h.NowNS) + 1_500_001, ExpiryNS: store.NoExpiry})
	shows(t, h, "k", fmt.Sprintf("*1 *4 tat %d full_in_ms 2", h.NowNS+1_500_001))
	put(store.Value{Count: -7, ExpiryNS: store.NoExpiry})
	shows(t, h, "k", "*1 *2 count -7")
	h.RESP3 = true
	shows(t, h, "k", "*1 %1 count -7")
}

// waited is a store in which some wait for each policy's limit of key k.
type waited struct{ memory.Port }

func (waited) WaitingFor(c *store.Call) int64 {
	if string(c.Key) != "k" || c.Policy == nil {
		return 0
	}
	return c.Limit.Count
}

// How many wait is asked for each limit.
func TestShowWaiting(t *testing.T) {
	var h *calltest.Host
	h = calltest.New(memory.Options{},
		Rows(func() Server {
			return Server{Store: waited{memory.Port{Store: h.Store}}, InForce: h.Store, LogMax: 100}
		})...)
	h.Do("CL.POLICY", "SET", "p", "5/1m")
	take(t, h, "@p", store.TakeOptions{Cost: 1})
	shows(t, h, "k", "*1 *20 limit 5/1m policy p capacity 5 used 1 remaining 4 "+
		"full_in_ms 12000 next_in_ms 0 waiting 5 leases 0 blocked_ms 0")
}

// A key of many leases is looked at aside, and only live leases count.
func TestShowManyLeases(t *testing.T) {
	h := host()
	for range 2000 {
		take(t, h, "3000/1m,algo=conc", store.TakeOptions{Cost: 1})
		h.NowNS += 1e6
	}
	h.NowNS += 59e9
	const want = "*1 *20 limit 3000/1m,algo=conc policy $-1 capacity 3000 used 999 remaining 2001 full_in_ms 999 next_in_ms 0 waiting 0 leases 999 blocked_ms 0"
	shows(t, h, "k", want)
	h.InExec = true
	shows(t, h, "k", want)
}
