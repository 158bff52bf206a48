package link

import (
	"testing"
	"time"

	"celld/internal/celldtest"
	"celld/store"
)

// silent is a Store whose engine has not answered a call in time, so that there is a health probe. resume makes it answer all.
func silent(t *testing.T) (s *Link, e *celldtest.Ailing, h *celldtest.Hands, resume func()) {
	t.Helper()
	e = celldtest.NewAiling(t)
	s = newTestLink(t, e.Socket, Options{})
	h = s.byHand()
	resume = e.Hangs(t)
	eventually(t, "a call that was sent is late", func() bool { return isDown(s.askFor("k", time.Millisecond)) && h.Waiting() == 1 })
	d := s.pipelines.of("k").breaker.doubted()
	eventually(t, "the probe is on its way", func() bool {
		if !d.sending.Swap(true) { // it was lost with the connection of the call
			go d.send()
		}
		return len(e.Probes()) > 0
	})
	if why := s.DownAt("k"); why != nil {
		t.Fatal(why)
	}
	return s, e, h, resume
}

func (b *breaker) doubted() *healthProbe {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.health
}

func turns(h *celldtest.Hands, s *Link, n int) {
	for range n {
		h.Pass(s.options.Timeout / probeSlices)
	}
}

// An engine that is silent opens the breaker once it has had a whole timeout for a health probe, however many calls are late. The
// breaker's probe, which it answers late, closes it.
func TestTheBreakerOfASilentEngine(t *testing.T) {
	s, _, h, resume := silent(t)
	turns(h, s, probeSlices-1)
	for range 2 * failuresToOpen {
		if err := s.askFor("k", time.Millisecond); !isDown(err) {
			t.Fatal(err)
		}
	}
	if timeouts := s.options.Stats.Timeouts.Load(); timeouts <= 2*failuresToOpen || s.options.Stats.Failures.Load() != timeouts {
		t.Errorf("%d timeouts of %d failures", timeouts, s.options.Stats.Failures.Load())
	}
	if why := s.DownAt("k"); why != nil || h.Waiting() != 1 {
		t.Fatal(why, h.Waiting())
	}
	turns(h, s, 1)
	if why := s.DownAt("k"); why == nil || why.Error() != CauseTimeout {
		t.Fatal(why)
	}
	resume()
	eventually(t, "it is closed", func() bool {
		h.Pass(probePause) // a call that is late may take the connection with it, and a probe
		return s.DownAt("k") == nil
	})
	if err := s.askFor("k", patient); err != nil {
		t.Fatal(err)
	}
}

// A call that has used up its time before it is sent says nothing of the engine.
func TestWaitingHereIsNoFailureOfTheEngine(t *testing.T) {
	e := celldtest.NewAiling(t)
	s := newTestLink(t, e.Socket, Options{})
	h := s.byHand()
	for range 2 * failuresToOpen {
		if err := s.askFor("k", -time.Millisecond); err != ErrLate {
			t.Fatal(err)
		}
		h.Pass(s.options.Timeout)
	}
	if b := &s.pipelines.of("k").breaker; s.DownAt("k") != nil || h.Waiting() != 0 || b.row.Load() != 0 || e.Count() != 0 {
		t.Fatalf("open: %v, %d timers, %d failures, %d sent", s.DownAt("k"), h.Waiting(), b.row.Load(), e.Count())
	}
	if n := s.options.Stats.Timeouts.Load(); n != 2*failuresToOpen {
		t.Errorf("%d timeouts are counted", n)
	}
}

// A process that does not run for an hour has not waited for an hour: it reads the answer that has come meanwhile, and nothing opens.
func TestAProcessThatDoesNotRun(t *testing.T) {
	s, _, h, resume := silent(t)
	h.Pass(time.Hour)
	turns(h, s, probeSlices-2)
	if why := s.DownAt("k"); why != nil {
		t.Fatal(why)
	}
	resume()
	b := &s.pipelines.of("k").breaker
	eventually(t, "the doubt has ended", func() bool {
		if d := b.doubted(); d != nil && !d.sending.Swap(true) { // the call has taken the connection with it, and the probe
			d.send()
		}
		return b.doubted() == nil
	})
	turns(h, s, 1)
	if why := s.DownAt("k"); why != nil || b.row.Load() != 0 || h.Waiting() != 0 {
		t.Fatal(why, b.row.Load(), h.Waiting())
	}
}

// A write that is answered ends a health probe that is not.
func TestAWriteEndsAHealthProbe(t *testing.T) {
	s, _, h, _ := silent(t)
	s.pipelines.of("k").breaker.answered(&Request{Keys: []string{"k"}}, store.ErrFull)
	turns(h, s, probeSlices)
	if why := s.DownAt("k"); why != nil {
		t.Fatal(why)
	}
}

// A probe that is refused opens the breaker at once, and says why.
func TestAHealthProbeConfirmsATimeout(t *testing.T) {
	e := celldtest.NewAiling(t)
	s := newTestLink(t, e.Socket, Options{})
	s.byHand()
	e.Answers("-LOADING Redis is loading the dataset in memory\r\n")
	s.pipelines.of("k").breaker.late("k") // without a call, which would take the connection with it, and the probe
	eventually(t, "it is open", func() bool { return s.DownAt("k") != nil })
	if why := s.DownAt("k"); why.Error() != "the engine is loading its data" {
		t.Fatal(why)
	}
}
