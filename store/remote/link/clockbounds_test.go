package link

import (
	"testing"
	"testing/synctest"
	"time"

	"celld/internal/celldtest"
)

// What is known stays as long as it is fresh, bounds the time better than the answer, and agrees with it: each up to the last nanosecond.
func TestWhichAnswerAClockKeeps(t *testing.T) {
	const (
		told = int64(1_700_000_000_000_000_000)
		wide = time.Second
		ms   = int64(time.Millisecond)
	)
	sent := time.Unix(1000, 0)
	got := sent.Add(2 * time.Millisecond)
	for _, c := range []struct {
		name  string
		age   time.Duration
		took  time.Duration
		ns    int64 // what the engine tells
		keeps bool
	}{
		// after 100 ms it is known to be 99.9 to 102.102 ms later
		{"as wide", 100 * time.Millisecond, 2_202_000, told + 100*ms, false},
		{"wider by a ns", 100 * time.Millisecond, 2_202_001, told + 100*ms, true},
		{"the most", 100 * time.Millisecond, wide, told + 102_102_000, true},
		{"more", 100 * time.Millisecond, wide, told + 102_102_001, false},
		{"the least", 100 * time.Millisecond, wide, told + 99_900_000 - int64(wide), true},
		{"less", 100 * time.Millisecond, wide, told + 99_900_000 - int64(wide) - 1, false},
		{"half as old as it gets", fresh / 2, wide, told + 500*ms, false},
		{"younger by a ns", fresh/2 - 1, wide, told + 500*ms, true},
	} {
		k := &Clock{}
		k.Observe(told, sent, got)
		at := got.Add(c.age)
		k.Observe(c.ns, at.Add(-c.took), at)
		if kept := k.timeNS == told && k.got == got && k.sent == sent; kept != c.keeps {
			t.Errorf("%s: kept %v", c.name, kept)
		}
		if !c.keeps && (k.timeNS != c.ns || k.got != at || k.sent != at.Add(-c.took)) {
			t.Errorf("%s: %+v", c.name, k)
		}
	}
}

// The bounds are an answer's, and a 1000th of what has passed since. They are known for a second after the answer came.
func TestForHowLongAClockIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const told = int64(1_700_000_000_000_000_000)
		k, sent := &Clock{}, time.Now()
		celldtest.Pass(4 * time.Millisecond)
		k.Observe(told, sent, time.Now())
		celldtest.Pass(fresh - 1)
		lower, okL := k.Lower()
		upper, okU := k.Upper()
		since := int64(fresh - 1)
		if lower != told+since-since/1000 || upper != told+since+4_000_000+(since+4_000_000)/1000 || !okL || !okU {
			t.Errorf("%d to %d, %v, %v", lower-told, upper-told, okL, okU)
		}
		if span := int64(k.Span()); span != 4_000_000+(since+4_000_000)/1000+since/1000 || span != upper-lower {
			t.Errorf("a span of %d", span)
		}
		celldtest.Pass(time.Nanosecond)
		_, okL = k.Lower()
		if _, okU = k.Upper(); okL || okU {
			t.Error("it is known for longer", okL, okU)
		}
		k.Observe(told, time.Now(), time.Now())
		k.Forget()
		if _, ok := k.Lower(); ok || k.timeNS != 0 || !k.sent.IsZero() || !k.got.IsZero() {
			t.Errorf("it is not forgotten: %+v", k)
		}
		k.fake = func() int64 { return 77 }
		lower, okL = k.Lower()
		upper, okU = k.Upper()
		if lower != 77 || upper != 77 || !okL || !okU || k.Span() != 0 {
			t.Errorf("%d, %d, %v", lower, upper, k.Span())
		}
	})
}

// Who asked is not asked again before askAgain is over.
func TestWhenTheTimeIsAskedAgain(t *testing.T) {
	k, now := &Clock{}, time.Unix(1000, 0)
	for _, c := range []struct {
		after time.Duration
		asks  bool
	}{{0, true}, {askAgain - 1, false}, {askAgain, true}, {2*askAgain - 1, false}, {2 * askAgain, true}} {
		if is := k.Asks(now.Add(c.after)); is != c.asks {
			t.Errorf("after %v: %v", c.after, is)
		}
	}
}
