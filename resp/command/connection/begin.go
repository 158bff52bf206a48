package connection

import (
	"bytes"

	"celld/resp/acl"
	"celld/resp/command"
	"celld/resp/command/argument"
)

func ping(c *command.Call) {
	switch len(c.Args) {
	case 1:
		c.Status("PONG")
	case 2:
		c.Bulk(c.Args[1])
	default:
		c.Error(command.ErrArity, "ping")
	}
}

func quit(c *command.Call, own command.Connection) {
	c.OK()
	own.CloseAfterReply()
}

func reset(c *command.Call, own command.Connection) {
	own.Reset()
	c.Status("RESET")
}

func selectDB(c *command.Call) {
	switch n, ok := argument.ParseInt(c.Args[1]); {
	case !ok:
		c.Error(argument.ErrNotInteger)
	case n != 0:
		c.Error(argument.ErrDBIndex)
	default:
		c.OK()
	}
}

// auth is AUTH [username] password. Without a username it is the user default.
func (f family) auth(c *command.Call, own command.Connection) {
	args := c.Args
	name, password := []byte(acl.DefaultName), args[len(args)-1]
	if len(args) == 3 {
		name = args[1]
	}
	switch {
	case len(args) > 3:
		c.Error(argument.ErrSyntax)
	case len(args) == 2 && f.server().Users.Default.Rights().NoPass():
		c.Error(ErrNoPassword)
	case !own.Authenticate(args[0], name, password):
		c.Error(ErrWrongPass)
	default:
		c.OK()
	}
}

// hello is HELLO [protover [AUTH username password] [SETNAME name]]. A wrong part changes nothing.
func (f family) hello(c *command.Call, own command.Connection) {
	version := int64(2)
	if c.RESP3 {
		version = 3
	}
	var credentials [][]byte
	var name []byte // nil: none is given
	if len(c.Args) > 1 {
		n, ok := argument.ParseInt(c.Args[1])
		if !ok {
			c.Error(errProtoNotInt)
			return
		}
		if n != 2 && n != 3 {
			c.Error(errNoProto)
			return
		}
		version = n
		for rest := c.Args[2:]; len(rest) > 0; {
			switch {
			case bytes.EqualFold(rest[0], []byte("AUTH")) && len(rest) > 2:
				credentials, rest = rest[1:3], rest[3:]
			case bytes.EqualFold(rest[0], []byte("SETNAME")) && len(rest) > 1:
				name, rest = rest[1], rest[2:]
				if !nameOK(c, name) {
					return
				}
			default:
				c.Error(ErrHelloOption, rest[0])
				return
			}
		}
	}
	if credentials != nil && !own.Authenticate(c.Args[0], credentials[0], credentials[1]) {
		c.Error(ErrWrongPass)
		return
	}
	if own.MustAuth() {
		c.Error(ErrHelloNoAuth)
		return
	}
	if name != nil {
		rename(own.Client(), name)
	}
	own.SetRESP3(version == 3)

	s := f.server()
	c.Map(7)
	c.Pair("server", "redis")
	c.Pair("version", s.Version)
	c.Field("proto", version)
	c.Field("id", own.Client().ID)
	c.Pair("mode", "standalone")
	c.Pair("role", "master")
	c.String("modules")
	c.Modules()
}
