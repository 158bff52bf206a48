package session

import "testing"

// A slice is looked at after enough work, and is over when its time is.
func TestSlice(t *testing.T) {
	now, looks := int64(100), 0
	clock := func() int64 { looks++; return now }
	var s slice
	s.Begin(clock, now, 0)
	s.Did(lookEvery-1, 0)
	if now += sliceNS + 1; s.IsOver() || looks != 0 {
		t.Errorf("%d looks after too little work", looks)
	}
	if s.Did(0, sliceBytes-1); s.IsOver() {
		t.Error("a few bytes count as an argument")
	}
	if s.Did(0, sliceBytes); !s.IsOver() || looks != 1 {
		t.Errorf("it is not over after %d looks", looks)
	}
	if !s.IsOver() || looks != 2 {
		t.Error("what is over does not stay so")
	}
}

// Until its time has passed, each look begins with the work anew.
func TestSliceGoesOn(t *testing.T) {
	now, looks := int64(100), 0
	clock := func() int64 { looks++; return now }
	var s slice
	s.Begin(clock, now, 0)
	now += sliceNS
	for range 3 * lookEvery {
		if s.Did(1, 0); s.IsOver() {
			t.Fatal("it is over too early")
		}
	}
	if looks != 3 || s.Ended() || s.ReadClock() != now {
		t.Errorf("%d looks", looks)
	}
	if now++; !s.Ended() {
		t.Error("it does not end")
	}
}

// The slice ends with the round of its event loop.
func TestSliceOfARound(t *testing.T) {
	now := int64(100) + sliceNS
	var s slice
	s.Begin(func() int64 { return now }, now, 100)
	if s.Ended() {
		t.Error("it is over too early")
	}
	if now++; !s.Ended() {
		t.Error("it lasts longer than its round")
	}
}
