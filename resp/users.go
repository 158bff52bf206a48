package resp

import (
	"log/slog"
	"strings"

	"celld/persistence/regular"
	"celld/resp/acl"
	"celld/resp/command"
	"celld/resp/glob"
	"celld/resp/wire"
	"celld/store"
)

// newACLTable returns the commands as rules see them, and tells each row its own. Each command table has the same numbers.
func newACLTable(commands *command.Table) *acl.Table {
	var list []*acl.Command
	for _, row := range commands.Rows {
		row.ACL = newACLCommand(row)
		for _, sub := range row.Sub {
			sub.ACL = newACLCommand(sub)
			row.ACL.Subs = append(row.ACL.Subs, sub.ACL)
		}
		list = append(list, row.ACL)
	}
	return acl.NewTable(list, compileGlob)
}

// compileGlob is glob.Compile for patterns of users' keys.
func compileGlob(pattern string) (match func(key []byte) bool, problem string) {
	g, ok := glob.Compile([]byte(pattern), false)
	if !ok {
		return nil, strings.TrimPrefix(formatError(errPatternLong, glob.MaxWild), "ERR ")
	}
	return g.Match, ""
}

func newACLCommand(row *command.Row) *acl.Command {
	return &acl.Command{Name: row.FullName(), Categories: row.Categories(), Public: row.Flags&command.NoAuth != 0}
}

// useUsers gives the server the user default with its password, and those of the file.
func (srv *service) useUsers(file *acl.File) {
	srv.users = acl.NewUsers(newACLTable(srv.commands))
	srv.users.SetPassword(srv.cfg.RequirePass.Get())
	srv.cfg.RequirePass.OnSet(srv.users.SetPassword)
	if file != nil {
		regular.RemoveLeft(srv.cfg.ACLFile.Get())
		srv.users.Replace(file)
		if required := srv.cfg.RequirePass.Get(); required != "" && srv.users.Authenticate([]byte(acl.DefaultName), []byte(required)) == nil {
			srv.log.Warn("the aclfile has another password for the user default than requirepass, which is ignored", "aclfile", srv.cfg.ACLFile.Get())
		}
	}
}

// endSessionsOf closes the connections of users. That of the caller gets its reply first. While the execution lock is held alone, so
// no connection takes one of these users meanwhile.
func (srv *service) endSessionsOf(caller *Session, users ...*acl.User) {
	if len(users) == 0 {
		return
	}
	gone := map[*acl.User]bool{}
	for _, u := range users {
		gone[u] = true
	}
	for _, s := range srv.clients.all() {
		switch {
		case !gone[s.client.user.Load()]:
		case s == caller:
			s.end = afterReply
		default:
			s.kill()
		}
	}
}

// become makes this the session's user.
func (s *Session) become(u *acl.User) {
	s.client.user.Store(u)
	s.gate.set(gateAuth, false)
	s.checkRights()
}

// becomeNobody makes the session that of a new connection: the user default, authenticated where it needs no password.
func (s *Session) becomeNobody() {
	s.become(s.srv.users.Default)
	s.gate.set(gateAuth, !s.srv.users.Open())
}

// checkRights looks at the rights of the session's user. They change only while no batch runs: so a batch begins with this, and who
// has waited to run alone, or has changed users, looks again.
func (s *Session) checkRights() {
	s.gate.set(gateRights, !s.client.user.Load().Rights().MayAll())
}

// mustAuth says that the peer has to authenticate first.
func (s *Session) mustAuth() bool { return s.gate.has(gateAuth) && !s.srv.users.Open() }

// forbid returns why the user may not run a command, and logs it; or "".
func (s *Session) forbid(row *command.Row, args [][]byte, context string) acl.Reason {
	if !s.gate.has(gateRights) {
		return ""
	}
	check := denialCheck{row: row, rights: s.client.user.Load().Rights()}
	for check.some(args, rightsStep) { //nolint:revive // it does all
	}
	if check.reason != "" {
		s.noteDenial(check.reason, context, check.object, row)
	}
	return check.reason
}

// noteNoRight logs a key that the command that runs does not name and may not reach. It returns the error.
func (s *Session) noteNoRight(refused *store.NoRightError) (text string) {
	context, text := "toplevel", errNoPermKey
	if r := s.srv.running.Load(); r != nil && r.s == s {
		context, text = "lua", errScriptNoKey
	} else if s.tx.running {
		context = "multi"
	}
	s.noteDenial(acl.DeniedKey, context, string(refused.Key), s.client.lastCommand.Load())
	return text
}

// noteDenial logs what a user may not do.
func (s *Session) noteDenial(reason acl.Reason, context, object string, row *command.Row) {
	user := s.client.user.Load()
	s.once(func() {
		s.logDenial(reason, context, object, user.Name())
		s.tell(tellCommand, "command", row.FullName(), "reason", "the user may not use this "+string(reason))
	})
}

// allowed leaves in the batch what comes before the first call that the user may not run, or for which this takes too long to find out. It
// returns what gather would have.
func (s *Session) allowed(data []byte, used, next int, limits wire.Limits) (int, int) {
	b, rights := s.scratch.batch, s.client.user.Load().Rights()
	if b.n == 0 {
		return used, next
	}
	mayRun := rights.MayRun(b.row.ACL, nil) // if not, the call may still have a first argument that does
	work, patterns := 0, rights.Patterns()
	for i := range b.n {
		key := b.key(i)
		work += patterns * (1 + len(key)/rightsBytes)
		if mayRun && work <= rightsStep && rights.MayTouch(key, b.row.AccessTo(0, nil)) {
			continue
		}
		b.cut(i)
		used, next = 0, 0
		for range i + 1 {
			used += next
			s.scratch.args, next = wire.Whole(data[used:], s.scratch.args, limits)
		}
		break
	}
	s.scratch.slice.did(work/lookEvery, 0)
	return used, next
}

func (s *Session) logDenial(reason acl.Reason, context, object, username string) {
	switch reason {
	case acl.DeniedCommand:
		s.srv.stats.DeniedCommands.Add(1)
	case acl.DeniedKey:
		s.srv.stats.DeniedKeys.Add(1)
	case acl.DeniedCertificate:
		s.srv.stats.DeniedCerts.Add(1)
	}
	s.srv.aclLog.Add(acl.Entry{Reason: reason, Context: context, Object: object, Username: username, AtNS: s.nowNS, Client: s.client.line(s.nowNS)},
		int(s.srv.cfg.ACLLogMaxLen.Get()))
}

// authenticate checks a user's password. command is the name that AUTH or HELLO was called by.
func (s *Session) authenticate(command, name, password []byte) bool {
	u := s.srv.users.Authenticate(name, password)
	if u == nil {
		s.srv.stats.WrongPasswords.Add(1)
		tried := "" // what is no user's name may be a password in the wrong place
		if s.srv.users.Get(string(name)) != nil {
			tried = string(name)
		}
		s.tell(tellPassword, "tried", tried)
		where := "toplevel"
		if s.tx.running {
			where = "multi"
		}
		s.logDenial(acl.DeniedAuth, where, string(command), string(name))
		return false
	}
	s.become(u)
	return true
}

// noteUsers logs that an operator has changed users.
func (s *Session) noteUsers(what string, attrs ...any) {
	s.srv.log.Bounded(1, what, slog.LevelInfo, what, append(attrs, "by", s.client.user.Load().Name(), "client", s.client.addr)...)
}
