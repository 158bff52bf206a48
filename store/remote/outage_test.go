package remote

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"celld/internal/celldtest"
	"celld/store"
	"celld/store/policy"
	"celld/store/remote/link/linktest"
)

// The log tells that an outage begins, and how many calls were decided and refused until its end. INFO tells who decides.
func TestTheLogOfAnOutage(t *testing.T) {
	var log lines
	s := newTestStore(t, celldtest.NewAiling(t).Socket, Options{Failures: modesOf("deny"), Log: log.log()})
	h := s.byHand()
	if is, _ := s.Mode(); is != "engine" {
		t.Error(is)
	}
	s.stats.Refused.Store(200)
	s.link.Break("k", linktest.Down)
	if is, since := s.Mode(); is != "deny" || !since.Equal(h.Now()) {
		t.Errorf("%s since %v", is, since)
	}
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text,
		`"msg":"the engine does not answer, calls go by --store-failure","mode":"deny","why":"a test says so"`) {
		t.Errorf("the log says\n%s", text)
	}
	for range 3 {
		s.failure.Throttle(&store.Request{Bucket: bucketOf(t, 15, 30, 60)}, s.link.Down(), store.Access{})
	}
	s.stats.Refused.Add(4)
	celldtest.Eventually(t, "it has ended", func() bool { h.Pass(200 * time.Millisecond); return strings.Count(log.String(), "\n") == 2 })
	if text := log.String(); !strings.Contains(text, `"msg":"the engine answers again","after":`) ||
		!strings.Contains(text, `"decided_without":3,"refused":4}`) {
		t.Errorf("the log says\n%s", text)
	}
	if is, _ := s.Mode(); is != "engine" {
		t.Error(is)
	}
}

// What is known of the engine, and what is not.
func TestFacts(t *testing.T) {
	s, _ := byItself(t)
	s.heldUp("k")
	f := s.Facts()
	if f.Since = (time.Time{}); f != (store.Facts{Kind: "standalone", Mode: "error", WaitingBytes: s.queues.Bytes(),
		MaxWaiting: defaultMaxWaiting}) {
		t.Errorf("%+v", f)
	}
	for i, n := range []*atomic.Int64{&s.stats.Requests, &s.stats.Failures, &s.stats.Timeouts, &s.stats.Conflicts,
		&s.stats.DenialsAnswered, &s.stats.DecidedWithout, &s.stats.Refused, &s.stats.Ahead.Decisions, &s.stats.Ahead.Taken,
		&s.stats.Ahead.GivenBack, &s.stats.Ahead.Ended} {
		n.Store(int64(i + 1))
	}
	if n := s.Facts().Counts; n != (store.Counts{Calls: 1, Failures: 2, Timeouts: 3, Conflicts: 4, DenialsRemembered: 5,
		DecidedWithout: 6, Refused: 7, DecidedAhead: 8, UnitsTaken: 9, UnitsGivenBack: 10, UnitsEnded: 11}) {
		t.Errorf("%+v", n)
	}
	s = openStore(t, Options{Policies: &policy.Set{}, URL: "unix://" + strings.TrimPrefix(celldtest.StartRedis(t), "unix:"),
		Failures: modesOf("local")})
	celldtest.Eventually(t, "the engine is known", func() bool { return s.Facts().ClockKnown })
	if f = s.Facts(); !strings.HasPrefix(f.Name, "unix:///") || f.Mode != "engine" || f.Away != nil || f.Version == "" ||
		f.Eviction == "" || f.Persistence == "" || f.SlotsKnown {
		t.Errorf("%+v", f)
	}
	s.link.Break("k", linktest.Down)
	if f = s.Facts(); f.Mode != "local" || f.Away == nil || f.Away.Error() != linktest.Down.Cause || f.Since.IsZero() {
		t.Errorf("%+v", f)
	}
}

// While the engine is away, nothing is known of what a key holds, whatever a caller asks for first.
func TestNothingIsForeignInAnOutage(t *testing.T) {
	for _, mode := range []string{"deny", "local"} {
		s := newTestStore(t, celldtest.NewAiling(t).Socket, Options{Failures: modesOf(mode)})
		s.link.Break("k", linktest.Down)
		s.failure.Throttle(&store.Request{Bucket: bucketOf(t, 15, 30, 60)}, s.link.Down(), store.Access{}) // which makes the table of local
		read := make(signal, 1)
		tx := s.Open([][]byte{[]byte("k")}, store.OpenOptions{Leases: true}, read)
		<-read
		if kind, foreign := tx.Foreign([]byte("k")); foreign {
			t.Errorf("%s: the key holds a %q that is not celld's", mode, kind)
		}
		if err := tx.Err(); (err == nil) != (mode == "local") {
			t.Errorf("%s: %v", mode, err)
		}
		tx.Close()
	}
}
