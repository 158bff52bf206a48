package resp

// suspend has the session wait for the limiter's answer. It serves nothing meanwhile, and its transport does not read, so that
// what it holds of a pipeline is bounded. It goes on when the limiter's Wake makes the transport call Serve.
//
// The scratch goes back to the others, as a thousand sessions may wait: a call that waits takes 1 KB, with its part of the batch.
func (s *Session) suspend(b *batch) {
	for i, f := range b.forms[:b.n] {
		switch {
		case f == nil:
		case i > 0 && f == b.last:
			b.forms[i] = b.forms[i-1]
		default:
			b.forms[i], b.last = f.answers(), f
		}
	}
	b.last, b.muted = nil, false
	s.waits, s.scratch.batch = b, nil
}

// resume answers what the session has waited for. Where the session has gone meanwhile, nobody does: the batch is the limiter's alone.
func (s *Session) resume() {
	b := s.waits
	if b == nil {
		return
	}
	s.waits = nil
	b.answered.Store(false)
	mark := len(s.out)
	s.scratch.mark = mark
	s.answer(b)
	if b.muted {
		s.out = s.out[:mark]
		s.unwrite(mark)
	}
	if s.scratch.batch == nil {
		s.scratch.batch = b
	}
}
