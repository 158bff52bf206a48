package resp

import (
	"bytes"
	"errors"

	"celld/cell"
	"celld/store"
)

// throttleCall is the parameters of one CL.THROTTLE.
type throttleCall struct{ maxBurst, count, period, quantity int64 }

// parseThrottle reads CL.THROTTLE key max_burst count period [quantity], with the checks, their order and the errors of
// redis-cell 0.5.0. It also returns the text of an error, or "".
func parseThrottle(args [][]byte) (call throttleCall, text string) {
	if len(args) != 5 && len(args) != 6 {
		return call, errThrottleUsage
	}
	params := [4]int64{3: 1}
	for i, arg := range args[2:] {
		n, ok := parseSigned(arg)
		if !ok {
			// redis-cell passes the text on as a C string, which ends at a NUL.
			text, _, _ := bytes.Cut(arg, []byte{0})
			return call, errThrottleParse + string(text)
		}
		params[i] = n
	}
	return throttleCall{params[0], params[1], params[2], params[3]}, ""
}

func cmdThrottle(s *Session, args [][]byte) {
	if (len(args) == 3 || len(args) == 4) && len(args[2]) > 0 && args[2][0] == '@' {
		s.throttleByPolicy(args)
		return
	}
	call, text := parseThrottle(args)
	if text != "" {
		s.replyError("%s", text)
		return
	}
	limit, err := cell.NewLimit(call.maxBurst, call.count, call.period)
	if err != nil {
		s.replyThrottleError(err)
		return
	}
	d, err := s.srv.store.Throttle(args[1], limit, call.quantity, s.access())
	if err != nil {
		s.replyThrottleError(err)
		return
	}
	if call.quantity > 0 {
		s.scratch.stats.decided.throttle(&d, limit.Capacity())
	}
	s.out = appendReplyStart(s.out, d.Limited, d.Limit)
	s.out = appendReplyEnd(s.out, &d)
}

// throttleByPolicy is CL.THROTTLE key @name [quantity]: a CL.TAKE with the reply of CL.THROTTLE.
func (s *Session) throttleByPolicy(args [][]byte) {
	quantity := int64(1)
	if len(args) == 4 {
		var ok bool
		if quantity, ok = parseSigned(args[3]); !ok {
			text, _, _ := bytes.Cut(args[3], []byte{0})
			s.replyError("%s", errThrottleParse+string(text))
			return
		}
	}
	limit, text := s.limit(args[2])
	if text != "" {
		s.replyError("%s", text)
		return
	}
	if quantity > cell.MaxCost || quantity < -cell.MaxCost {
		s.replyError(errThrottleRange, "quantity", quantity)
		return
	}
	t := takeCall{calls: append(s.scratch.calls[:0], store.Call{Key: args[1], Limit: limit.Literal, Policy: limit.policy})}
	s.scratch.calls = t.calls
	if quantity < 0 {
		if _, err := s.srv.store.Give(args[1], limit.Literal, limit.policy, -quantity, s.access()); err != nil {
			s.replyStoreError(err)
			return
		}
		quantity = 0
	}
	if t.Cost = quantity; quantity == 0 {
		t.Mode = cell.Peek
	}
	taken, err := s.take(&t, throttleAllowed)
	if err != nil {
		s.replyStoreError(err)
		return
	}
	d := t.calls[0].Decision
	d.RetryAfterNS = taken.RetryAfterNS
	s.out = appendReplyStart(s.out, taken.Limited, d.Limit)
	s.out = appendReplyEnd(s.out, &d)
}

// retrySeconds is at least 1: redis-cell says 0 for a wait below 1 ms, and callers spin.
func retrySeconds(ns uint64) int64 { return max(1, wholeSeconds(ns)) }

// wholeSeconds rounds nanoseconds to seconds as redis-cell 0.5.0 does: up if the fraction has at least one whole millisecond.
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
	case errors.Is(err, store.ErrWrongType):
		s.replyError(errWrongType)
	default:
		s.replyError("ERR %s", err)
	}
}
