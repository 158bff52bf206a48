package cell_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"celld/cell"
)

// In the last years that int64 nanoseconds reach, up to 2262, a limit answers as it does now, and its states are read back from their text.
func TestTheLastYearsAreLikeAnyOther(t *testing.T) {
	property := func(t *rapid.T, l cell.Limit) {
		const days = 86_400 * 1_000_000_000
		step := l.PeriodNS
		if l.Unit.String() != "" {
			step = 7 * days // months and years are not alike
		}
		now := rapid.Int64Range(1, 100*days).Draw(t, "start")
		ahead := (math.MaxInt64 - rapid.Int64Range(200*days, 3000*days).Draw(t, "left") - now) / step * step
		var st, late cell.State
		var d cell.Decision
		for range rapid.IntRange(1, 20).Draw(t, "calls") {
			if now += drawPause(t, l, now, d); now+ahead < 0 {
				return
			}
			cost, mode := drawCall(t, l, &st, now, d)
			d = decide(&l, &st, now, cost, mode)
			if got := decide(&l, &late, now+ahead, cost, mode); got != d {
				t.Fatalf("%v, cost %d, mode %d: at %d %+v, %d later %+v", l, cost, mode, now, d, ahead, got)
			}
		}
		text := string(l.AppendState(nil, &late))
		of, read, err := cell.ParseState(text)
		if again := string(of.AppendState(nil, &read)); err != nil || again != text {
			t.Fatalf("%s is read as %s, %v", text, again, err)
		}
	}
	for _, a := range append(algorithms, algorithm{name: "warmup", draw: drawWarmup}) {
		t.Run(a.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				l := drawOptions(t, a.draw(t))
				if name, _ := zoneOf(l); name == "" && l.Unit.String() != "month" && l.Unit.String() != "year" {
					property(t, l)
				}
			})
		})
	}
}
