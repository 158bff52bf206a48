package cell_test

import (
	"testing"

	"celld/cell"
)

// A bench is a key in a steady state: calls of one, so far apart that each passes, or at one instant, so that none does.
type bench struct{ name, limit string }

var benches = []bench{
	{"gcra", "1000/1s"},
	{"window", "1000/1s,algo=window"},
	{"second", "1000/second,tz=+08:00"},
	{"month", "2147483647/month,tz=+08:00"},
	{"zone", "2147483647/day,tz=Europe/Berlin"},
	{"slide", "1000/1s,algo=slide"},
	{"buckets6", "1000/1s,algo=slide,buckets=6"},
	{"buckets128", "1000/1s,algo=slide,buckets=128"},
	{"log1000", "1000/1s,algo=log"},
}

// full is a key that nearly all that a period allows has passed in even steps, and such a step.
func (b bench) full(t testing.TB) (l cell.Limit, st cell.State, now, step int64) {
	l = mustLiteral(t, b.limit)
	now, step = aDayIn2027, 1_020_000
	for range 2000 { // through a window or more
		decide(&l, &st, now, 1, cell.Take)
		now += step
	}
	return l, st, now, step
}

func TestDecidingOnALiteralAllocatesNothing(t *testing.T) {
	for _, b := range benches {
		for _, mode := range []cell.Mode{cell.Take, cell.Peek, cell.Force} {
			l, st, now, step := b.full(t)
			if n := testing.AllocsPerRun(1000, func() {
				l.Decide(&st, now, 1, mode)
				now += step
			}); n != 0 {
				t.Errorf("%s, mode %d: %v allocations", b.name, mode, n)
			}
			if n := testing.AllocsPerRun(100, func() {
				l.Give(&st, now, 1)
				l.Fit(&st, now, 1)
				l.EndNS(&st)
			}); n != 0 {
				t.Errorf("%s: %v allocations to give back", b.name, n)
			}
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	for _, c := range benches {
		b.Run(c.name+"/allowed", func(b *testing.B) {
			l, st, now, step := c.full(b)
			passed := 0
			b.ReportAllocs()
			for b.Loop() {
				if d := l.Decide(&st, now, 1, cell.Take); !d.Limited {
					passed++
				}
				now += step
			}
			if passed != b.N {
				b.Fatalf("%d of %d passed", passed, b.N)
			}
		})
		b.Run(c.name+"/limited", func(b *testing.B) {
			l, st, now, _ := c.full(b)
			decide(&l, &st, now, decide(&l, &st, now, 0, cell.Peek).Remaining, cell.Take)
			passed := 0
			b.ReportAllocs()
			for b.Loop() {
				if d := l.Decide(&st, now, 1, cell.Take); !d.Limited {
					passed++
				}
			}
			if passed > 0 {
				b.Fatalf("%d of %d passed", passed, b.N)
			}
		})
	}
}
