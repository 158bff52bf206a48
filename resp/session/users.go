package session

import (
	"celld/persistence/regular"
	"celld/resp/acl"
	"celld/resp/command"
	"celld/resp/gate"
	"celld/resp/wire"
)

// useUsers gives the server the user default with its password, and those of the file.
func (srv *Service) useUsers(file *acl.File) {
	srv.Users = acl.NewUsers(srv.Commands.ACL())
	srv.Users.SetPassword(srv.Config.RequirePass.Get())
	srv.Config.RequirePass.OnSet(srv.Users.SetPassword)
	if file != nil {
		regular.RemoveLeft(srv.Config.ACLFile.Get())
		srv.Users.Replace(file)
		required := srv.Config.RequirePass.Get()
		if required != "" && srv.Users.Authenticate([]byte(acl.DefaultName), []byte(required)) == nil {
			srv.Log.Warn("the aclfile has another password for the user default than requirepass, which is ignored",
				"aclfile", srv.Config.ACLFile.Get())
		}
	}
}

// become makes this the session's user.
func (s *Session) become(u *acl.User) {
	s.client.User.Store(u)
	s.gate.Set(gate.Auth, false)
	s.checkRights()
}

// becomeNobody makes the session that of a new connection: the user default, authenticated where it needs no password.
func (s *Session) becomeNobody() {
	s.become(s.srv.Users.Default)
	s.gate.Set(gate.Auth, !s.srv.Users.Open())
}

// checkRights looks at the rights of the session's user. They change only while no batch runs: so a batch begins with this, and who
// has waited to run alone, or has changed users, looks again.
func (s *Session) checkRights() {
	s.gate.Set(gate.Rights, !s.client.User.Load().Rights().MayAll())
}

// mustAuth says that the peer has to authenticate first.
func (s *Session) mustAuth() bool { return s.gate.Has(gate.Auth) && !s.srv.Users.Open() }

// forbid returns why the user may not run a command, and logs it; or "".
func (f inFlight) forbid() acl.Reason {
	s, row, args := f.s, f.row, f.args
	if !s.gate.Has(gate.Rights) {
		return ""
	}
	check := command.Check{Row: row, Rights: s.client.User.Load().Rights()}
	for check.Step(args) { //nolint:revive // it does all
	}
	return f.refused(&check)
}

// refused returns why a check that has ended refuses a command, and logs it; or "".
func (f inFlight) refused(c *command.Check) acl.Reason {
	if c.Reason != "" {
		(*host)(f.s).noteDenial(c.Reason, c.Object, c.Row.FullName())
	}
	return c.Reason
}

// allowed leaves in the batch what comes before the first call that the user may not run, or for which this takes too long to find out. It
// returns what Gather would have.
func (s *Session) allowed(data []byte, used, next int, limits wire.Limits) (int, int) {
	b, rights := s.scratch.batch, s.client.User.Load().Rights()
	if b.Len() == 0 {
		return used, next
	}
	mayRun := rights.MayRun(b.Row().ACL, nil) // if not, the call may still have a first argument that does
	work, patterns := 0, rights.Patterns()
	for i := range b.Len() {
		key := b.Key(i)
		work += patterns * command.KeyCost(key)
		if mayRun && work <= command.CheckStep && rights.MayTouch(key, b.Row().AccessTo(0, nil)) {
			continue
		}
		b.Cut(i)
		used, next = 0, 0
		for range i + 1 {
			used += next
			s.scratch.args, next = wire.Whole(data[used:], s.scratch.args, limits)
		}
		break
	}
	s.scratch.slice.Did(work/lookEvery, 0)
	return used, next
}
