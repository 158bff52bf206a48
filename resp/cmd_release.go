package resp

import "celld/resp/command"

// cmdRelease is CL.RELEASE key id. It answers 1, or 0 where there is no such lease.
func cmdRelease(s *Session, args [][]byte) {
	id, ok := command.ParseInt(args[2])
	if !ok {
		s.replyError(errNotInteger)
		return
	}
	s.scratch.slice.did(lookEvery, 0) // of a long log it takes 3 ms
	released, err := s.store().Release(args[1], id, s.access())
	if err != nil {
		s.replyStoreError(err)
		return
	}
	if released {
		s.once(func() { s.unbind(id) })
	}
	s.replyBool(released)
}
