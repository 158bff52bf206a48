package resp

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"math"
	"strings"

	"celld/resp/acl"
	"celld/resp/command"
)

func aclRows() []*command.Row {
	const open, operator = command.Loading | command.NoScript, command.Loading | command.NoScript | command.Admin
	return []*command.Row{
		{Name: "cat", Arity: -2, Flags: open, Usage: "[category]", Summary: "Returns the categories, or the commands of one.", Since: "6.0.0", Group: "server", Run: onSession(cmdACLCat)},
		{Name: "deluser", Arity: -3, Most: command.ShortList, Flags: operator, Usage: "username ...", Summary: "Removes users, and closes their connections.", Since: "6.0.0", Group: "server", Run: onSession(cmdACLDelUser)},
		{Name: "dryrun", Arity: -4, Many: true, Flags: operator, Usage: "username command [arg ...]", Summary: "Says whether a user may run a command.", Since: "7.0.0", Group: "server", Run: onSession(cmdACLDryRun)},
		{Name: "genpass", Arity: -2, Flags: open, Usage: "[bits]", Summary: "Returns a random password of so many bits, 256 by default.", Since: "6.0.0", Group: "server", Run: onSession(cmdACLGenPass)},
		{Name: "getuser", Arity: 3, Flags: operator, Usage: "username", Summary: "Returns the rights of a user.", Since: "6.0.0", Group: "server", Run: onSession(cmdACLGetUser)},
		{Name: "list", Arity: 2, Flags: operator, Summary: "Returns the users and their rules, as the file has them.", Since: "6.0.0", Group: "server", Run: onSession(cmdACLList)},
		{Name: "load", Arity: 2, Flags: operator, Summary: "Reads the file of users again.", Since: "6.0.0", Group: "server", Run: onSession(cmdACLLoad), Far: farOnSession(farACLLoad), Aside: true},
		{Name: "log", Arity: -2, Flags: operator, Usage: "[count|RESET]", Summary: "Returns what was refused lately, or forgets it.", Since: "6.0.0", Group: "server", Run: onSession(cmdACLLog)},
		{Name: "save", Arity: 2, Flags: operator, Summary: "Writes the users to the file.", Since: "6.0.0", Group: "server", Run: onSession(cmdACLSave), Far: farOnSession(farACLSave), Aside: true},
		{Name: "setuser", Arity: -3, Many: true, Flags: operator, Usage: "username [rule ...]", Summary: "Makes a user, or changes its rights.", Since: "6.0.0", Group: "server", Run: onSession(cmdACLSetUser)},
		{Name: "users", Arity: 2, Flags: operator, Summary: "Returns the names of the users.", Since: "6.0.0", Group: "server", Run: onSession(cmdACLUsers)},
		{Name: "whoami", Arity: 2, Flags: open, Summary: "Returns the connection's user.", Since: "6.0.0", Group: "server", Run: onSession(cmdACLWhoAmI)},
	}
}

func cmdACLCat(s *Session, args [][]byte) {
	switch {
	case len(args) > 3:
		s.call.Error(errACLArgs, args[1])
	case len(args) == 2:
		s.call.Strings(acl.CategoryNames)
	default:
		category := acl.ParseCategory(string(args[2]))
		if category == 0 {
			s.call.Error(errCategory, args[2])
			return
		}
		s.call.Strings(s.srv.users.Table().In(category))
	}
}

// cmdACLSetUser is ACL SETUSER username [rule ...]. It applies all rules or none.
func cmdACLSetUser(s *Session, args [][]byte) {
	rules := make([]string, 0, len(args)-3)
	for _, arg := range args[3:] {
		rules = append(rules, string(arg))
	}
	s.alone(func() { // so whoever runs a command later has the new rights
		err := s.srv.users.Set(string(args[2]), rules)
		rule := (*acl.RuleError)(nil)
		switch {
		case errors.As(err, &rule):
			s.call.Error(errRule, rule.Rule, rule.Err)
		case err != nil:
			s.call.Error("ERR %s", err)
		default:
			if u := s.srv.users.Get(string(args[2])); !u.Rights().On() {
				s.srv.endCertified(s, u)
			}
			s.checkRights()
			s.noteUsers("user set", "user", string(args[2]))
			s.call.OK()
		}
	})
}

func cmdACLDelUser(s *Session, args [][]byte) {
	for _, name := range args[2:] {
		if string(name) == acl.DefaultName {
			s.call.Error(errDefaultUser)
			return
		}
	}
	s.alone(func() {
		var gone []*acl.User
		for _, name := range args[2:] {
			if u := s.srv.users.Delete(string(name)); u != nil {
				gone = append(gone, u)
				s.noteUsers("user removed", "user", u.Name())
			}
		}
		s.srv.endSessionsOf(s, gone...)
		s.call.Int(int64(len(gone)))
	})
}

// cmdACLGenPass is ACL GENPASS [bits]. A digit of the password has 4 bits.
func cmdACLGenPass(s *Session, args [][]byte) {
	bits := int64(256)
	if len(args) > 3 {
		s.call.Error(errACLArgs, args[1])
		return
	}
	if len(args) == 3 {
		var ok bool
		if bits, ok = command.ParseInt(args[2]); !ok {
			s.call.Error(errNotInteger)
			return
		}
		if bits < 1 || bits > 4096 {
			s.call.Error(errGenPass)
			return
		}
	}
	random := make([]byte, 512)
	_, _ = rand.Read(random) // it never fails
	s.call.String(hex.EncodeToString(random)[:(bits+3)/4])
}

func cmdACLGetUser(s *Session, args [][]byte) {
	u := s.srv.users.Get(string(args[2]))
	if u == nil {
		s.call.Null()
		return
	}
	r := u.Rights()
	s.call.Map(6)
	s.call.String("flags")
	flags := r.Flags()
	s.call.Set(len(flags))
	for _, flag := range flags {
		s.call.String(flag)
	}
	s.call.String("passwords")
	s.call.Strings(r.Passwords())
	s.call.Pair("commands", r.Commands())
	s.call.Pair("keys", r.Keys())
	s.call.Pair("channels", r.Channels())
	s.call.String("selectors")
	s.call.Array(0)
}

// cmdACLList takes 4 ms for a thousand users.
func cmdACLList(s *Session, _ [][]byte) {
	users := s.srv.users
	s.call.List(func(c *command.Call) {
		list := users.Sorted()
		c.Array(len(list))
		for _, u := range list {
			if c.String(u.Line()); c.OverOutput(len(c.Out)) {
				return
			}
		}
	})
}

func cmdACLUsers(s *Session, _ [][]byte) {
	users := s.srv.users.Sorted()
	s.call.Array(len(users))
	for _, u := range users {
		s.call.String(u.Name())
	}
}

func cmdACLWhoAmI(s *Session, _ [][]byte) { s.call.String(s.client.user.Load().Name()) }

// cmdACLLog is ACL LOG [count|RESET]. Ages are in seconds.
func cmdACLLog(s *Session, args [][]byte) {
	count := int64(10)
	switch {
	case len(args) > 3:
		s.call.Error(errACLArgs, args[1])
		return
	case len(args) == 3 && strings.EqualFold(string(args[2]), "reset"):
		s.srv.aclLog.Reset()
		s.call.OK()
		return
	case len(args) == 3:
		var ok bool
		if count, ok = command.ParseInt(args[2]); !ok {
			s.call.Error(errNotInteger)
			return
		}
	}
	entries := s.srv.aclLog.Last(int(min(count, math.MaxInt32)))
	s.call.Array(len(entries))
	for _, e := range entries {
		s.call.Map(7)
		s.call.Field("count", e.Count)
		s.call.Pair("reason", string(e.Reason))
		s.call.Pair("context", e.Context)
		s.call.Pair("object", e.Object)
		s.call.Pair("username", e.Username)
		s.call.String("age-seconds")
		s.call.Double(float64(max(0, s.nowNS-e.AtNS)/1e6) / 1e3)
		s.call.Pair("client-info", e.Client)
	}
}

// cmdACLDryRun is ACL DRYRUN username command [arg ...].
func cmdACLDryRun(s *Session, args [][]byte) {
	u, call := s.srv.users.Get(string(args[2])), args[3:]
	if u == nil {
		s.call.Error(errDryRunUser, args[2])
		return
	}
	row := s.srv.commands.Find(call[0])
	if row != nil && len(row.Sub) > 0 && len(call) > 1 {
		row = row.FindSub(call[1])
	}
	switch {
	case row == nil:
		s.call.Error(errDryRunCommand, call[0])
		return
	case row.Arity > 0 && len(call) != row.Arity, len(call) < -row.Arity:
		s.call.Error(errArity, row.FullName())
		return
	}
	c := denialCheck{row: row, rights: u.Rights()}
	s.inSteps(args, func(s *Session, args [][]byte) (more bool) {
		if c.some(args[3:], rightsStep) {
			return true
		}
		switch c.reason {
		case acl.DeniedCommand:
			s.call.String(formatError("This user has no permissions to run the '%s' command", c.object))
		case acl.DeniedKey:
			s.call.String(formatError("This user has no permissions to access the '%s' key", c.object))
		default:
			s.call.OK()
		}
		return false
	})
}
