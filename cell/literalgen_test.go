package cell_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"celld/cell"
)

// An algorithm is one way to count, as the shared tests see it.
type algorithm struct {
	name  string
	draw  func(*rapid.T) cell.Limit // without block and shadow
	model func(cell.Limit) model
	bound func(rapid.TB, cell.Limit, []call) // holds what passed to what the algorithm promises

	bookable bool
}

var algorithms = []algorithm{
	{"gcra", drawGCRA, newBucketModel, boundBucket, true},
	{"window", drawWindow, newWindowModel, boundWindow, true},
	{"slide", drawSlide, newSlideModel, boundSlide, false},
	{"buckets", drawBuckets, newBucketsModel, boundBuckets, false},
	{"log", drawLog, newLogModel, boundLog, false},
	{"conc", drawConc, newConcModel, boundLog, false},
}

// eachAlgorithm runs a property for each, with limits that block and shadow now and then.
func eachAlgorithm(t *testing.T, property func(*rapid.T, algorithm, cell.Limit)) {
	for _, a := range algorithms {
		t.Run(a.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { property(t, a, drawOptions(t, a.draw(t))) })
		})
	}
}

func drawOptions(t *rapid.T, l cell.Limit) cell.Limit {
	var options string
	if rapid.IntRange(0, 3).Draw(t, "blocks") == 0 {
		options = ",block=" + rapid.SampledFrom([]string{"1us", "1s", "1h", "366d"}).Draw(t, "block") +
			rapid.SampledFrom([]string{"", ",block-at=full"}).Draw(t, "block-at")
	}
	if rapid.IntRange(0, 7).Draw(t, "shadows") == 0 {
		options += ",shadow"
	}
	return mustLiteral(t, l.String()+options)
}

// plain is a limit without block and shadow.
func plain(t rapid.TB, l cell.Limit) cell.Limit {
	return mustLiteral(t, cell.Limit{Shape: l.Shape, Params: l.Params}.String())
}

func mustLiteral(t rapid.TB, text string) cell.Limit {
	t.Helper()
	l, err := cell.ParseLimit(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// drawRate draws count/period, from one a year to 10^7 a second. Where counts may be large, it draws any.
func drawRate(t *rapid.T, large bool) string {
	return drawRateOf(t, large, rapid.OneOf(
		rapid.SampledFrom([]int64{1, 1_000, 1_000_000, 10_000_000, 60_000_000, 3_600_000_000, 86_400_000_000, 366 * 86_400_000_000}),
		rapid.Int64Range(1, 1000),
		rapid.Int64Range(1, 366*86_400_000_000),
	).Draw(t, "period in µs"))
}

func drawRateOf(t *rapid.T, large bool, periodUS int64) string {
	return fmt.Sprintf("%d/%dus", drawCount(t, large, periodUS*1000), periodUS)
}

// mostCount is the most that others than windows and slides count, and half of what State.B holds of each number without a ring.
const mostCount = math.MaxInt32

func drawCount(t *rapid.T, large bool, periodNS int64) int64 {
	most := min(mostCount, periodNS/100)
	if large && rapid.Bool().Draw(t, "large") {
		return rapid.OneOf(
			rapid.SampledFrom([]int64{cell.MaxCost, mostCount, mostCount + 1, math.MaxUint32, math.MaxUint32 + 1}),
			rapid.Int64Range(mostCount/2, 3*mostCount),
			rapid.Int64Range(1, cell.MaxCost),
		).Draw(t, "count")
	}
	return rapid.OneOf(
		rapid.SampledFrom([]int64{1, min(2, most), min(3, most), min(100, most), most}),
		rapid.Int64Range(1, min(20, most)),
		rapid.Int64Range(1, most),
	).Draw(t, "count")
}

func drawGCRA(t *rapid.T) cell.Limit {
	rate := drawRate(t, false)
	if l, err := cell.ParseLimit(rate); err == nil && rapid.Bool().Draw(t, "default burst") {
		return l
	}
	return mustLiteral(t, fmt.Sprintf("%s,burst=%d", rate, drawBurst(t, mustLiteral(t, rate+",burst=1"))))
}

func drawBurst(t *rapid.T, l cell.Limit) int64 {
	most := min(mostCount, math.MaxInt64/intervalNS(l))
	return rapid.OneOf(
		rapid.SampledFrom([]int64{1, 2, most}),
		rapid.Int64Range(1, 20),
		rapid.Int64Range(1, most),
	).Draw(t, "burst")
}

func intervalNS(l cell.Limit) int64 { return (l.PeriodNS + l.Count - 1) / l.Count }

func drawWindow(t *rapid.T) cell.Limit {
	zone := rapid.SampledFrom([]string{"", ",tz=+08:00", ",tz=-12:00", ",tz=+14:00", ",tz=+05:45", ",tz=-03:30"}).Draw(t, "zone")
	switch rapid.IntRange(0, 4).Draw(t, "aligned") {
	case 4:
		return drawZoned(t)
	case 0:
		return mustLiteral(t, drawRate(t, true)+",algo=window")
	case 1:
		return mustLiteral(t, drawRate(t, true)+",algo=window,align=clock"+zone)
	}
	unit := rapid.SampledFrom([]string{"second", "minute", "hour", "day", "week", "month", "year", "day,from=04:00", "week,from=thu/16:15",
		"month,from=30"}).Draw(t, "unit")
	return mustLiteral(t, fmt.Sprintf("%d/%s%s", drawCount(t, true, mustLiteral(t, "1/"+unit).PeriodNS), unit, zone))
}

func drawSlide(t *rapid.T) cell.Limit { return mustLiteral(t, drawRate(t, true)+",algo=slide") }
func drawLog(t *rapid.T) cell.Limit   { return mustLiteral(t, drawRate(t, false)+",algo=log") }
func drawConc(t *rapid.T) cell.Limit  { return mustLiteral(t, drawRate(t, false)+",algo=conc") }

func drawBuckets(t *rapid.T) cell.Limit {
	buckets := rapid.OneOf(
		rapid.SampledFrom([]int64{2, 3, 6, 7, 64, 127, 128}),
		rapid.Int64Range(2, 128),
	).Draw(t, "buckets")
	periodUS := buckets * rapid.OneOf(
		rapid.SampledFrom([]int64{1, 1_000, 1_000_000}),
		rapid.Int64Range(1, 366*86_400_000_000/buckets),
	).Draw(t, "sub-window in µs")
	periodUS += rapid.Int64Range(0, min(buckets-1, 366*86_400_000_000-periodUS)).Draw(t, "uneven")
	return mustLiteral(t, fmt.Sprintf("%s,algo=slide,buckets=%d", drawRateOf(t, true, periodUS), buckets))
}

// drawParams draws another count, and burst, for the same slot.
func drawParams(t *rapid.T, l cell.Limit) cell.Limit {
	_, options, _ := strings.Cut(l.String(), "/")
	if l.Algo != cell.GCRA {
		return mustLiteral(t, fmt.Sprintf("%d/%s", drawCount(t, l.Algo == cell.Window || l.Algo == cell.Slide, l.PeriodNS), options))
	}
	period, _, _ := strings.Cut(options, ",")
	next := mustLiteral(t, fmt.Sprintf("%d/%s,burst=1", drawCount(t, false, l.PeriodNS), period))
	return mustLiteral(t, fmt.Sprintf("%d/%s,burst=%d", next.Count, period, drawBurst(t, next)))
}

// drawInstant draws when to begin: at any time, at an edge of the calendar, or around one.
func drawInstant(t *rapid.T) int64 {
	edges := []int64{aDayIn2027}
	for _, at := range []time.Time{
		time.Date(2028, 2, 29, 0, 0, 0, 0, time.UTC), time.Date(2028, 3, 1, 0, 0, 0, 0, time.UTC),
		time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC), time.Date(2029, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(2027, 1, 31, 16, 0, 0, 0, time.UTC), time.Date(2000, 2, 29, 23, 0, 0, 0, time.UTC),
		time.Date(2100, 2, 28, 10, 0, 0, 0, time.UTC), time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC),
		time.Date(1971, 1, 4, 0, 0, 0, 0, time.UTC),
		time.Date(2018, 11, 4, 3, 0, 0, 0, time.UTC), time.Date(2027, 3, 27, 22, 0, 0, 0, time.UTC), // no midnight in São Paulo, Beirut
		time.Date(2006, 10, 29, 3, 0, 0, 0, time.UTC), time.Date(2011, 12, 30, 10, 0, 0, 0, time.UTC), // two in St John's; Apia skips a day
	} {
		edges = append(edges, at.UnixNano())
	}
	return rapid.OneOf(
		rapid.SampledFrom(edges),
		rapid.Custom(func(t *rapid.T) int64 {
			return rapid.SampledFrom(edges).Draw(t, "edge") + rapid.Int64Range(-2, 2).Draw(t, "off by")
		}),
		rapid.Int64Range(0, endOfTests/2),
	).Draw(t, "start")
}

const endOfTests = 8_000_000_000_000_000_000 // the year 2223: a few periods later is still an instant

// drawPause draws how long to wait after a decision.
func drawPause(t *rapid.T, l cell.Limit, now int64, d cell.Decision) int64 {
	told := min(d.RetryAfterNS, uint64(2*l.PeriodNS))
	reset := min(d.ResetAfterNS, math.MaxInt64)
	wait := rapid.OneOf(
		rapid.SampledFrom([]uint64{0, 1, told, max(told, 1) - 1, told, max(told, 1) - 1, reset, max(reset, 1) - 1, uint64(l.PeriodNS),
			uint64(l.PeriodNS) - 1}),
		rapid.Uint64Range(0, uint64(l.PeriodNS)/8),
		rapid.Uint64Range(0, 2*uint64(l.PeriodNS)),
	).Draw(t, "wait")
	return int64(min(wait, uint64(max(0, endOfTests-now))))
}

// drawCost draws what to ask for: what may pass, what just does, and too much.
func drawCost(t *rapid.T, l cell.Limit, d cell.Decision) int64 {
	capacity := l.Capacity()
	return rapid.OneOf(
		rapid.Just(int64(1)),
		rapid.SampledFrom([]int64{0, 1, capacity, min(capacity+1, cell.MaxCost), d.Remaining, min(d.Remaining+1, cell.MaxCost),
			cell.MaxCost}),
		rapid.Int64Range(0, min(capacity, 1+capacity/4)),
		rapid.Int64Range(0, capacity),
	).Draw(t, "cost")
}

func drawMode(t *rapid.T) cell.Mode {
	return rapid.SampledFrom([]cell.Mode{cell.Take, cell.Take, cell.Take, cell.Take, cell.Take, cell.Peek, cell.Force}).Draw(t, "mode")
}

// drawCall draws a cost and a mode. It forces only what the state can hold.
func drawCall(t *rapid.T, l cell.Limit, st *cell.State, now int64, d cell.Decision) (cost int64, mode cell.Mode) {
	cost, mode = drawCost(t, l, d), drawMode(t)
	if mode == cell.Force && !l.Holds(st, now, cost) {
		mode = cell.Take
	}
	return cost, mode
}

// drawHistory draws a state that a limit leaves behind, and when it did.
func drawHistory(t *rapid.T, l cell.Limit, modes ...cell.Mode) (st cell.State, now int64) {
	now = drawInstant(t)
	var d cell.Decision
	for range rapid.IntRange(0, 30).Draw(t, "calls") {
		now += drawPause(t, l, now, d)
		d = decide(&l, &st, now, drawCost(t, l, d), rapid.SampledFrom(modes).Draw(t, "mode"))
	}
	return st, now
}

func decide(l *cell.Limit, st *cell.State, now, cost int64, mode cell.Mode) cell.Decision {
	l.Fit(st, now, cost)
	return l.Decide(st, now, cost, mode)
}

// attempt decides on a copy.
func attempt(l *cell.Limit, st cell.State, now, cost int64, mode cell.Mode) cell.Decision {
	st = clone(st)
	return decide(l, &st, now, cost, mode)
}

func clone(st cell.State) cell.State {
	st.Ring = slices.Clone(st.Ring)
	return st
}

func equal(a, b cell.State) bool {
	return a.A == b.A && a.B == b.B && a.BlockedNS == b.BlockedNS && (a.BlockedNS == 0 || a.AtFull == b.AtFull) &&
		slices.Equal(a.Ring, b.Ring)
}
