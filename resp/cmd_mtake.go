package resp

import (
	"celld/resp/command"
	"celld/store"
)

// readMultiTake reads CL.MTAKE n key limit [key limit ...] [options]. It takes from all keys at one instant, or from none.
func readMultiTake(s *Session, f *form, args [][]byte) (text string) {
	pairs, ok := command.ParseInt(args[1])
	switch {
	case !ok:
		return errNotInteger
	case pairs < 1 || pairs > store.MaxLimits:
		return formatError(errPairs, store.MaxLimits)
	case int64(len(args)-2) < 2*pairs:
		return errPairsMissing
	}
	for i := range int(pairs) {
		if text = f.readLimit(s, args[2+2*i+1]); text != "" {
			return text
		}
	}
	f.reply = (*Session).replyMultiTaken
	if text = f.readOptions(s, args[2+2*pairs:]); text == "" && f.call.full {
		text = errFull
	}
	return text
}

func (s *Session) replyMultiTaken(f *form, r *store.TakeRequest) {
	taken, unitNS := &r.Taken, f.call.unitNS()
	index := int64(0)
	if taken.Limited {
		index = int64(taken.Binding) + 1
	}
	s.call.Array(1 + len(r.Calls))
	if f.call.leases {
		s.call.Array(6)
	} else {
		s.call.Array(5)
	}
	s.call.Bool(taken.Limited)
	s.call.Int(index)
	s.call.Int(taken.Granted)
	s.call.Int(wait(taken.RetryAfterNS, unitNS))
	if r.Terms == nil {
		s.call.Int(0)
	} else {
		s.call.Int(wait(r.Terms.WaitNS, unitNS))
	}
	if f.call.leases {
		s.replyLease(r)
	}
	for i := range r.Calls {
		s.replyDecision(&r.Calls[i].Decision, unitNS)
	}
}
