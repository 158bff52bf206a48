package failure

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"celld/cell"
	"celld/internal/celldtest"
	"celld/store"
	"celld/store/policy"
)

// locally asks as often as told, without time passing, and returns how many passed, and the last request.
func (s *Decider) locally(t *testing.T, key, limit string, times int, o store.TakeOptions) (passed int, r store.TakeRequest) {
	t.Helper()
	for range times {
		r = store.TakeRequest{Calls: s.callsOf(t, key, limit), TakeOptions: o}
		if s.Take(&r, sent, store.Access{NowNS: atNS}); r.Err != nil {
			t.Fatal(r.Err)
		}
		if !r.Taken.Limited {
			passed++
		}
	}
	return passed, r
}

// A share of each limit passes, one call at least.
func TestLocalDecidesByAShare(t *testing.T) {
	s := alone(t, "local")
	l, _ := cell.ParseLimit("60/1m")
	if _, err := s.options.Policies.SetPolicy("api", []cell.Limit{l}, policy.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		limit string
		want  int
	}{
		{"100/1m", 5}, {"100/1m,burst=40", 2}, {"100/1m,burst=1", 1}, {"7/1m", 1}, {"100/1m,algo=window", 5}, {"100/1m,algo=slide", 5},
		{"100/1m,algo=slide,buckets=6", 5}, {"100/1m,algo=log", 5}, {"3/1h,algo=log", 1}, {"100/1m,burst=1,warmup=5s", 1}, {"@api", 3},
		{"@api:cust42", 0},
	} {
		passed, r := s.locally(t, strings.TrimSuffix(c.limit, ":cust42"), c.limit, 20, store.TakeOptions{Cost: 1})
		if passed != c.want || r.Calls[0].Decision.Limit != r.Calls[0].Limit.Capacity() || !r.Calls[0].Ruled {
			t.Errorf("%s: %d passed, and then %+v", c.limit, passed, r.Calls[0].Decision)
		}
	}
	several := store.TakeRequest{Calls: s.callsOf(t, "several", "100/1m", "else", "100/1m"), TakeOptions: store.TakeOptions{Cost: 1}}
	several.Calls[1].Own, several.Calls[1].Cost = true, 4
	for _, limited := range []bool{false, true} {
		if s.Take(&several, sent, store.Access{NowNS: atNS}); several.Taken.Limited != limited || several.Calls[1].Decision.Remaining != 1 {
			t.Errorf("4 of a share of 5: %+v, %+v", several.Taken, several.Calls[1].Decision)
		}
	}
	var last store.Request
	for i := range 4 {
		last = store.Request{Key: []byte("t"), Bucket: bucketOf(t, 59, 60, 60), Quantity: 1}
		s.Throttle(&last, sent, store.Access{NowNS: atNS})
		if last.Err != nil || last.Decision.Limited != (i == 3) || last.Decision.Limit != 60 {
			t.Errorf("call %d: %+v, %v", i, last.Decision, last.Err)
		}
	}
	if last.Decision.RetryAfterNS != uint64(20*time.Second) {
		t.Errorf("60 a minute are 3 a minute, and one passes in %v", time.Duration(last.Decision.RetryAfterNS))
	}
	again := last
	s.Throttle(&again, sent, store.Access{NowNS: atNS + int64(last.Decision.RetryAfterNS)})
	if again.Err != nil || again.Decision.Limited {
		t.Errorf("then: %+v, %v", again.Decision, again.Err)
	}
	s.options.LocalShare = 3
	if passed, _ := s.locally(t, "third", "100/1m", 40, store.TakeOptions{Cost: 1}); passed != 33 {
		t.Errorf("%d passed of a third of 100", passed)
	}
}

// A quantity that fits the whole and not the share is answered as too much, and a refund of it fills the key.
func TestLocalOfALargeQuantity(t *testing.T) {
	s := alone(t, "local")
	year := func(quantity int64) store.Request {
		r := store.Request{Key: []byte("k"), Bucket: bucketOf(t, 40, 1, 31_536_000), Quantity: quantity}
		s.Throttle(&r, sent, store.Access{NowNS: atNS})
		return r
	}
	if r := year(2); r.Err != nil || r.Decision.Limited {
		t.Fatalf("%+v, %v", r.Decision, r.Err)
	}
	if r := year(100); r.Err != nil || !r.Decision.Limited || r.Decision.RetryAfterNS != cell.Never || r.Decision.Limit != 41 ||
		r.Decision.Remaining != 0 {
		t.Errorf("%+v, %v", r.Decision, r.Err)
	}
	if r := year(-100); r.Err != nil || r.Decision.Limited || r.Decision.ResetAfterNS != 0 {
		t.Errorf("%+v, %v", r.Decision, r.Err)
	}
	if r := year(2); r.Err != nil || r.Decision.Limited {
		t.Errorf("%+v, %v", r.Decision, r.Err)
	}
}

// What a share never lets pass, but the engine would, is to be asked again when the engine may answer. What neither does is told so.
func TestLocalOfMoreThanAShare(t *testing.T) {
	s := alone(t, "local")
	for _, limit := range []string{"100/1m", "100/1m,algo=window", "100/1m,algo=slide", "100/1m,algo=slide,buckets=6", "100/1m,algo=log",
		"100/1m,algo=conc", "100/1m,block=9s"} {
		for cost, want := range map[int64]uint64{6: deniedNS, 100: deniedNS, 101: cell.Never} {
			_, r := s.locally(t, limit, limit, 1, store.TakeOptions{Cost: cost})
			if d := r.Calls[0].Decision; !r.Taken.Limited || r.Taken.RetryAfterNS != want || d.RetryAfterNS != want {
				t.Errorf("%d of %s: %+v, %+v", cost, limit, r.Taken, d)
			}
		}
	}
	both := store.TakeRequest{Calls: s.callsOf(t, "a", "100/1m", "b", "50/1m"), TakeOptions: store.TakeOptions{Cost: 60}}
	if s.Take(&both, sent, store.Access{NowNS: atNS}); both.Taken.Binding != 1 || both.Taken.RetryAfterNS != cell.Never {
		t.Errorf("%+v", both.Taken)
	}
	if _, err := s.options.Policies.PutRule(policy.Rule{Deny: true, Pattern: "bad"}, atNS); err != nil {
		t.Fatal(err)
	}
	if _, r := s.locally(t, "bad", "100/1m", 1, store.TakeOptions{Cost: 6}); r.Taken.RetryAfterNS != cell.Never {
		t.Errorf("by a rule: %+v", r.Taken)
	}
	for quantity, want := range map[int64]uint64{6: deniedNS, 100: deniedNS, 101: cell.Never} {
		r := store.Request{Key: []byte("t"), Bucket: bucketOf(t, 99, 100, 60), Quantity: quantity}
		if s.Throttle(&r, sent, store.Access{NowNS: atNS}); r.Err != nil || !r.Decision.Limited || r.Decision.RetryAfterNS != want {
			t.Errorf("%d: %+v, %v", quantity, r.Decision, r.Err)
		}
	}
}

// Leases are the table's, and end there. What is given back is what was taken there. RESERVE books ahead, and WAIT does not wait.
func TestLocalTerms(t *testing.T) {
	s := alone(t, "local")
	a := store.Access{NowNS: atNS}
	o := func() store.TakeOptions { return store.TakeOptions{Cost: 1, Terms: &store.Terms{}} }
	passed, _ := s.locally(t, "conc", "40/1m,algo=conc", 1, o())
	_, r := s.locally(t, "conc", "40/1m,algo=conc", 1, o())
	if third, _ := s.locally(t, "conc", "40/1m,algo=conc", 1, o()); passed != 1 || r.Terms.Lease == 0 || third != 0 {
		t.Fatalf("%d, lease %d, %d", passed, r.Terms.Lease, third)
	}
	if was, err := s.Local().Release([]byte("conc"), r.Terms.Lease, a); !was || err != nil {
		t.Error("the lease is not the table's")
	}
	if again, _ := s.locally(t, "conc", "40/1m,algo=conc", 1, o()); again != 1 {
		t.Error("what was released is not free")
	}

	s.locally(t, "give", "40/1m", 2, store.TakeOptions{Cost: 1})
	if _, r := s.locally(t, "give", "40/1m", 1, store.TakeOptions{Cost: -5}); r.Taken.Granted != -2 {
		t.Errorf("%d were given back", -r.Taken.Granted)
	}

	s.locally(t, "terms", "40/1m", 2, store.TakeOptions{Cost: 1})
	wait := store.TakeOptions{Cost: 1, Terms: &store.Terms{Mode: store.Wait, MaxNS: int64(time.Hour)}}
	if passed, _ := s.locally(t, "terms", "40/1m", 1, wait); passed != 0 {
		t.Error("a WAIT passes that would have to wait")
	}
	reserve := store.TakeOptions{Cost: 1, Terms: &store.Terms{Mode: store.Reserve, MaxNS: int64(time.Hour)}}
	if passed, r := s.locally(t, "terms", "40/1m", 1, reserve); passed != 1 || r.Terms.WaitNS != uint64(30*time.Second) {
		t.Errorf("RESERVE: %d passed, %+v", passed, r.Terms)
	}
}

// The table is bounded, and is forgotten when the outage is over.
func TestTheLocalTable(t *testing.T) {
	s := alone(t, "local")
	s.options.LocalKeys, s.options.LocalBytes = 100, 1<<20
	if s.Local() != nil {
		t.Fatal("there is a table before it is needed")
	}
	for i := range 1000 {
		s.locally(t, fmt.Sprint(i), "10/1h", 1, store.TakeOptions{Cost: 1})
	}
	if n := s.Local().Len(atNS); n != 100 {
		t.Errorf("it has %d keys", n)
	}
	if passed, _ := s.locally(t, "999", "10/1h", 1, store.TakeOptions{Cost: 1}); passed != 0 {
		t.Error("the one that was used last is forgotten")
	}
	if s.Begins("why"); s.Local() == nil {
		t.Error("it is forgotten with another outage")
	}
	if s.Ends(time.Second); s.Local() != nil {
		t.Error("it is not forgotten")
	}
}

// The log tells that an outage begins, and how many calls were decided and refused until its end.
func TestTheLogOfAnOutage(t *testing.T) {
	var log celldtest.LogBuffer
	s := New(Options{Policies: &policy.Set{}, Counts: &Counts{}, Log: slog.New(slog.NewJSONHandler(&log, nil))})
	s.options.Counts.DecidedWithout.Store(100)
	s.options.Counts.Refused.Store(200)
	s.Begins("a test says so")
	s.options.Counts.DecidedWithout.Add(3)
	s.options.Counts.Refused.Add(4)
	s.Ends(1300*time.Millisecond + 1)
	for _, want := range []string{
		`"level":"WARN","msg":"the engine does not answer, calls go by --store-failure","mode":"error","why":"a test says so"}`,
		`"level":"INFO","msg":"the engine answers again","after":1300000000,"decided_without":3,"refused":4}`,
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log says\n%swant %s", log.String(), want)
		}
	}
}

// A refund of nothing that fits a share is no call that never passes.
func TestLocalPeekThatDoesNotFit(t *testing.T) {
	s := alone(t, "local")
	r := store.Request{Key: []byte("k"), Bucket: bucketOf(t, 40, 1, 31_536_000)}
	if s.Throttle(&r, sent, store.Access{NowNS: atNS}); r.Err != nil || r.Decision.Limited {
		t.Errorf("%+v, %v", r.Decision, r.Err)
	}
	if d := whole(cell.Decision{Limit: 5}, 5, 100); d.Limit != 100 {
		t.Errorf("a share's: %d", d.Limit)
	}
	if d := whole(cell.Decision{Limit: 7}, 5, 100); d.Limit != 7 {
		t.Errorf("a rule's: %d", d.Limit)
	}
}
