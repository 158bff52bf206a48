package main

import (
	"time"

	"celld/cell"
)

const (
	period = time.Minute
	count  = 60
	length = 400 * time.Second // of the picture
)

// start is a full minute, so that the minutes of the picture are those of the clock.
var start = time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC).UnixNano()

// phase is a part of the traffic: every so often, atOnce calls arrive together.
type phase struct {
	from, to, every time.Duration
	atOnce          int
	label           string
	labelAt         time.Duration // its middle
}

var phases = []phase{
	{4 * time.Second, 56 * time.Second, 6 * time.Second, 3, "half the limit, in threes", 30 * time.Second},
	{66 * time.Second, 67 * time.Second, time.Second, 1, "", 0},
	{108 * time.Second, 136 * time.Second, 125 * time.Millisecond, 1, "over a minute’s edge", 122 * time.Second},
	{234 * time.Second, 330 * time.Second, 100 * time.Millisecond, 1, "a flood", 282 * time.Second},
}

// traffic returns the instants of the calls, in ns from the start.
func traffic() (calls []int64) {
	for _, p := range phases {
		for at := p.from; at < p.to; at += p.every {
			for range p.atOnce {
				calls = append(calls, int64(at))
			}
		}
	}
	return calls
}

// run returns the calls that a limit admits, as the server does for a new key. For algo=window it also returns the ends of the
// windows.
func run(l *cell.Limit, calls []int64) (admitted, windows []int64) {
	var st cell.State
	for _, at := range calls {
		l.Fit(&st, start+at, 1)
		if d := l.Decide(&st, start+at, 1, cell.Take); !d.Limited {
			admitted = append(admitted, at)
		}
		if end := int64(st.A) - start; l.Algo == cell.Window && (len(windows) == 0 || end != windows[len(windows)-1]) {
			windows = append(windows, end)
		}
	}
	return admitted, windows
}

// trailing returns how many calls are in the period that ends with now. The period does not include its first instant.
func trailing(calls []int64, now, period int64) (n int) {
	for _, at := range calls {
		if at > now-period && at <= now {
			n++
		}
	}
	return n
}

// most returns the largest of all trailing counts. It is reached at the instant of a call.
func most(calls []int64, period int64) (n int) {
	first := 0
	for last, at := range calls {
		for calls[first] <= at-period {
			first++
		}
		n = max(n, last-first+1)
	}
	return n
}

// limitCase is a limit of the picture.
type limitCase struct {
	literal  string
	says     string
	admitted []int64
	windows  []int64 // algo=window: when each ended
}

func allCases() []limitCase {
	cases := []limitCase{
		{literal: "60/1m", says: "gcra: 60 at once, and 1 flows back each second"},
		{literal: "60/1m,burst=1", says: "gcra: one a second, none at once"},
		{literal: "60/1m,algo=window", says: "a window, the bracket below, opens with its first call"},
		{literal: "60/1m,algo=window,align=clock", says: "a window is a minute of the clock: twice the limit over its edge"},
		{literal: "60/1m,algo=slide", says: "the minute before, weighted as if its calls had been even"},
		{literal: "60/1m,algo=slide,buckets=6", says: "the sum of the last six windows of 10 s"},
		{literal: "60/1m,algo=log", says: "every call remembered: the only one that is exact"},
	}
	calls := traffic()
	for i := range cases {
		l, err := cell.ParseLimit(cases[i].literal)
		if err != nil {
			panic(err) // the literals are above
		}
		cases[i].admitted, cases[i].windows = run(&l, calls)
	}
	return cases
}
