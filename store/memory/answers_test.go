package memory_test

import (
	"fmt"
	"testing"

	"celld/cell"
	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
	"celld/store/policy"
)

// Of several limits the one with the smallest share left is the one to show, the first of them where they are even.
func TestTheBindingLimit(t *testing.T) {
	for _, c := range []struct {
		limits []string
		want   int
	}{
		{[]string{"10/1m", "2/1m"}, 1},
		{[]string{"2/1m", "10/1m"}, 0},
		{[]string{"10/1m", "2/1m", "3/1m"}, 1},
		{[]string{"10/1m", "10/1h"}, 0},
		{[]string{"2147483647/1h", "2147483646/1h", "2147483645/1h"}, 2},
	} {
		s := memory.New(memory.Options{})
		var list []store.Call
		for i, limit := range c.limits {
			list = append(list, memtest.Call(t, fmt.Sprint(i), limit))
		}
		if taken := memtest.MustTake(t, s, 1, t0, list); taken.Limited || taken.Binding != c.want {
			t.Errorf("%q: %+v, want %d to bind", c.limits, taken, c.want)
		}
	}
}

// PutFields says how many limits are new. What is over by then is none, and a key without limits is no key.
func TestPutFieldsCounts(t *testing.T) {
	s := memory.New(memory.Options{})
	field := func(limit string, endNS int64) store.Field {
		t.Helper()
		f, err := s.ParseField(fmt.Sprintf("window/%s", limit[2:]), fmt.Sprintf("limit=%s,algo=window until=%d used=1", limit, endNS))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	for _, c := range []struct {
		fields []store.Field
		added  int
		held   int
	}{
		{[]store.Field{field("5/1m", t0)}, 0, 0},
		{[]store.Field{field("5/1m", t0+1), field("5/1h", t0+second), field("5/1d", t0)}, 2, 2},
		{[]store.Field{field("5/1m", t0+5), field("5/2m", t0+1)}, 1, 3},
		{[]store.Field{field("5/1m", t0), field("5/2m", t0)}, 0, 1},
		{[]store.Field{field("5/1h", t0)}, 0, 0},
	} {
		added, err := s.PutFields([]byte("k"), c.fields, false, memtest.At(t0))
		if held := count(s, "k", t0); added != c.added || held != c.held || err != nil {
			t.Errorf("%d added of %d: %v; want %d, and %d held", added, held, err, c.added, c.held)
		}
		if there, err := s.Limits([]byte("k"), memtest.At(t0), func(*store.LimitState) {}); there != (c.held > 0) || err != nil {
			t.Errorf("the key is there: %v, %v", there, err)
		}
		if n := s.Len(t0); n != min(c.held, 1) {
			t.Errorf("%d keys", n)
		}
		memtest.MustAudit(t, s)
	}
	memtest.MustPut(t, s, "tat", memtest.Live(t0, second), t0)
	if _, err := s.Limits([]byte("tat"), memtest.At(t0), func(*store.LimitState) {}); err != store.ErrWrongType {
		t.Error(err)
	}
}

// A sweep is due for a key that has died, for a rule that is over, and for what was of a policy that is gone.
func TestSweepDue(t *testing.T) {
	s := memory.New(memory.Options{})
	want := func(due bool, nowNS int64, what string) {
		t.Helper()
		if s.SweepDue(nowNS) != due {
			t.Errorf("%s: due %v", what, !due)
		}
		memtest.Sweep(s, nowNS)
		if s.SweepDue(nowNS) {
			t.Errorf("%s: still due after a sweep", what)
		}
	}
	want(false, 1<<62, "an empty store")
	memtest.MustPut(t, s, "k", memtest.Live(t0, second), t0)
	want(true, t0+3*second, "a dead key")
	if _, err := s.PutRule(policy.Rule{Pattern: "a", UntilNS: t0 + second}, t0); err != nil {
		t.Fatal(err)
	}
	want(false, t0+10*second, "a rule")
	want(true, t0+11*second, "a rule that is over")
	limit := memtest.MustParse(t, "5/1h")
	if _, err := s.SetPolicy("api", []cell.Limit{limit}, policy.Options{}); err != nil {
		t.Fatal(err)
	}
	memtest.MustTake(t, s, 1, t0, []store.Call{{Key: []byte("p"), Limit: &limit, Policy: s.PolicyNamed("api").Limits[0]}})
	memtest.Sweep(s, t0)
	s.DeletePolicy("api")
	want(true, t0, "a policy that is gone")
}

// What a file says that is no setting is an error, with the store's clock as with the set's.
func TestPutSettingsInAStore(t *testing.T) {
	s := memory.New(memory.Options{})
	api := policy.Setting{Kind: policy.PolicySetting, Name: "api"}
	if err := s.PutSetting(api, "5", t0); err == nil {
		t.Error("5 is a limit")
	}
	if err := s.PutSetting(api, "5/1m", t0); err != nil || s.PolicyNamed("api").Limits[0].Limit != memtest.MustParse(t, "5/1m") {
		t.Error(err)
	}
}

// Of ten keys in use twice, two fall back when one must go.
func TestProtectedKeysFallBack(t *testing.T) {
	s := memory.New(memory.Options{MaxKeys: 10, Shards: 1})
	for range 2 {
		for i := range 10 {
			memtest.MustAllow(t, s, fmt.Append(nil, i), memtest.MustLimit(t, 9, 1, 60), t0)
		}
	}
	if st := s.Stats(t0); st.Protected != 10 || st.Probation != 0 {
		t.Fatalf("%+v", st)
	}
	memtest.MustAllow(t, s, []byte("new"), memtest.MustLimit(t, 9, 1, 60), t0)
	if st := s.Stats(t0); st.Protected != 8 || st.Probation != 2 || st.Evicted != 1 {
		t.Errorf("%+v", st)
	}
	memtest.ExpectKeys(t, s, t0, "1", "2", "3", "4", "5", "6", "7", "8", "9", "new")
}

// Changed counts what Drain is to tell.
func TestChanged(t *testing.T) {
	s := memory.New(memory.Options{Journal: true, Shards: 1})
	for range 2 {
		for _, key := range []string{"a", "b", "c"} {
			memtest.MustPut(t, s, key, memtest.Live(t0, second), t0)
			memtest.MustPut(t, s, key, memtest.Live(t0, 2*second), t0)
		}
		if n := s.Changed(); n != 3 {
			t.Errorf("%d changes of 3 keys", n)
		}
		memtest.Drain(s, func(memory.Change) {})
		s.Delete([]byte("a"), t0)
		memtest.MustPut(t, s, "b", memtest.Live(t0, second), t0)
		if n := s.Changed(); n != 2 {
			t.Errorf("%d changes, of a key that is gone and one that is there", n)
		}
		memtest.Drain(s, func(memory.Change) {})
		if n := s.Changed(); n != 0 {
			t.Errorf("%d changes, and all are told", n)
		}
	}
}

// A call may put as many limits under a key as it may hold, and no more.
func TestAllLimitsAtOnce(t *testing.T) {
	var list []store.Call
	for i := range store.MaxLimits + 1 {
		list = append(list, memtest.Call(t, "k", fmt.Sprintf("5/%ds", i+1)))
	}
	s := memory.New(memory.Options{})
	if _, err := s.Take(list, store.TakeOptions{Cost: 1}, memtest.At(t0)); err != store.ErrTooManyLimits || s.Len(t0) != 0 {
		t.Errorf("%v, %d keys", err, s.Len(t0))
	}
	if taken := memtest.MustTake(t, s, 1, t0, list[:store.MaxLimits]); taken.Limited || count(s, "k", t0) != store.MaxLimits {
		t.Errorf("%+v, %d limits", taken, count(s, "k", t0))
	}
}

// A key of which all is given back is gone at once.
func TestGivenBackIsGone(t *testing.T) {
	for _, limit := range []string{"5/1m", "5/1m,algo=window", "5/1m,algo=slide", "6/1m,algo=slide,buckets=6", "5/1m,algo=log"} {
		s := memory.New(memory.Options{})
		memtest.MustTake(t, s, 2, t0, memtest.Calls(t, "k", limit))
		for given := range 2 {
			if st := s.Stats(t0); st.Bytes == 0 {
				t.Errorf("%s: gone, and %d of 2 given back", limit, given)
			}
			l := memtest.MustParse(t, limit)
			if n, err := s.Give([]byte("k"), &l, nil, 1, memtest.At(t0)); n != 1 || err != nil {
				t.Errorf("%s: %d given back: %v", limit, n, err)
			}
		}
		if st := s.Stats(t0); st.Bytes != 0 {
			t.Errorf("%s: all given back, and it takes %d bytes", limit, st.Bytes)
		}
	}
}
