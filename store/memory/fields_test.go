package memory_test

import (
	"fmt"
	"testing"

	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
	"celld/store/policy"
)

// fieldsOf are the fields of a key, as another store reads them.
func fieldsOf(t *testing.T, s *memory.Store, key string, by *memory.Store, nowNS int64) (fields []store.Field) {
	t.Helper()
	if _, err := s.Limits([]byte(key), memtest.Untouched(nowNS), func(l *store.LimitState) {
		f, err := by.ParseField(string(l.AppendName(nil)), string(l.Limit.AppendState(nil, &l.State)))
		if err != nil {
			t.Fatal(err)
		}
		fields = append(fields, f)
	}); err != nil {
		t.Fatal(err)
	}
	return fields
}

// A field is read only under the name of its limit, and of a policy that is there.
func TestFieldsUnderAnotherName(t *testing.T) {
	s := memory.New(memory.Options{})
	text := fmt.Sprintf("limit=5/1h tat=%d", t0+second)
	leases := fmt.Sprintf("limit=5/1h leases=7:%d:1", t0+second)
	for name, want := range map[[2]string]error{
		{"gcra/1h", text}:          nil,
		{"gcra/1h leases", leases}: nil,
		{"gcra/1h", leases}:        store.ErrField,
		{"gcra/1h leases", text}:   store.ErrField,
		{"gcra/1m", text}:          store.ErrField,
		{"@none", text}:            policy.ErrNoPolicy,
		{"@none leases", leases}:   policy.ErrNoPolicy,
		{"@none leases", text}:     store.ErrField,
	} {
		if f, err := s.ParseField(name[0], name[1]); err != want {
			t.Errorf("%q: %+v, %v, want %v", name, f, err, want)
		}
	}
}

// A lease that is read from a file without an ID just ends: nobody has it.
func TestALeaseWithoutAnID(t *testing.T) {
	const limit = "5/1m,algo=conc"
	s := memory.New(memory.Options{})
	f, err := s.ParseField("conc/1m", fmt.Sprintf("limit=%s leases=0:%d:3", limit, t0+second))
	if err == nil {
		_, err = s.PutFields([]byte("k"), []store.Field{f}, true, memtest.At(t0))
	}
	if err != nil {
		t.Fatal(err)
	}
	if memtest.Did(s.Release([]byte("k"), 0, memtest.At(t0))) || left(t, s, "k", limit, t0) != 2 || left(t, s, "k", limit, t0+second) != 5 {
		t.Error("it is released, or does not end")
	}
}

// Fields that are refused change nothing, and nobody is told of them.
func TestRefusedFieldsChangeNothing(t *testing.T) {
	s := memory.New(memory.Options{Journal: true})
	memtest.MustPut(t, s, "tat", memtest.Live(t0, hour), t0)
	for i := range store.MaxLimits {
		memtest.MustTake(t, s, 1, t0, memtest.Calls(t, "full", fmt.Sprintf("1/%ds", i+10)))
	}
	memtest.MustTake(t, s, 1, t0, memtest.Calls(t, "from", "1/1h"))
	fields := fieldsOf(t, s, "from", s, t0)
	memtest.Drained(s)
	for key, want := range map[string]error{"tat": store.ErrWrongType, "full": store.ErrTooManyLimits} {
		before := s.Stats(t0).Changes
		added, err := s.PutFields([]byte(key), fields, true, memtest.At(t0))
		if told := memtest.Drained(s); added != 0 || err != want || told != "" || s.Stats(t0).Changes != before {
			t.Errorf("%s: %d, %v, told %q, %d changes", key, added, err, told, s.Stats(t0).Changes-before)
		}
	}
}

// Fields tell the wall time. So a key goes on in another store, whatever clocks either has for its limits. Here the clocks differ by whole
// sub-windows, which begin at the same instants.
func TestFieldsTellTheWallTime(t *testing.T) {
	limits := []string{"9/1h", "9/day", "9/1h,algo=log", "9/1h,algo=window,align=clock", "9/1h,algo=slide,buckets=4"}
	for _, ahead := range []int64{0, 900 * second, 5400 * second} {
		for _, otherAhead := range []int64{0, 900 * second, 7200 * second} {
			s, other := memory.New(memory.Options{}), memory.New(memory.Options{})
			nowNS := t0 + 9000*second - ahead
			otherNow := nowNS + ahead - otherAhead
			s.SetWall(nowNS+ahead, nowNS)
			other.SetWall(otherNow+otherAhead, otherNow)
			for _, limit := range limits {
				memtest.MustTake(t, s, 2, nowNS, memtest.Calls(t, "k", limit))
				memtest.MustTake(t, s, 1, nowNS+second, memtest.Calls(t, "k", limit))
			}
			nowNS, otherNow = nowNS+2*second, otherNow+2*second
			fields := fieldsOf(t, s, "k", other, nowNS)
			if added, err := other.PutFields([]byte("k"), fields, true, memtest.At(otherNow)); added != len(limits) || err != nil {
				t.Fatal(added, err)
			}
			memtest.MustAudit(t, other)
			for _, limit := range limits {
				is, was := memtest.Calls(t, "k", limit), memtest.Calls(t, "k", limit)
				memtest.MustTake(t, s, 0, nowNS, was)
				memtest.MustTake(t, other, 0, otherNow, is)
				if is[0].Decision != was[0].Decision || is[0].Decision.Remaining != 6 {
					t.Errorf("%s, by %d and %d s: %+v, was %+v", limit, ahead/second, otherAhead/second, is[0].Decision, was[0].Decision)
				}
			}
		}
	}
}
