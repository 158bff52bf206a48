package link

import (
	"errors"
	"testing"
	"time"

	"celld/internal/celldtest"
	"celld/store"
)

// byItself is a Store without a connection, whose timers a test moves.
func byItself(t *testing.T) (*Link, *celldtest.Hands) {
	t.Helper()
	s := newLink(Options{Timeout: time.Second})
	return s, s.byHand()
}

var testDown = &DownError{Cause: "a test says so", Sent: true}

// A row of failures opens the breaker by their number, or once they last for a timeout. The row begins with the first.
func TestHowLongFailuresLast(t *testing.T) {
	for _, c := range []struct {
		pauses []time.Duration // before each failure
		opens  bool
	}{
		{[]time.Duration{0, time.Second - 1}, false},
		{[]time.Duration{0, time.Second}, true},
		{[]time.Duration{time.Hour}, false},
		{[]time.Duration{0, time.Second / 2, time.Second/2 - 1}, false},
		{[]time.Duration{0, time.Second / 2, time.Second / 2}, true},
		{[]time.Duration{0, 0, 0, 0}, false},
		{[]time.Duration{0, 0, 0, 0, 0}, true},
	} {
		s, h := byItself(t)
		b := &s.pipelines.all[0].breaker
		for _, pause := range c.pauses {
			h.Pass(pause)
			b.answered(&Request{Keys: []string{"k"}}, testDown)
		}
		down := b.down()
		if (down != nil) != c.opens || c.opens != (h.Waiting() == 1) {
			t.Errorf("%v: %v, %d timers", c.pauses, down, h.Waiting())
		}
		if e := (*DownError)(nil); c.opens && (!errors.As(down, &e) || e.Sent || e.Cause != testDown.Cause) {
			t.Errorf("calls are told %#v", down)
		}
	}
}

// Keys that a Cluster is moving say nothing of a master, except that it answers.
func TestMovingIsNoFailure(t *testing.T) {
	s, h := byItself(t)
	b := &s.pipelines.all[0].breaker
	for range 2 * failuresToOpen {
		b.answered(&Request{Keys: []string{"k"}}, testDown)
		b.answered(&Request{Keys: []string{"k"}}, &DownError{Cause: CauseMoving})
	}
	if b.down() != nil || b.row.Load() != 0 || h.Waiting() != 0 {
		t.Error(b.down(), b.row.Load(), h.Waiting())
	}
}

// Opening it twice is one outage, with one probe.
func TestABreakerOpensOnce(t *testing.T) {
	s, h := byItself(t)
	b := &s.pipelines.all[0].breaker
	b.open(testDown, "k")
	b.open(&DownError{Cause: "another"}, "k")
	if b.down().Error() != testDown.Cause || h.Waiting() != 1 || s.outage.open != 1 {
		t.Error(b.down(), h.Waiting(), s.outage.open)
	}
	b.row.Store(3)
	b.probed(store.ErrFull) // which the engine answers
	if b.down() != nil || b.row.Load() != 0 || s.outage.open != 0 {
		t.Error(b.down(), b.row.Load(), s.outage.open)
	}
}

// A pipeline's probe is about a key of the pipeline, also where that has a single hash slot, and moves with the pipeline.
func TestTheKeyOfAProbe(t *testing.T) {
	for _, prefix := range []string{"", "p:"} {
		s, _ := byItself(t)
		s.options.Prefix = prefix
		s.cluster.Store(true)
		var o owners
		key := prefix + "few"
		o[HashSlot(key)] = 3
		s.pipelines.owners.Store(&o)
		few, rest := &s.pipelines.all[3], &s.pipelines.all[0]
		few.breaker.open(testDown, key)
		probe := few.breaker.newProbe(nil)
		if name := probe.Keys[0]; s.pipelines.of(name) != few || name == key || name[:len(prefix)] != prefix || !probe.probe ||
			probe.Script != probeScript {
			t.Errorf("prefix %q: %q of slot %d is not of the lane of slot %d", prefix, name, HashSlot(name), HashSlot(key))
		}
		rest.breaker.open(testDown, prefix+"many")
		first := rest.breaker.newProbe(nil).Keys[0]
		if again := rest.breaker.newProbe(nil).Keys[0]; again != first || s.pipelines.of(first) != rest {
			t.Errorf("%q, then %q", first, again)
		}
		doubted := &s.pipelines.all[7]
		o[HashSlot(key+"2")] = 7
		s.pipelines.owners.Store(&o)
		doubted.breaker.late(key + "2")
		if name := doubted.breaker.newProbe(nil).Keys[0]; s.pipelines.of(name) != doubted {
			t.Errorf("prefix %q: the probe of a doubt is %q", prefix, name)
		}
		o2 := o
		o2[HashSlot(first)] = 5
		s.pipelines.owners.Store(&o2)
		if moved := rest.breaker.newProbe(nil).Keys[0]; moved == first || s.pipelines.of(moved) != rest {
			t.Errorf("its slot has moved, and the probe is %q", moved)
		}
	}
}

// The engine is down as a whole if no pipeline that was used answers. One that was not used says nothing.
func TestDownAsAWhole(t *testing.T) {
	s, _ := byItself(t)
	if s.Down() != nil {
		t.Error("nothing was asked")
	}
	s.pipelines.all[4].breaker.open(testDown, "k")
	s.pipelines.all[4].asked.Store(true)
	if s.Down() == nil {
		t.Error("the only lane that was asked is down")
	}
	for _, i := range []int{2, 9} {
		s.pipelines.all[i].asked.Store(true)
		if s.Down() != nil {
			t.Errorf("lane %d answers", i)
		}
		s.pipelines.all[i].asked.Store(false)
	}
}

// A health probe that nothing ends opens the breaker after a whole timeout.
func TestForHowLongAHealthProbeLasts(t *testing.T) {
	inFakeTime(t, Options{}, func(t *testing.T, s *Link, e *celldtest.Ailing) {
		resume := e.Hangs(t)
		began := time.Now()
		s.options.Timeout = time.Second
		b := &s.pipelines.all[0].breaker
		b.late("k")
		d := b.doubted()
		if d == nil || b.row.Load() != 1 || b.since.Before(began) {
			t.Fatal(d, b.row.Load(), b.since)
		}
		b.late("k")
		if b.doubted() != d {
			t.Error("another doubt")
		}
		celldtest.Pass(time.Second - 1)
		if b.down() != nil || b.doubted() != d || e.Count() != 1 {
			t.Fatal(b.down(), b.doubted(), e.Count())
		}
		celldtest.Pass(time.Nanosecond)
		if b.down() == nil || b.doubted() != nil || b.down().Error() != CauseTimeout {
			t.Fatal(b.down(), b.doubted())
		}
		b.late("k")
		if b.doubted() != nil {
			t.Error("it is open, and in doubt")
		}
		resume()
		celldtest.Pass(time.Minute)
		if b.down() != nil || b.row.Load() != 0 {
			t.Error(b.down(), b.row.Load())
		}
	})
}

// A health probe ends with its outcome: only a failure that is not about moving keys opens the breaker, and only if no write has
// been answered meanwhile.
func TestHowAHealthProbeEnds(t *testing.T) {
	for _, c := range []struct {
		name  string
		err   error
		row   int32
		other bool // the health probe is another by now
		opens bool
	}{
		{"a failure", testDown, 1, false, true},
		{"an answer", nil, 1, false, false},
		{"an error of the engine's", store.ErrFull, 1, false, false},
		{"a key that moves", &DownError{Cause: CauseMoving}, 1, false, false},
		{"a write was answered", testDown, 0, false, false},
		{"another doubt", testDown, 1, true, false},
	} {
		s, h := byItself(t)
		b := &s.pipelines.all[0].breaker
		d := &healthProbe{breaker: b, key: "k", left: probeSlices}
		other := &healthProbe{breaker: b}
		if b.health = d; c.other {
			b.health = other
		}
		b.row.Store(c.row)
		d.end(c.err)
		if (b.down() != nil) != c.opens || (h.Waiting() == 1) != c.opens || (b.health == other) != c.other || !c.other && b.health != nil {
			t.Errorf("%s: %v, doubt %v", c.name, b.down(), b.health)
		}
	}
}

// A health probe that came too late, or was lost, is sent again with the next slice. Any other outcome ends it.
func TestALostHealthProbe(t *testing.T) {
	inFakeTime(t, Options{}, func(t *testing.T, s *Link, e *celldtest.Ailing) {
		s.options.Timeout = time.Second
		lost := 0
		e.AnswersBy(func(string) string {
			if lost++; lost == 1 {
				time.Sleep(25 * time.Second) // longer than the client waits
			}
			return ":1\r\n"
		})
		h := s.byHand()
		b := &s.pipelines.all[0].breaker
		b.late("k")
		d := b.doubted()
		celldtest.Pass(5 * time.Second)
		if !d.sending.Load() {
			t.Error("it is asked again too soon")
		}
		celldtest.Pass(16 * time.Second)
		if d.sending.Load() || b.doubted() != d || e.Count() != 1 {
			t.Fatal(b.doubted(), e.Count())
		}
		h.Pass(s.options.Timeout / probeSlices)
		celldtest.Pass(time.Minute)
		if e.Count() != 2 || b.doubted() != nil || b.down() != nil {
			t.Error(e.Count(), b.doubted(), b.down())
		}
	})
}
