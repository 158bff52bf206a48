package resp

import (
	"bytes"
	"strings"

	"celld/resp/acl"
	"celld/resp/command"
)

func cmdPing(s *Session, args [][]byte) {
	switch len(args) {
	case 1:
		s.call.Status("PONG")
	case 2:
		s.call.Bulk(args[1])
	default:
		s.call.Error(errArity, "ping")
	}
}

func cmdEcho(s *Session, args [][]byte) { s.call.Bulk(args[1]) }

func cmdQuit(s *Session, _ [][]byte) {
	s.call.OK()
	s.end = afterReply
}

// cmdReset returns the connection to the state of a new one: RESP2, no transaction, no name, no bound leases, and the user default, not
// authenticated if that has a password.
func cmdReset(s *Session, _ [][]byte) {
	s.endTx()
	s.setRESP3(false)
	s.becomeNobody()
	s.gate.set(gateReplyOff, false) // a RESET right after CLIENT REPLY SKIP still gets no reply, as in Redis
	s.setNoTouch(false)
	s.setTracking(0)
	s.client.noEvict.Store(false)
	s.setMonitor(false)
	s.client.setName("")
	s.releaseBound()
	s.call.Status("RESET")
}

func cmdSelect(s *Session, args [][]byte) {
	switch n, ok := command.ParseInt(args[1]); {
	case !ok:
		s.call.Error(errNotInteger)
	case n != 0:
		s.call.Error(errDBIndex)
	default:
		s.call.OK()
	}
}

// cmdAuth is AUTH [username] password. Without a username it is the user default.
func cmdAuth(s *Session, args [][]byte) {
	name, password := []byte(acl.DefaultName), args[len(args)-1]
	if len(args) == 3 {
		name = args[1]
	}
	switch {
	case len(args) > 3:
		s.call.Error(errSyntax)
	case len(args) == 2 && s.srv.users.Default.Rights().NoPass():
		s.call.Error(errNoPassword)
	case !s.authenticate(args[0], name, password):
		s.call.Error(errWrongPass)
	default:
		s.call.OK()
	}
}

// cmdHello is HELLO [protover [AUTH username password] [SETNAME name]]. A wrong part changes nothing.
func cmdHello(s *Session, args [][]byte) {
	version := int64(2)
	if s.call.RESP3 {
		version = 3
	}
	var credentials [][]byte
	var name []byte
	hasName := false
	if len(args) > 1 {
		n, ok := command.ParseInt(args[1])
		if !ok {
			s.call.Error(errProtoNotInt)
			return
		}
		if n != 2 && n != 3 {
			s.call.Error(errNoProto)
			return
		}
		version = n
		for rest := args[2:]; len(rest) > 0; {
			switch {
			case bytes.EqualFold(rest[0], []byte("AUTH")) && len(rest) > 2:
				credentials, rest = rest[1:3], rest[3:]
			case bytes.EqualFold(rest[0], []byte("SETNAME")) && len(rest) > 1:
				name, hasName, rest = rest[1], true, rest[2:]
				if text := nameProblem(name); text != "" {
					s.call.Error("%s", text)
					return
				}
			default:
				s.call.Error(errHelloOption, rest[0])
				return
			}
		}
	}
	if credentials != nil && !s.authenticate(args[0], credentials[0], credentials[1]) {
		s.call.Error(errWrongPass)
		return
	}
	if s.mustAuth() {
		s.call.Error(errHelloNoAuth)
		return
	}
	if hasName {
		s.client.setName(string(name))
	}
	s.setRESP3(version == 3)

	s.call.Map(7)
	s.call.Pair("server", "redis")
	s.call.Pair("version", RedisVersion)
	s.call.Field("proto", version)
	s.call.Field("id", s.client.id)
	s.call.Pair("mode", "standalone")
	s.call.Pair("role", "master")
	s.call.String("modules")
	s.call.Modules()
}

// setRESP3 sets the protocol of the client.
func (s *Session) setRESP3(on bool) {
	s.call.RESP3 = on
	s.client.resp3.Store(on)
}

func (s *Session) setNoTouch(on bool) {
	s.noTouch = on
	s.client.noTouch.Store(on)
}

func (c *client) setName(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.name = strings.Clone(name)
}

// maxClientName bounds a connection's name, and what it says of its library, in bytes. CLIENT LIST shows them for each of up to 10,000
// clients and more. Names of hosts have 253.
const maxClientName = 512

// nameProblem returns the text of an error if a connection cannot have this name, or "".
func nameProblem(name []byte) string {
	switch {
	case len(name) > maxClientName:
		return formatError(errClientNameLong, maxClientName)
	case !validName(name):
		return errClientName
	}
	return ""
}

// validName says whether a name is printable ASCII without blanks. Others would break the lines of CLIENT LIST.
func validName(name []byte) bool {
	for _, c := range name {
		if c < '!' || c > '~' {
			return false
		}
	}
	return true
}
