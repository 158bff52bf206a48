package link

import (
	"slices"
	"testing"
	"time"

	"celld/internal/celldtest"
)

// An outage that begins less than a minute after the last has ended must be over for longer before its end is told.
func TestOutagesThatFollow(t *testing.T) {
	for apart, wait := range map[time.Duration]time.Duration{time.Minute - 1: flapping, time.Minute: settled, time.Hour: settled} {
		var ends []time.Duration
		s := newLink(Options{OutageEnds: func(lasted time.Duration) { ends = append(ends, lasted) }})
		h := s.byHand()
		s.opened(testDown)
		h.Pass(7)
		s.closed()
		if h.Pass(settled); len(ends) != 1 || ends[0] != 7 {
			t.Fatal(ends)
		}
		h.Pass(apart - settled)
		s.opened(testDown)
		s.closed()
		h.Pass(wait - 1)
		if len(ends) != 1 {
			t.Errorf("%v: it ends too early", apart)
		}
		if h.Pass(1); len(ends) != 2 {
			t.Errorf("%v: it does not end", apart)
		}
	}
}

// An outage lasts while any part of the engine does not answer. Its beginning and its end are told once, however often that comes and goes.
func TestAnOutageOfSeveralParts(t *testing.T) {
	var told []string
	s := newTestLink(t, celldtest.NewAiling(t).Socket, Options{
		OutageBegins: func(why string) { told = append(told, why) }, OutageEnds: func(lasted time.Duration) {
			told = append(told,
				lasted.String())
		},
	})
	h := s.byHand()
	began := h.Now()
	answers := func(want bool, since time.Time) {
		t.Helper()
		if is, at := s.Answers(); is != want || !at.Equal(since) {
			t.Errorf("%v since %v, want %v since %v", is, at, want, since)
		}
	}
	answers(true, began)
	h.Pass(time.Hour)
	s.opened(testDown)
	h.Pass(time.Second)
	s.opened(testDown)
	answers(false, began.Add(time.Hour))
	h.Pass(time.Second)
	s.closed()
	answers(false, began.Add(time.Hour))
	if h.Waiting() != 0 {
		t.Error("it settles though a part is away")
	}
	s.closed()
	answers(true, began.Add(time.Hour+2*time.Second))
	h.Pass(settled - 1)
	s.opened(testDown)
	s.closed()
	h.Pass(settled - 1)
	if want := []string{testDown.Cause}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	h.Pass(1)
	if want := []string{testDown.Cause, "2.999999999s"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	s.client.Store(nil)
	answers(false, began.Add(time.Hour+3*time.Second-1))
}

// The owners of hash slots are read when an outage begins, and when it ends.
func TestOwnersAreReadInAnOutage(t *testing.T) {
	e := celldtest.NewAiling(t)
	s := newTestLink(t, e.Socket, Options{})
	h := s.byHand()
	asked := func(n int) func() bool { return func() bool { return e.Count() == n } }
	s.opened(&DownError{})
	s.closed()
	if h.Pass(settled); e.Count() != 0 {
		t.Error("an engine that is no Cluster is asked")
	}
	s.cluster.Store(true)
	s.opened(&DownError{})
	eventually(t, "it is asked at the beginning", asked(1))
	s.closed()
	h.Pass(flapping)
	eventually(t, "it is asked at the end", asked(2))
	s.client.Store(nil)
	s.readOwnersAgain()
}
