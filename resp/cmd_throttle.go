package resp

import (
	"bytes"
	"errors"

	"celld/cell"
	"celld/store"

	"github.com/tidwall/redcon"
)

// cmdThrottle is CL.THROTTLE key max_burst count period [quantity]: redis-cell's command, checks in its order and
// errors in its words (release 0.5.0).
func cmdThrottle(s *Session, args [][]byte) {
	if len(args) != 5 && len(args) != 6 {
		s.replyError(errThrottleUsage)
		return
	}
	params := [4]int64{3: 1} // max_burst, count, period, quantity
	for i, arg := range args[2:] {
		n, ok := parseSigned(arg)
		if !ok {
			// The reference hands the text on as a C string, so a NUL ends it.
			text, _, _ := bytes.Cut(arg, []byte{0})
			s.replyError("%s%s", errThrottleParse, text)
			return
		}
		params[i] = n
	}
	limit, err := cell.NewLimit(params[0], params[1], params[2])
	if err != nil {
		s.replyThrottleError(err)
		return
	}
	d, err := s.srv.store.Throttle(args[1], limit, params[3], s.access())
	if err != nil {
		s.replyThrottleError(err)
		return
	}
	limited, retryAfter := int64(0), int64(-1)
	if d.Limited {
		limited = 1
		if d.RetryAfterNS != cell.Never {
			// The reference says 0 for a wait below 1 ms, at which callers spin.
			retryAfter = max(1, wholeSeconds(d.RetryAfterNS))
		}
	}
	s.replyArray(5)
	s.out = redcon.AppendInt(s.out, limited)
	s.out = redcon.AppendInt(s.out, d.Limit)
	s.out = redcon.AppendInt(s.out, d.Remaining)
	s.out = redcon.AppendInt(s.out, retryAfter)
	s.out = redcon.AppendInt(s.out, wholeSeconds(d.ResetAfterNS))
}

// wholeSeconds rounds as redis-cell 0.5.0 does: up where the part of a second has at least one whole millisecond.
func wholeSeconds(ns uint64) int64 {
	seconds := int64(ns / 1e9)
	if ns%1e9 >= 1e6 {
		seconds++
	}
	return seconds
}

func (s *Session) replyThrottleError(err error) {
	var outOfRange *cell.RangeError
	switch {
	case errors.Is(err, cell.ErrZeroRate):
		s.replyError(errThrottleZero)
	case errors.As(err, &outOfRange):
		s.replyError(errThrottleRange, outOfRange.Param, outOfRange.Value)
	case errors.Is(err, store.ErrFull):
		s.replyError(errOOM)
	default:
		s.replyError("ERR %s", err)
	}
}
