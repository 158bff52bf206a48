package connection

import (
	"celld/resp/acl"
	"celld/resp/client"
	"celld/resp/command"
	"celld/resp/command/spec"
)

// Server is what the family needs of its server. A table that only names the commands asks for none.
type Server struct {
	Users   *acl.Users
	Clients *client.List
	Waits   client.Leaver // has the calls that CLIENT UNBLOCK ends
	Version string        // of Redis, as HELLO tells it
}

// family is what the handlers share.
type family struct{ server func() Server }

// Rows are the commands of the family.
func Rows(server func() Server) []*command.Row {
	f := family{server}
	return []*command.Row{
		{Name: "ping", Arity: -1, Flags: spec.Fast, Usage: "[message]", Summary: "Returns the server's liveliness response.", Since: "1.0.0", Group: "connection", Run: ping},
		{Name: "echo", Arity: 2, Flags: spec.Loading | spec.Fast, Usage: "message", Summary: "Returns the given string.", Since: "1.0.0", Group: "connection", Run: func(c *command.Call) { c.Bulk(c.Args[1]) }},
		{Name: "quit", Arity: -1, Flags: spec.AllowBusy | spec.NoScript | spec.Loading | spec.Fast | spec.NoAuth | spec.Immediate, Summary: "Closes the connection.", Since: "1.0.0", Group: "connection", Run: command.OnConnection(quit)},
		{Name: "monitor", Arity: 1, Flags: spec.Loading | spec.Admin | spec.NoScript, Summary: "Listens for all requests received by the server in real-time.", Since: "1.0.0", Group: "server", Run: command.OnConnection(f.monitor)},
		{Name: "reset", Arity: 1, Flags: spec.AllowBusy | spec.Loading | spec.Fast | spec.NoAuth | spec.Immediate | spec.NoScript, Summary: "Resets the connection.", Since: "6.2.0", Group: "connection", Run: command.OnConnection(reset)},
		{Name: "select", Arity: 2, Flags: spec.Loading | spec.Fast, Usage: "index", Summary: "Changes the selected database. There is one, 0.", Since: "1.0.0", Group: "connection", Run: selectDB},
		{Name: "auth", Arity: -2, Flags: spec.AllowBusy | spec.Loading | spec.Fast | spec.NoAuth | spec.NoScript, Usage: "[username] password", Summary: "Authenticates the connection.", Since: "1.0.0", Group: "connection", Run: command.OnConnection(f.auth)},
		{Name: "hello", Arity: -1, Flags: spec.AllowBusy | spec.Loading | spec.Fast | spec.NoAuth | spec.NoScript, Usage: "[protover] [AUTH username password] [SETNAME clientname]", Summary: "Handshakes with the server.", Since: "6.0.0", Group: "connection", Run: command.OnConnection(f.hello)},
		{Name: "client", Arity: -2, Flags: spec.Loading, Summary: "A container for client connection commands.", Since: "2.4.0", Group: "connection", Sub: f.client()},
	}
}

// client are the subcommands of CLIENT.
func (f family) client() []*command.Row {
	return []*command.Row{
		{Name: "id", Arity: 2, Flags: spec.NoScript | spec.Fast, Summary: "Returns the connection's id.", Since: "5.0.0", Group: "connection", Run: command.OnConnection(id)},
		{Name: "info", Arity: 2, Flags: spec.NoScript, Summary: "Returns information about the connection.", Since: "6.2.0", Group: "connection", Run: command.OnConnection(info)},
		{Name: "list", Arity: -2, Many: true, Flags: spec.NoScript | spec.Admin, Usage: "[TYPE NORMAL|MASTER|REPLICA|PUBSUB] [ID client-id ...]", Summary: "Lists open connections.", Since: "2.4.0", Group: "connection", Cost: "O(N) where N is the number of connections", Run: f.list},
		{Name: "kill", Arity: -3, Most: spec.ShortList, Flags: spec.NoScript | spec.Admin | spec.Audited, Usage: "addr|[ID client-id] [TYPE NORMAL|MASTER|REPLICA|PUBSUB] [USER username] [ADDR addr] [LADDR addr] [SKIPME YES|NO] [MAXAGE seconds]", Summary: "Closes connections.", Since: "2.4.0", Group: "connection", Cost: "O(N) where N is the number of connections", Run: command.OnConnection(f.kill)},
		{Name: "unblock", Arity: -3, Flags: spec.NoScript | spec.Admin, Usage: "client-id [TIMEOUT|ERROR]", Summary: "Ends the wait of a connection's CL.TAKE: as if the time was over, or with an error.", Since: "5.0.0", Group: "connection", Run: f.unblock},
		{Name: "getname", Arity: 2, Flags: spec.NoScript | spec.Fast, Summary: "Returns the connection's name.", Since: "2.6.9", Group: "connection", Run: command.OnConnection(getName)},
		{Name: "setname", Arity: 3, Flags: spec.NoScript | spec.Fast, Usage: "name", Summary: "Sets the connection's name.", Since: "2.6.9", Group: "connection", Run: command.OnConnection(setName)},
		{Name: "setinfo", Arity: 4, Flags: spec.NoScript | spec.Fast, Usage: "LIB-NAME|LIB-VER value", Summary: "Sets the name or version of the client's library.", Since: "7.2.0", Group: "connection", Run: command.OnConnection(setInfo)},
		{Name: "no-evict", Arity: 3, Flags: spec.NoScript | spec.Admin, Usage: "ON|OFF", Summary: "Sets the connection's no-evict mode. Clients are never evicted here.", Since: "7.0.0", Group: "connection", Run: command.OnConnection(noEvict)},
		{Name: "no-touch", Arity: 3, Flags: spec.NoScript | spec.Fast, Usage: "ON|OFF", Summary: "Sets whether the connection's commands leave the order in which keys were used unchanged.", Since: "7.2.0", Group: "connection", Run: command.OnConnection(noTouch)},
		{Name: "reply", Arity: 3, Flags: spec.NoScript, Usage: "ON|OFF|SKIP", Summary: "Instructs the server whether to reply to commands.", Since: "3.2.0", Group: "connection", Run: command.OnConnection(setReplies)},
		{Name: "tracking", Arity: -3, Flags: spec.Fast | spec.NoScript, Usage: "ON|OFF [OPTIN]", Summary: "Sets whether the connection is told that the keys it reads have changed. celld tells it at once.", Since: "6.0.0", Group: "connection", Run: command.OnConnection(f.tracking)},
		{Name: "caching", Arity: 3, Flags: spec.Fast | spec.NoScript, Usage: "YES|NO", Summary: "Sets whether the next command or transaction is tracked.", Since: "6.0.0", Group: "connection", Run: command.OnConnection(caching)},
		{Name: "trackinginfo", Arity: 2, Flags: spec.Fast | spec.NoScript, Summary: "Returns how the connection tracks.", Since: "6.2.0", Group: "connection", Run: command.OnConnection(trackingInfo)},
		{Name: "getredir", Arity: 2, Flags: spec.Fast | spec.NoScript, Summary: "Returns the id of the client that is told of changed keys: 0 for the connection itself, -1 for none.", Since: "6.0.0", Group: "connection", Run: command.OnConnection(getRedir)},
	}
}
