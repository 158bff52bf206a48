package resp

import (
	"celld/cell"
	"celld/resp/command"
)

// cmdSettle is CL.SETTLE key id n: the true cost of what the lease holds was n. It answers 1, or 0 where there is no such lease.
func cmdSettle(s *Session, args [][]byte) {
	id, ok := command.ParseInt(args[2])
	n, isInt := command.ParseInt(args[3])
	switch {
	case !ok || !isInt:
		s.replyError(errNotInteger)
		return
	case n < 0 || n > cell.MaxCost:
		s.replyError(errSettle)
		return
	}
	s.scratch.slice.did(lookEvery, 0) // see cmdRelease
	settled, err := s.store().Settle(args[1], id, n, s.access())
	if err != nil {
		s.replyStoreError(err)
		return
	}
	if settled {
		s.once(func() { s.unbind(id) })
	}
	s.replyBool(settled)
}
