package session

import (
	"celld/resp/command"
)

// stepwise is a command that takes longer than others should wait, cut into steps of at most some 0.3 ms. When the session's slice is
// over it waits, and goes on in its next turn. Other connections' commands run in between.
type stepwise struct {
	row    *command.Row // nil: the last step goes on with a command that has not been queued or run
	args   [][]byte
	step   stepFunc
	tookNS int64
}

// stepFunc does a step of a command. The arguments are the command's; they may lie elsewhere than at the step before.
type stepFunc func(s *Session, args [][]byte) (more bool)

// some does steps until the slice is over, and reports whether there are more.
func (w *stepwise) some(s *Session) (more bool) {
	for w.step(s, w.args) {
		if s.scratch.slice.Ended() {
			return true
		}
	}
	return false
}

// unfinished reports whether the command that has just run has more to do, and notes what is needed for that.
func (f inFlight) unfinished(tookNS int64, mark int) bool {
	s, row := f.s, f.row
	switch w := s.waits.(type) {
	case *keyTx, *elsewhere:
		return true
	case *stepwise:
		w.row, w.args, w.tookNS = row, s.detach(w.args), tookNS
		f.silence(mark)
		return true
	}
	return false
}

// detach returns arguments that nobody else changes: a copy, or those of a long command in the memory that the session has gathered it in.
func (s *Session) detach(args [][]byte) [][]byte {
	if len(s.in) > 0 {
		s.in, s.scratch.args = nil, nil
		return args
	}
	return copied(args)
}

// copied returns arguments in a memory of their own. An empty one stays empty: nil stands for one that was not given.
func copied(args [][]byte) [][]byte {
	bytes := 0
	for _, arg := range args {
		bytes += len(arg)
	}
	kept, all := make([][]byte, len(args)), make([]byte, 0, bytes)
	for i, arg := range args {
		from := len(all)
		all = append(all, arg...)
		kept[i] = all[from:len(all):len(all)]
	}
	return kept
}

func (w *stepwise) ready() bool    { return true }
func (w *stepwise) leave(*Session) {}
func (w *stepwise) abandons() bool { return false }

func (w *stepwise) resume(s *Session) {
	f, mark, startNS := inFlight{s, w.row, w.args}, len(s.call.Out), s.srv.Clock()
	s.scratch.mark, s.scratch.asked = mark, false
	more := w.some(s)
	if !more && w.row == nil {
		return
	}
	tookNS := s.srv.Clock() - startNS
	s.scratch.stats.TookNS(tookNS)
	if w.tookNS += tookNS; more {
		s.waits = w
		f.silence(mark)
		return
	}
	if refused := s.srv.Unkept(w.row); refused != nil {
		s.call.Out = s.call.Out[:mark]
		s.call.Error("%s", refused.Text)
	}
	f.timed(w.tookNS, true)
	f.replied(mark)
	f.called(mark)
}
