package users

import (
	"crypto/rand"
	"encoding/hex"
	"math"
	"strings"

	"celld/resp/acl"
	"celld/resp/command"
	"celld/resp/command/argument"
)

func (f *family) cat(c *command.Call) {
	switch {
	case len(c.Args) > 3:
		c.Error(errACLArgs, c.Args[1])
	case len(c.Args) == 2:
		c.Strings(acl.CategoryNames)
	default:
		category := acl.ParseCategory(string(c.Args[2]))
		if category == 0 {
			c.Error(errCategory, c.Args[2])
			return
		}
		c.Strings(f.server().Users.Table().In(category))
	}
}

// genPass is ACL GENPASS [bits]. A digit of the password has 4 bits.
func genPass(c *command.Call) {
	bits := int64(256)
	if len(c.Args) > 3 {
		c.Error(errACLArgs, c.Args[1])
		return
	}
	if len(c.Args) == 3 {
		var ok bool
		if bits, ok = argument.ParseInt(c.Args[2]); !ok {
			c.Error(argument.ErrNotInteger)
			return
		}
		if bits < 1 || bits > 4096 {
			c.Error(errGenPass)
			return
		}
	}
	random := make([]byte, 512)
	_, _ = rand.Read(random) // it never fails
	c.String(hex.EncodeToString(random)[:(bits+3)/4])
}

func (f *family) getUser(c *command.Call) {
	u := f.server().Users.Get(string(c.Args[2]))
	if u == nil {
		c.Null()
		return
	}
	r := u.Rights()
	c.Map(6)
	c.String("flags")
	c.StringSet(r.Flags())
	c.String("passwords")
	c.Strings(r.Passwords())
	c.Pair("commands", r.Commands())
	c.Pair("keys", r.Keys())
	c.Pair("channels", r.Channels())
	c.String("selectors")
	c.Array(0)
}

// list takes 4 ms for a thousand users.
func (f *family) list(c *command.Call) {
	list := f.server().Users.Sorted()
	c.Array(len(list))
	for _, u := range list {
		if c.String(u.Line()); c.OverOutput(len(c.Out)) {
			return
		}
	}
}

func (f *family) names(c *command.Call) {
	users := f.server().Users.Sorted()
	c.Array(len(users))
	for _, u := range users {
		c.String(u.Name())
	}
}

func whoAmI(c *command.Call, own command.Connection) { c.String(own.Client().User.Load().Name()) }

// log is ACL LOG [count|RESET]. Ages are in seconds.
func (f *family) log(c *command.Call) {
	denied, count := f.server().Denied, int64(10)
	switch {
	case len(c.Args) > 3:
		c.Error(errACLArgs, c.Args[1])
		return
	case len(c.Args) == 3 && strings.EqualFold(string(c.Args[2]), "reset"):
		denied.Reset()
		c.OK()
		return
	case len(c.Args) == 3:
		var ok bool
		if count, ok = argument.ParseInt(c.Args[2]); !ok {
			c.Error(argument.ErrNotInteger)
			return
		}
	}
	entries := denied.Last(int(min(count, math.MaxInt32)))
	c.Array(len(entries))
	for _, e := range entries {
		c.Map(7)
		c.Field("count", e.Count)
		c.Pair("reason", string(e.Reason))
		c.Pair("context", e.Context)
		c.Pair("object", e.Object)
		c.Pair("username", e.Username)
		c.String("age-seconds")
		c.Double(float64(max(0, c.NowNS-e.AtNS)/1e6) / 1e3)
		c.Pair("client-info", e.Client)
	}
}

// dryRun is ACL DRYRUN username command [arg ...].
func (f *family) dryRun(c *command.Call) {
	s, call := f.server(), c.Args[3:]
	u := s.Users.Get(string(c.Args[2]))
	if u == nil {
		c.Error(errDryRunUser, c.Args[2])
		return
	}
	row := s.Commands.FindCall(call)
	if row == nil {
		c.Error(errDryRunCommand, call[0])
		return
	}
	if text := row.ArityError(len(call)); text != "" {
		c.Error("%s", text)
		return
	}
	check := command.Check{Row: row, Rights: u.Rights()}
	c.InSteps(func(c *command.Call) (more bool) {
		if check.Step(c.Args[3:]) {
			return true
		}
		switch check.Reason {
		case acl.DeniedCommand:
			c.String("This user has no permissions to run the '" + check.Object + "' command")
		case acl.DeniedKey:
			c.String("This user has no permissions to access the '" + check.Object + "' key")
		default:
			c.OK()
		}
		return false
	})
}
