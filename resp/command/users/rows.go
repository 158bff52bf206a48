package users

import (
	"sync"

	"celld/resp/acl"
	"celld/resp/client"
	"celld/resp/command"
	"celld/resp/command/spec"
	"celld/resp/loglimit"
)

// Server is what the family needs of its server. A table that only names the commands asks for none.
type Server struct {
	Users    *acl.Users
	Denied   *acl.Log // what ACL LOG shows
	Clients  *client.List
	Commands *command.Table
	File     string // --aclfile; empty: there is none
	Saved    func() // is told that what it holds is in force, after LOAD and SAVE
	Log      *loglimit.Logger
}

// family is what the handlers share.
type family struct {
	server func() Server
	saving sync.Mutex
}

// Rows are the commands of the family.
func Rows(server func() Server) []*command.Row {
	const open, operator = spec.Loading | spec.NoScript, spec.Loading | spec.NoScript | spec.Admin
	f := &family{server: server}
	rows := []*command.Row{
		{Name: "cat", Arity: -2, Flags: open, Usage: "[category]", Summary: "Returns the categories, or the commands of one.", Since: "6.0.0", Group: "server", Run: f.cat},
		{Name: "deluser", Arity: -3, Most: spec.ShortList, Flags: operator | spec.Audited, Usage: "username ...", Summary: "Removes users, and closes their connections.", Since: "6.0.0", Group: "server", Run: command.OnConnection(f.delUser)},
		{Name: "dryrun", Arity: -4, Many: true, Flags: operator, Usage: "username command [arg ...]", Summary: "Says whether a user may run a command.", Since: "7.0.0", Group: "server", Run: f.dryRun},
		{Name: "genpass", Arity: -2, Flags: open, Usage: "[bits]", Summary: "Returns a random password of this many bits, 256 by default.", Since: "6.0.0", Group: "server", Run: genPass},
		{Name: "getuser", Arity: 3, Flags: operator, Usage: "username", Summary: "Returns the rights of a user.", Since: "6.0.0", Group: "server", Run: f.getUser},
		{Name: "list", Arity: 2, Flags: operator, Summary: "Returns the users and their rules, as the file has them.", Since: "6.0.0", Group: "server", Run: func(c *command.Call) { c.List(f.list) }},
		{Name: "load", Arity: 2, Flags: operator | spec.Audited, Summary: "Reads the file of users again.", Since: "6.0.0", Group: "server", Run: command.OnConnection(f.load)},
		{Name: "log", Arity: -2, Flags: operator, Usage: "[count|RESET]", Summary: "Returns what was refused lately, or forgets it.", Since: "6.0.0", Group: "server", Run: f.log},
		{Name: "save", Arity: 2, Flags: operator | spec.Audited, Summary: "Writes the users to the file.", Since: "6.0.0", Group: "server", Run: func(c *command.Call) { offload(c, f.write) }},
		{Name: "setuser", Arity: -3, Many: true, Flags: operator | spec.Audited, Usage: "username [rule ...]", Summary: "Makes a user, or changes its rights.", Since: "6.0.0", Group: "server", Run: command.OnConnection(f.setUser)},
		{Name: "users", Arity: 2, Flags: operator, Summary: "Returns the names of the users.", Since: "6.0.0", Group: "server", Run: f.names},
		{Name: "whoami", Arity: 2, Flags: open, Summary: "Returns the connection's user.", Since: "6.0.0", Group: "server", Run: command.OnConnection(whoAmI)},
	}
	return []*command.Row{{Name: "acl", Arity: -2, Flags: spec.Loading, Summary: "A container for commands on users and their rights.",
		Since: "6.0.0", Group: "server", Sub: rows}}
}
