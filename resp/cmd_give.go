package resp

import "celld/store"

// cmdGive is CL.GIVE key limit n. It gives back at most what was taken, and answers how much that was.
func cmdGive(s *Session, args [][]byte) {
	f := &s.scratch.single
	f.reset(s.srv.commands.give)
	text := f.readLimit(s, args[2])
	n, ok := parseInt(args[3])
	switch {
	case text != "":
	case !ok:
		text = errNotInteger
	case n < 0:
		text = errGive
	case n == 0:
		s.replyInt(0)
		return
	}
	if text != "" {
		s.replyError("%s", text)
		return
	}
	f.gives, f.reply = n, (*Session).replyGiven
	b := s.batch()
	b.addGive(f, args[1])
	b.forms[0] = f
	s.ask(b)
}

func (s *Session) replyGiven(_ *form, r *store.TakeRequest) { s.replyInt(-r.Taken.Granted) }
