package cell_test

import (
	"fmt"
	"time"

	"celld/cell"
)

func Example() {
	limit, err := cell.NewBucket(1, 30, 60) // 30 a minute, 2 at once
	if err != nil {
		panic(err)
	}
	now := time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC).UnixNano()
	var tat uint64 // nothing else is remembered of a key
	for range 3 {
		var d cell.Decision
		if tat, d, err = limit.Throttle(tat, now, 1); err != nil {
			panic(err)
		}
		if d.Limited {
			fmt.Println("limited, retry after", time.Duration(d.RetryAfterNS))
			continue
		}
		fmt.Println("allowed,", d.Remaining, "of", d.Limit, "remain")
	}
	// Output:
	// allowed, 1 of 2 remain
	// allowed, 0 of 2 remain
	// limited, retry after 2s
}

// A log is exact in every period: the second call of the last minute counts until a minute after it.
func ExampleParseLimit() {
	limit, err := cell.ParseLimit("2/1m,algo=log")
	if err != nil {
		panic(err)
	}
	var state cell.State // of one key; drop it from limit.EndNS(&state) on
	start := time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)
	for _, after := range []time.Duration{0, 20 * time.Second, 40 * time.Second, time.Minute} {
		now := start.Add(after).UnixNano()
		limit.Fit(&state, now, 1)
		if d := limit.Decide(&state, now, 1, cell.Take); d.Limited {
			fmt.Println(after, "limited, retry after", time.Duration(d.RetryAfterNS))
		} else {
			fmt.Println(after, "allowed,", d.Remaining, "remain")
		}
	}
	// Output:
	// 0s allowed, 1 remain
	// 20s allowed, 0 remain
	// 40s limited, retry after 20s
	// 1m0s allowed, 0 remain
}

// The error of a limit that cannot be read says which part is wrong, and what would be right.
func ExampleLimitError() {
	_, err := cell.ParseLimit("100/1m,algo=leaky")
	fmt.Println(err)
	// Output:
	// invalid limit: algo 'leaky': expected gcra, window, slide, log or conc
}

// A limit that changes keeps what was used as a share, so that nobody gains by the change.
func ExampleLimit_Carry() {
	before, _ := cell.ParseLimit("10/1h,algo=window")
	after, _ := cell.ParseLimit("100/1h,algo=window")
	now := time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC).UnixNano()
	var state cell.State
	before.Fit(&state, now, 5)
	before.Decide(&state, now, 5, cell.Take)
	after.Carry(&state, &before, now, now)
	fmt.Println(after.Decide(&state, now, 0, cell.Peek).Remaining, "of 100 remain")
	// Output:
	// 95 of 100 remain
}
