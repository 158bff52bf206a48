package resp

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"math"
	"strings"

	"celld/resp/acl"
)

func aclRows() []*command {
	const open, operator = loading | noScript, loading | noScript | admin
	return []*command{
		{name: "cat", arity: -2, flags: open, usage: "[category]", summary: "Returns the categories, or the commands of one.", since: "6.0.0", group: "server", run: cmdACLCat},
		{name: "deluser", arity: -3, most: shortList, flags: operator, usage: "username ...", summary: "Removes users, and closes their connections.", since: "6.0.0", group: "server", run: cmdACLDelUser},
		{name: "dryrun", arity: -4, many: true, flags: operator, usage: "username command [arg ...]", summary: "Says whether a user may run a command.", since: "7.0.0", group: "server", run: cmdACLDryRun},
		{name: "genpass", arity: -2, flags: open, usage: "[bits]", summary: "Returns a random password of so many bits, 256 by default.", since: "6.0.0", group: "server", run: cmdACLGenPass},
		{name: "getuser", arity: 3, flags: operator, usage: "username", summary: "Returns the rights of a user.", since: "6.0.0", group: "server", run: cmdACLGetUser},
		{name: "list", arity: 2, flags: operator, summary: "Returns the users and their rules, as the file has them.", since: "6.0.0", group: "server", run: cmdACLList},
		{name: "load", arity: 2, flags: operator, summary: "Reads the file of users again.", since: "6.0.0", group: "server", run: cmdACLLoad, far: farACLLoad, aside: true},
		{name: "log", arity: -2, flags: operator, usage: "[count|RESET]", summary: "Returns what was refused lately, or forgets it.", since: "6.0.0", group: "server", run: cmdACLLog},
		{name: "save", arity: 2, flags: operator, summary: "Writes the users to the file.", since: "6.0.0", group: "server", run: cmdACLSave, far: farACLSave, aside: true},
		{name: "setuser", arity: -3, many: true, flags: operator, usage: "username [rule ...]", summary: "Makes a user, or changes its rights.", since: "6.0.0", group: "server", run: cmdACLSetUser},
		{name: "users", arity: 2, flags: operator, summary: "Returns the names of the users.", since: "6.0.0", group: "server", run: cmdACLUsers},
		{name: "whoami", arity: 2, flags: open, summary: "Returns the connection's user.", since: "6.0.0", group: "server", run: cmdACLWhoAmI},
	}
}

func cmdACLCat(s *Session, args [][]byte) {
	switch {
	case len(args) > 3:
		s.replyError(errACLArgs, args[1])
	case len(args) == 2:
		s.replyStrings(acl.CategoryNames)
	default:
		category := acl.ParseCategory(string(args[2]))
		if category == 0 {
			s.replyError(errCategory, args[2])
			return
		}
		s.replyStrings(s.srv.users.Table().In(category))
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
			s.replyError(errRule, rule.Rule, rule.Err)
		case err != nil:
			s.replyError("ERR %s", err)
		default:
			if u := s.srv.users.Get(string(args[2])); !u.Rights().On() {
				s.srv.endCertified(s, u)
			}
			s.checkRights()
			s.noteUsers("user set", "user", string(args[2]))
			s.replyOK()
		}
	})
}

func cmdACLDelUser(s *Session, args [][]byte) {
	for _, name := range args[2:] {
		if string(name) == acl.DefaultName {
			s.replyError(errDefaultUser)
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
		s.replyInt(int64(len(gone)))
	})
}

// cmdACLGenPass is ACL GENPASS [bits]. A digit of the password has 4 bits.
func cmdACLGenPass(s *Session, args [][]byte) {
	bits := int64(256)
	if len(args) > 3 {
		s.replyError(errACLArgs, args[1])
		return
	}
	if len(args) == 3 {
		var ok bool
		if bits, ok = parseInt(args[2]); !ok {
			s.replyError(errNotInteger)
			return
		}
		if bits < 1 || bits > 4096 {
			s.replyError(errGenPass)
			return
		}
	}
	random := make([]byte, 512)
	_, _ = rand.Read(random) // it never fails
	s.replyString(hex.EncodeToString(random)[:(bits+3)/4])
}

func cmdACLGetUser(s *Session, args [][]byte) {
	u := s.srv.users.Get(string(args[2]))
	if u == nil {
		s.replyNull()
		return
	}
	r := u.Rights()
	s.replyMap(6)
	s.replyString("flags")
	flags := r.Flags()
	s.replySet(len(flags))
	for _, flag := range flags {
		s.replyString(flag)
	}
	s.replyString("passwords")
	s.replyStrings(r.Passwords())
	s.replyPair("commands", r.Commands())
	s.replyPair("keys", r.Keys())
	s.replyPair("channels", r.Channels())
	s.replyString("selectors")
	s.replyArray(0)
}

func cmdACLList(s *Session, _ [][]byte) {
	users := s.srv.users.Sorted()
	s.replyArray(len(users))
	for _, u := range users {
		if s.replyString(u.Line()); s.overOutput(len(s.out)) {
			return
		}
	}
}

func cmdACLUsers(s *Session, _ [][]byte) {
	users := s.srv.users.Sorted()
	s.replyArray(len(users))
	for _, u := range users {
		s.replyString(u.Name())
	}
}

func cmdACLWhoAmI(s *Session, _ [][]byte) { s.replyString(s.client.user.Load().Name()) }

// cmdACLLog is ACL LOG [count|RESET]. Ages are in seconds.
func cmdACLLog(s *Session, args [][]byte) {
	count := int64(10)
	switch {
	case len(args) > 3:
		s.replyError(errACLArgs, args[1])
		return
	case len(args) == 3 && strings.EqualFold(string(args[2]), "reset"):
		s.srv.aclLog.Reset()
		s.replyOK()
		return
	case len(args) == 3:
		var ok bool
		if count, ok = parseInt(args[2]); !ok {
			s.replyError(errNotInteger)
			return
		}
	}
	entries := s.srv.aclLog.Last(int(min(count, math.MaxInt32)))
	s.replyArray(len(entries))
	for _, e := range entries {
		s.replyMap(7)
		s.replyField("count", e.Count)
		s.replyPair("reason", string(e.Reason))
		s.replyPair("context", e.Context)
		s.replyPair("object", e.Object)
		s.replyPair("username", e.Username)
		s.replyString("age-seconds")
		s.replyDouble(float64(max(0, s.nowNS-e.AtNS)/1e6) / 1e3)
		s.replyPair("client-info", e.Client)
	}
}

// cmdACLDryRun is ACL DRYRUN username command [arg ...].
func cmdACLDryRun(s *Session, args [][]byte) {
	u, call := s.srv.users.Get(string(args[2])), args[3:]
	if u == nil {
		s.replyError(errDryRunUser, args[2])
		return
	}
	row := s.srv.commands.find(call[0])
	if row != nil && len(row.sub) > 0 && len(call) > 1 {
		row = row.findSub(call[1])
	}
	switch {
	case row == nil:
		s.replyError(errDryRunCommand, call[0])
		return
	case row.arity > 0 && len(call) != row.arity, len(call) < -row.arity:
		s.replyError(errArity, row.fullName())
		return
	}
	c := denialCheck{row: row, rights: u.Rights()}
	s.inSteps(args, func(s *Session, args [][]byte) (more bool) {
		if c.some(args[3:], rightsStep) {
			return true
		}
		switch c.reason {
		case acl.DeniedCommand:
			s.replyString(formatError("This user has no permissions to run the '%s' command", c.object))
		case acl.DeniedKey:
			s.replyString(formatError("This user has no permissions to access the '%s' key", c.object))
		default:
			s.replyOK()
		}
		return false
	})
}
