package remote

import (
	"strings"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/store"
)

// The log tells that an outage begins, and how many calls were decided and refused until its end. INFO tells who decides.
func TestTheLogOfAnOutage(t *testing.T) {
	var log lines
	s := newTestStore(t, harness.NewAiling(t).Socket, Options{Failures: Failures{all: FailDeny}, Log: log.log()})
	h := s.byHand()
	if is, _ := s.Mode(); is != "engine" {
		t.Error(is)
	}
	s.stats.Refused.Store(200)
	s.link.Break("k", testDown)
	if is, since := s.Mode(); is != "deny" || !since.Equal(h.now()) {
		t.Errorf("%s since %v", is, since)
	}
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, `"msg":"the engine does not answer, calls go by --store-failure","mode":"deny","why":"a test says so"`) {
		t.Errorf("the log says\n%s", text)
	}
	for range 3 {
		s.failure.throttle(&store.Request{Bucket: bucketOf(t, 15, 30, 60)}, s.link.Down(), store.Access{})
	}
	s.stats.Refused.Add(4)
	until(t, "it has ended", func() bool { h.pass(200 * time.Millisecond); return strings.Count(log.String(), "\n") == 2 })
	if text := log.String(); !strings.Contains(text, `"msg":"the engine answers again","after":`) || !strings.Contains(text, `"decided_without":3,"refused":4}`) {
		t.Errorf("the log says\n%s", text)
	}
	if is, _ := s.Mode(); is != "engine" {
		t.Error(is)
	}
}

// INFO tells what is known of the engine, and leaves out what is not.
func TestFacts(t *testing.T) {
	show := func(s *Store) string {
		var all []string
		for _, f := range s.Facts() {
			if f.Name != "store_mode_since" {
				all = append(all, strings.TrimPrefix(f.Name, "store_")+"="+f.Value)
			}
		}
		return strings.Join(all, " ")
	}
	s, _ := byItself(t)
	s.queues.bytes.Add(77)
	if got, want := show(s), "store= engine_kind=standalone mode=error away=0 waiting_bytes=77"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	s = openStore(t, Options{URL: harness.StartRedis(t), Failures: Failures{all: FailLocal}})
	until(t, "the engine is known", func() bool { return strings.Contains(show(s), "clock_ahead") })
	got := show(s)
	for _, want := range []string{"store=unix:///", " mode=engine away=0 engine_version=", " engine_eviction=", " engine_persistence=", " engine_clock_ahead_usec="} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nlacks %s", got, want)
		}
	}
	s.link.Break("k", testDown)
	if got := show(s); !strings.Contains(got, " mode=local away=1 away_because=a test says so ") {
		t.Error(got)
	}
}
