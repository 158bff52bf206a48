package remote

import (
	"strings"
	"testing"
	"time"
)

// An outage that begins less than a minute after the last has ended must be over for longer before its end is told.
func TestOutagesThatFollow(t *testing.T) {
	for apart, wait := range map[time.Duration]time.Duration{time.Minute - 1: flapping, time.Minute: settled, time.Hour: settled} {
		var log lines
		s := alone(t, "deny")
		s.options.Log = log.log()
		h := s.byHand()
		down := &DownError{Cause: "a test says so"}
		ends := func() int { return strings.Count(log.String(), "answers again") }
		s.failure.opened(down)
		s.failure.closed()
		h.pass(settled)
		if ends() != 1 {
			t.Fatalf("the log says\n%s", log.String())
		}
		h.pass(apart - settled)
		s.failure.opened(down)
		s.failure.closed()
		h.pass(wait - 1)
		if ends() != 1 {
			t.Errorf("%v: it ends too early", apart)
		}
		if h.pass(1); ends() != 2 {
			t.Errorf("%v: it does not end", apart)
		}
	}
}

// An outage lasts while any part of the engine does not answer. Its end tells what was decided and refused meanwhile.
func TestAnOutageOfSeveralParts(t *testing.T) {
	var log lines
	s := newTestStore(t, newAiling(t).socket, Options{Failures: Failures{all: FailDeny}, Log: log.log()})
	h := s.byHand()
	began := h.now()
	down := &DownError{Cause: "a test says so"}
	mode := func(want string, since time.Time) {
		t.Helper()
		if is, at := s.Mode(); is != want || !at.Equal(since) {
			t.Errorf("%s since %v, want %s since %v", is, at, want, since)
		}
	}
	mode("engine", began)
	s.stats.DecidedWithout.Store(100)
	s.stats.Refused.Store(200)
	h.pass(time.Hour)
	s.failure.opened(down)
	h.pass(time.Second)
	s.failure.opened(down)
	mode("deny", began.Add(time.Hour))
	s.stats.DecidedWithout.Add(3)
	s.stats.Refused.Add(4)
	h.pass(time.Second)
	s.failure.closed()
	mode("deny", began.Add(time.Hour))
	if h.waiting() != 0 {
		t.Error("it settles though a part is away")
	}
	s.failure.closed()
	mode("engine", began.Add(time.Hour+2*time.Second))
	h.pass(settled)
	if n := strings.Count(log.String(), "does not answer"); n != 1 || !strings.Contains(log.String(), `"decided_without":3,"refused":4`) {
		t.Errorf("the log says\n%s", log.String())
	}
	s.client.Store(nil)
	mode("deny", began.Add(time.Hour+2*time.Second))
}

// The slots of a Cluster are asked for when an outage begins, and when it ends.
func TestSlotsAreAskedForInAnOutage(t *testing.T) {
	e := newAiling(t)
	s := newTestStore(t, e.socket, Options{})
	h := s.byHand()
	asked := func(n int) func() bool { return func() bool { return e.count() == n } }
	s.failure.opened(&DownError{})
	s.failure.closed()
	if h.pass(settled); e.count() != 0 {
		t.Error("an engine that is no Cluster is asked")
	}
	s.cluster.Store(true)
	s.failure.opened(&DownError{})
	until(t, "it is asked at the beginning", asked(1))
	s.failure.closed()
	h.pass(flapping)
	until(t, "it is asked at the end", asked(2))
	s.client.Store(nil)
	s.ownersAgain()
}
