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
