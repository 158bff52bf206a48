package resp

import (
	"celld/store"
)

// cmdMultiTake is CL.MTAKE n key limit [key limit ...] [options]: several keys at one instant, all or none.
func cmdMultiTake(s *Session, args [][]byte) {
	pairs, ok := parseInt(args[1])
	switch {
	case !ok:
		s.replyError(errNotInteger)
		return
	case pairs < 1 || pairs > store.MaxLimits:
		s.replyError(errPairs, store.MaxLimits)
		return
	case int64(len(args)-2) < 2*pairs:
		s.replyError(errPairsMissing)
		return
	}
	t := takeCall{calls: s.scratch.calls[:0], TakeOptions: store.TakeOptions{Cost: 1}}
	for i := range int(pairs) {
		limit, text := s.limit(args[2+2*i+1])
		if text != "" {
			s.replyError("%s", text)
			return
		}
		t.calls = append(t.calls, store.Call{Key: args[2+2*i], Limit: limit.Literal, Policy: limit.policy})
	}
	s.scratch.calls = t.calls
	text := t.parseOptions(args[2+2*pairs:])
	if text == "" && t.full {
		text = errFull
	}
	if text != "" {
		s.replyError("%s", text)
		return
	}
	taken, err := s.take(&t, takeAllowed)
	if err != nil {
		s.replyStoreError(err)
		return
	}
	index := int64(0)
	if taken.Limited {
		index = int64(taken.Binding) + 1
	}
	s.replyArray(1 + len(t.calls))
	s.replyArray(5)
	s.replyBool(taken.Limited)
	s.replyInt(index)
	s.replyInt(taken.Granted)
	s.replyInt(t.wait(taken.RetryAfterNS))
	s.replyInt(0)
	for i := range t.calls {
		s.replyDecision(&t, &t.calls[i].Decision)
	}
}
