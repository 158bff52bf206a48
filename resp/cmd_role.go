package resp

// cmdRole answers that this server is a master at offset 0 without replicas.
func cmdRole(s *Session, _ [][]byte) {
	s.call.Array(3)
	s.call.String("master")
	s.call.Int(0)
	s.call.Array(0)
}
