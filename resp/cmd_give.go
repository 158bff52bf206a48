package resp

// cmdGive is CL.GIVE key limit n. It gives back what was taken, and answers how much it gave back.
func cmdGive(s *Session, args [][]byte) {
	limit, text := s.limit(args[2])
	if text != "" {
		s.replyError("%s", text)
		return
	}
	n, ok := parseInt(args[3])
	if !ok {
		s.replyError(errNotInteger)
		return
	}
	if n < 0 {
		s.replyError(errGive)
		return
	}
	given, err := s.srv.store.Give(args[1], limit.Literal, limit.policy, n, s.access())
	if err != nil {
		s.replyStoreError(err)
		return
	}
	s.replyInt(given)
}
