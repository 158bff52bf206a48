package policy

import (
	"fmt"
	"math"
	"strconv"
	"sync/atomic"

	"celld/cell"
)

// ends is when the first of some policies or rules is to end. One goroutine at a time adds and forgets.
type ends struct{ firstNS atomic.Int64 } // Unix ns of limit time; 0: none ends

// due reports, without any lock, whether one is to end.
func (e *ends) due(nowNS int64) bool {
	first := e.firstNS.Load()
	return first != 0 && first <= nowNS
}

// add notes the end of one; 0: it lasts.
func (e *ends) add(untilNS int64) {
	if first := e.firstNS.Load(); untilNS != 0 && (first == 0 || untilNS < first) {
		e.firstNS.Store(untilNS)
	}
}

// forget forgets all.
func (e *ends) forget() { e.firstNS.Store(0) }

// untilText is an end in Unix ms of a wall clock that is so far ahead of limit time, rounded up; 0 for none.
func untilText(untilNS, aheadNS int64) string {
	until := min(int64(cell.ShiftInstant(uint64(untilNS), aheadNS)), math.MaxInt64-2_000_000) // what parseUntil takes
	return strconv.FormatInt((until+999_999)/1_000_000, 10)
}

// parseUntil is the reverse of untilText.
func parseUntil(text string, aheadNS int64) (untilNS int64, err error) {
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms < 0 || ms > 1<<63/1_000_000-1 {
		return 0, fmt.Errorf("not the end of a policy or rule: %q", text)
	}
	return int64(cell.ShiftInstant(uint64(ms*1_000_000), -aheadNS)), nil
}
