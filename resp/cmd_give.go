package resp

import (
	"celld/cell"
	"celld/resp/command"
	"celld/store"
)

// cmdGive is CL.GIVE key limit n. It gives back at most what was taken, and answers how much that was.
func cmdGive(s *Session, args [][]byte) {
	f := &s.scratch.single
	f.reset(s.call.Row)
	text := f.readLimit(s, args[2])
	n, ok := command.ParseInt(args[3])
	switch {
	case text != "":
	case !ok:
		text = errNotInteger
	case n < 0:
		text = errGive
	case n == 0:
		s.call.Int(0)
		return
	}
	if text != "" {
		s.call.Error("%s", text)
		return
	}
	if l := f.limits[0]; l.HoldsLeases() && !s.srv.answersLater {
		s.giveInSteps(args, l, n)
		return
	}
	f.call.Cost, f.reply = -n, (*Session).replyGiven
	b := s.batch()
	b.add(f, args[1])
	s.ask(b)
}

func (s *Session) replyGiven(_ *form, r *store.TakeRequest) { s.call.Int(-r.Taken.Granted) }

// giveInSteps ends leases of a limit, of which there may be 65,536.
func (s *Session) giveInSteps(args [][]byte, l takeLimit, n int64) {
	given := int64(0)
	s.inSteps(args, func(s *Session, args [][]byte) (more bool) {
		some, more, err := s.store().GiveSome(args[1], l.Limit, l.policy, n-given, s.access())
		s.scratch.slice.did(int(min(some, cell.MostGiven)), 0)
		given += some
		switch {
		case err != nil:
			s.call.Fail(err)
		case !more:
			s.call.Int(given)
		}
		return more
	})
}
