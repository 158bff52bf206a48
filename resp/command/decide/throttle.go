package decide

import (
	"bytes"
	"errors"
	"fmt"

	"celld/cell"
	"celld/resp/command"
	"celld/resp/command/argument"
	"celld/resp/decisions"
	"celld/resp/wire"
	"celld/store"
)

// readThrottle reads CL.THROTTLE key max_burst count period [quantity]. Its checks, their order and their errors are those of redis-cell
// 0.5.0.
func readThrottle(l *limits, f *Shape, args [][]byte) (text string) {
	if (len(args) == 3 || len(args) == 4) && len(args[2]) > 0 && args[2][0] == '@' {
		return readThrottleByPolicy(l, f, args)
	}
	if len(args) != 5 && len(args) != 6 {
		return errThrottleUsage
	}
	params := [4]int64{3: 1}
	for i, arg := range args[2:] {
		if params[i], text = parseParam(arg); text != "" {
			return text
		}
	}
	var err error
	if f.bucket, err = cell.NewBucket(params[0], params[1], params[2]); err != nil {
		return bucketError(err)
	}
	f.quantity = params[3]
	f.allowed = appendStart(f.allowed, false, f.bucket.Capacity())
	f.limited = appendStart(f.limited, true, f.bucket.Capacity())
	return ""
}

// parseParam reads a number. The text of its error ends at the first NUL, because redis-cell passes it on as a C string.
func parseParam(arg []byte) (n int64, text string) {
	n, ok := argument.ParseSigned(arg)
	if !ok {
		shown, _, _ := bytes.Cut(arg, []byte{0})
		return 0, ErrThrottleParse + string(shown)
	}
	return n, ""
}

// readThrottleByPolicy reads CL.THROTTLE key @name [quantity]: a CL.TAKE with the reply of CL.THROTTLE.
func readThrottleByPolicy(l *limits, f *Shape, args [][]byte) (text string) {
	quantity := int64(1)
	if len(args) == 4 {
		if quantity, text = parseParam(args[3]); text != "" {
			return text
		}
	}
	if text = f.readLimit(l, args[2], 0); text != "" {
		return text
	}
	if len(f.limits) > 1 {
		return fmt.Sprintf(errSeveralLimits, f.limits[0].policy.Policy.Name)
	}
	if quantity > cell.MaxCost || quantity < -cell.MaxCost {
		return fmt.Sprintf(errThrottleRange, "quantity", quantity)
	}
	f.Cost, f.Look, f.counted, f.reply = quantity, quantity < 0, decisions.ThrottleAllowed, replyThrottled
	if quantity == 0 {
		f.Mode = cell.Peek
	}
	return ""
}

// replyThrottled answers a Take with the reply of CL.THROTTLE.
func replyThrottled(out *command.Reply, _ *Shape, r *store.TakeRequest) {
	d := r.Calls[0].Decision
	d.RetryAfterNS = r.Taken.RetryAfterNS
	out.Out = appendEnd(appendStart(out.Out, r.Taken.Limited, d.Limit), &d)
}

// appendThrottled writes the reply to a CL.THROTTLE.
func (f *Shape) appendThrottled(out []byte, d *cell.Decision) []byte {
	switch {
	case !d.Limited:
		out = append(out, f.allowed...)
	case d.Limit != f.bucket.Capacity(): // a rule denied it
		out = appendStart(out, true, d.Limit)
	default:
		out = append(out, f.limited...)
	}
	return appendEnd(out, d)
}

// appendStart writes the part that the shape knows: whether the call is limited, and the limit.
func appendStart(out []byte, limited bool, capacity int64) []byte {
	out = wire.AppendBool(wire.AppendArray(out, 5), limited, false)
	return wire.AppendInt(out, capacity)
}

// appendEnd writes the part that each decision has: remaining, retry after, reset after.
func appendEnd(out []byte, d *cell.Decision) []byte {
	out = wire.AppendInt(out, d.Remaining)
	if d.RetryAfterNS == cell.Never {
		out = append(out, ":-1\r\n"...)
	} else {
		out = wire.AppendInt(out, retrySeconds(d.RetryAfterNS))
	}
	return wire.AppendInt(out, wholeSeconds(d.ResetAfterNS))
}

// retrySeconds is a wait in s, 1 at least: redis-cell answers 0 for one below 1 ms, which makes callers retry without a pause.
func retrySeconds(ns uint64) int64 { return max(1, wholeSeconds(ns)) }

// wholeSeconds rounds nanoseconds to seconds as redis-cell 0.5.0 does: up if the fraction has at least one whole millisecond.
func wholeSeconds(ns uint64) int64 {
	seconds := int64(ns / 1e9)
	if ns%1e9 >= 1e6 {
		seconds++
	}
	return seconds
}

// bucketError returns the text of an error of a limit or a quantity in numbers, or "" for another error.
func bucketError(err error) string {
	var outOfRange *cell.RangeError
	switch {
	case errors.Is(err, cell.ErrZeroRate):
		return errThrottleZero
	case errors.As(err, &outOfRange):
		return fmt.Sprintf(errThrottleRange, outOfRange.Param, outOfRange.Value)
	}
	return ""
}

// ReadThrottle makes the request of a CL.THROTTLE with its numbers: max_burst, count, period and quantity. It also returns the text of an
// error, or "".
func ReadThrottle(key []byte, n [4]int64) (r store.Request, text string) {
	bucket, err := cell.NewBucket(n[0], n[1], n[2])
	if err != nil {
		return r, bucketError(err)
	}
	return store.Request{Key: key, Bucket: bucket, Quantity: n[3]}, ""
}

// CountThrottle counts a request that ReadThrottle has made, and that a limiter has decided. It returns the text of an error in its
// numbers, or "".
func (d *Decider) CountThrottle(r *store.Request) (text string) {
	switch {
	case r.Err != nil:
		return bucketError(r.Err)
	case r.Quantity <= 0:
		return ""
	case r.Decision.Limited:
		d.note(decisions.ByDenied, 1, false, 0, 0, r.Key)
	}
	if d.Decided.In(d.Counts.Literal(cell.GCRA), d.lane).Throttle(&r.Decision, r.Bucket.Capacity(), &d.Counts.NearLimit) {
		d.note(decisions.ByNear, 1, false, 0, 0, r.Key)
	}
	d.note(decisions.ByCalls, 1, false, 0, 0, r.Key)
	d.addCame()
	return ""
}

// Seconds are the waits of CL.THROTTLE's reply: until the call passes, -1 for never or now, and until the limit is full again.
func Seconds(d *cell.Decision) (retry, reset int64) {
	retry = -1
	if d.RetryAfterNS != cell.Never {
		retry = retrySeconds(d.RetryAfterNS)
	}
	return retry, wholeSeconds(d.ResetAfterNS)
}
