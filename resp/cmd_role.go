package resp

// cmdRole answers that this server is a master at offset 0 without replicas.
func cmdRole(s *Session, _ [][]byte) {
	s.replyArray(3)
	s.replyString("master")
	s.replyInt(0)
	s.replyArray(0)
}
