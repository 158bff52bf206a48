package resp

import (
	"celld/cell"
	"celld/store"
)

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
	if l := f.limits[0]; l.Algo == cell.Conc && n > leasesAtOnce && !s.srv.answersLater {
		s.giveLeases(args, *l.Limit, l.policy, n)
		return
	}
	f.gives, f.reply = n, (*Session).replyGiven
	b := s.batch()
	b.addGive(f, args[1])
	b.forms[0] = f
	s.ask(b)
}

// leasesAtOnce is how much of algo=conc a step gives back, and so the most leases that it ends: one takes 0.2 to 2 µs.
const leasesAtOnce = 256

// giveLeases is CL.GIVE that may end thousands of leases.
func (s *Session) giveLeases(args [][]byte, l cell.Limit, policy uint32, n int64) {
	given := int64(0)
	s.inSteps(args, func(s *Session, args [][]byte) (more bool) {
		step := min(n-given, leasesAtOnce)
		some, err := s.store().Give(args[1], &l, policy, step, s.access())
		if err != nil {
			s.replyStoreError(err)
			return false
		}
		if given += some; some == step && given < n {
			return true
		}
		s.replyInt(given)
		return false
	})
}

func (s *Session) replyGiven(_ *form, r *store.TakeRequest) { s.replyInt(-r.Taken.Granted) }
