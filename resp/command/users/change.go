package users

import (
	"errors"

	"celld/resp/acl"
	"celld/resp/client"
	"celld/resp/command"
)

// setUser is ACL SETUSER username [rule ...]. It applies all rules or none.
func (f *family) setUser(c *command.Call, own command.Connection) {
	s, name := f.server(), string(c.Args[2])
	rules := make([]string, 0, len(c.Args)-3)
	for _, arg := range c.Args[3:] {
		rules = append(rules, string(arg))
	}
	c.Alone(func() { // so whoever runs a command later has the new rights
		err := s.Users.Set(name, rules)
		rule := (*acl.RuleError)(nil)
		switch {
		case errors.As(err, &rule):
			c.Error(errRule, rule.Rule, rule.Err)
		case err != nil:
			c.Error("ERR %s", err)
		default:
			if u := s.Users.Get(name); !u.Rights().On() {
				s.end(own, client.CertifiedAs(u))
			}
			c.OK()
		}
	})
}

func (f *family) delUser(c *command.Call, own command.Connection) {
	s, names := f.server(), c.Args[2:]
	for _, name := range names {
		if string(name) == acl.DefaultName {
			c.Error(errDefaultUser)
			return
		}
	}
	c.Alone(func() {
		var gone []*acl.User
		for _, name := range names {
			if u := s.Users.Delete(string(name)); u != nil {
				gone = append(gone, u)
			}
		}
		s.end(own, client.Of(gone))
		c.Int(int64(len(gone)))
	})
}

// end closes the connections that match. The caller's own gets its reply first. No other command runs meanwhile, so no connection
// authenticates as a user that has gone.
func (s *Server) end(own command.Connection, matches func(*client.Client) bool) {
	if _, itself := s.Clients.Kill(own.Client(), matches); itself {
		own.CloseAfterReply()
	}
}
