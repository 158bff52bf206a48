package resp

import "celld/resp/command"

// cmdRenew is CL.RENEW key id ms. It answers 1, or 0 where there is no such lease.
func cmdRenew(s *Session, args [][]byte) {
	id, ok := command.ParseInt(args[2])
	ms, isInt := command.ParseInt(args[3])
	switch {
	case !ok || !isInt:
		s.replyError(errNotInteger)
		return
	case ms < 1 || ms > maxLeaseMS:
		s.replyError(errLease, maxLeaseMS)
		return
	}
	renewed, err := s.store().Renew(args[1], id, ms*1e6, s.access())
	if err != nil {
		s.replyStoreError(err)
		return
	}
	if l, bound := s.bound[id]; bound && renewed {
		l.endNS = s.nowNS + ms*1e6
		s.bound[id] = l
	}
	s.replyBool(renewed)
}
