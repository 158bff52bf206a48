package stats

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"celld/resp/command"
	"celld/resp/metrics"
	"celld/store"
	"celld/store/memory"
)

var update = flag.Bool("update", false, "write what is declared to testdata/")

// Each count is declared, under its names and with its value.
func TestDeclared(t *testing.T) {
	st := NewServer()
	next := int64(0)
	var count func(v reflect.Value)
	count = func(v reflect.Value) {
		for i := range v.NumField() {
			next++
			switch n := v.Field(i).Addr().Interface().(type) {
			case *atomic.Int64:
				n.Store(next)
			case *Counter:
				n.Add(uint8(i), next)
				n.Add(uint8(i+1), 1000)
			default:
				if v.Type().Field(i).Anonymous {
					count(v.Field(i))
				}
			}
		}
	}
	count(reflect.ValueOf(st).Elem())
	var engine store.Counts
	for i := range reflect.TypeOf(engine).NumField() {
		next++
		reflect.ValueOf(&engine).Elem().Field(i).SetInt(next)
	}
	st.Engine = func() store.Counts { return engine }
	st.DroppedLines = func() int64 { return 77 }
	st.InputPerSecond.Store(1536)
	st.OutputPerSecond.Store(1)
	st.Waits.Note(5)
	for _, text := range []string{"ERR a", "WRONGTYPE b", "ERR c"} {
		st.Rejected(nil, text)
	}
	var b strings.Builder
	for _, read := range []func(l *metrics.List){
		func(l *metrics.List) {
			st.DeclareTraffic(l, &memory.Stats{Expired: 101, Evicted: 102, Hits: 103, Misses: 104})
		},
		st.DeclareTroubles, st.Errors.Declare,
	} {
		for _, m := range metrics.New(metrics.Section{Read: read}).Read(0) {
			if h, ok := m.Value.(*metrics.Histogram); ok {
				m.Value = h.Count
			}
			fmt.Fprintf(&b, "%s %q %s %q %s: %v\n", m.Kind, m.Field, m.Name, m.Labels, m.JSON, m.Value)
		}
	}
	const path = "testdata/declared.txt"
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(path); err != nil || b.String() != string(want) {
		t.Errorf("%v: declared is\n%s\nand not\n%s", err, &b, want)
	}
	if st.Errors.Reset(); len(st.Errors.read()) > 0 {
		t.Error("a reset forgets no words")
	}
}

// A batch counts its calls by rows, and shares its time among those that were not timed by themselves.
func TestBatch(t *testing.T) {
	var rows []*command.Row
	for range 6 {
		rows = append(rows, &command.Row{Stats: &Command{}})
	}
	var b Batch
	for range 2 {
		b.Begin(1000)
		for _, row := range rows[:5] {
			b.Count(row, 2, 3)
		}
		b.CountSlow(rows[5], 400, false, 1)
		b.CountSlow(rows[5], 100, true, 1) // within EXEC
		b.TookNS(50)
		if n := b.Calls(); n != 12 {
			t.Errorf("%d calls", n)
		}
		nowNS, eachNS, fast := b.Finish(func() int64 { return 2450 }, 2)
		if nowNS != 2450 || eachNS != 100 || !fast {
			t.Errorf("at %d, each %d, fast %v", nowNS, eachNS, fast)
		}
	}
	for i, row := range rows {
		calls, ns, times := Of(row).Read()
		wantCalls, wantNS, timed := int64(4), int64(400), int64(4)
		switch i {
		case 4: // a fifth kind is counted, and not timed
			wantNS, timed = 0, 0
		case 5:
			wantNS = 1000
		}
		if calls != wantCalls || ns != wantNS || (times == nil) != (timed == 0) || times != nil && times.Calls != timed {
			t.Errorf("row %d: %d calls of %d ns, %+v", i, calls, ns, times != nil)
		}
	}
	_, _, times := Of(rows[5]).Read()
	if times.Percentile(100) != timesHighest(timesBucket(400)) || times.Percentile(50) != timesHighest(timesBucket(100)) {
		t.Errorf("from %d to %d ns", times.Percentile(1), times.Percentile(100))
	}
	b.Begin(7)
	b.CountSlow(rows[0], 5, false, 0)
	if nowNS, eachNS, fast := b.Finish(func() int64 { t.Error("the clock is read"); return 0 }, 0); nowNS != 12 || eachNS != 0 || fast {
		t.Errorf("at %d, each %d, fast %v", nowNS, eachNS, fast)
	}
	st := Of(rows[0])
	st.Failed.Add(1)
	(&Server{}).Rejected(rows[0], "ERR no")
	if st.Rejected.Load() != 1 {
		t.Error("a command that is refused does not count")
	}
	st.Reset()
	if calls, ns, times := st.Read(); calls != 0 || ns != 0 || times != nil || st.Failed.Load() != 0 || st.Rejected.Load() != 0 {
		t.Errorf("after a reset: %d, %d", calls, ns)
	}
	var sum TimesRead
	if st.AddTo(&sum); sum.Calls != 0 {
		t.Errorf("%d times are left", sum.Calls)
	}
	if _, _, times := (&Command{}).Read(); times != nil {
		t.Error("a command without calls took some time")
	}
}

// Calls that waited are counted in steps of 4 from a millisecond on.
func TestWaits(t *testing.T) {
	var st Waits
	for _, ns := range []int64{0, 1e6, 1e6 + 1, 4e6, 4e6 + 1, 262_144e6, 262_144e6 + 1, 1e15} {
		st.Note(ns)
	}
	h := st.Histogram()
	if h.Count != 8 || h.SumNS != 1e6+1e6+1+4e6+4e6+1+2*262_144e6+1+1e15 || fmt.Sprint(h.Below) != "[2 4 5 5 5 5 5 5 5 6]" ||
		h.MostNS[9] != 262_144e6 {
		t.Errorf("%+v", h)
	}
}
