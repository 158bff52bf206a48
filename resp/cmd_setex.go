package resp

func cmdSetEx(s *Session, args [][]byte)  { setFor(s, args, "setex", "ex") }
func cmdPSetEx(s *Session, args [][]byte) { setFor(s, args, "psetex", "px") }

// setFor runs SETEX key seconds tat as SET key tat EX seconds.
func setFor(s *Session, args [][]byte, name, unit string) {
	if _, text := (expiryOption{unit, args[2]}).atNS(name, s.wallNS()); text != "" {
		s.replyError("%s", text)
		return
	}
	cmdSet(s, [][]byte{args[0], args[1], args[3], []byte(unit), args[2]})
}
