package resp

import (
	"slices"

	"celld/resp/command"
	"celld/resp/command/admin"
	"celld/resp/command/describe"
	"celld/resp/command/keys"
	"celld/resp/command/limit"
	"celld/resp/config"
	"celld/resp/latency"
	"celld/resp/slowlog"
	"celld/resp/stats"
)

// newCommandTable returns the rows of all families. A table of which only names and rights are asked needs no server.
func newCommandTable(srv *Server) *command.Table {
	return command.NewTable(commandRows(srv), func() any { return &stats.Command{} })
}

// commandRows is the command table, by family.
func commandRows(srv *Server) []*command.Row {
	if srv == nil {
		srv = &Server{}
	}
	limits := func() limit.Server {
		return limit.Server{Store: srv.port, InForce: srv.store, LogMax: srv.cfg.LogMax.Get(), Decisions: srv.decisions, Denied: srv.denied}
	}
	of := keys.Options{
		Space: func() keys.Space { return srv.space },
	}
	rows := []*command.Row{
		{Name: "cl.throttle", Arity: -1, Flags: command.Write | command.DenyOOM | command.Module | command.Fast | command.Decides, Keys: command.OneKey, Group: "module",
			Usage: "key max_burst count period [quantity]", Summary: "Takes from a key's limit if there is enough, and says whether there was.", Run: onSession(decide)},

		{Name: "gcra", Arity: -5, Flags: command.Write | command.DenyOOM | command.Fast | command.Decides, Keys: command.OneKey, Since: "8.8.0", Group: "rate_limit",
			Usage: "key max-burst tokens-per-period period [TOKENS count]", Summary: "Rate limit via GCRA (Generic Cell Rate Algorithm).", Run: onSession(decide)},

		{Name: "cl.take", Arity: -3, Flags: command.Write | command.DenyOOM | command.Fast | command.Blocking | command.Decides, Keys: command.OneKey, Group: command.GroupLimit,
			Usage: "key limit ... [COST n] [PEEK|UPTO|FORCE|RESERVE max|WAIT max] [LEASE ms] [BIND] [ID name] [US] [FULL]", Summary: "Takes from all given limits of a key, or from none.", Cost: "O(N) where N is the number of limits", Run: onSession(decide)},
		{Name: "cl.mtake", Arity: -4, Flags: command.Write | command.DenyOOM | command.Fast | command.Blocking | command.Decides, Keys: command.CountedPairs, Group: command.GroupLimit,
			Usage: "n key limit [key limit] ... [COST n] [PEEK|UPTO|FORCE|RESERVE max|WAIT max] [LEASE ms] [BIND] [ID name] [US]", Summary: "Takes from the limits of several keys at the same instant, or from none.", Cost: "O(N) where N is the number of pairs", Run: onSession(decide)},
		{Name: "cl.give", Arity: 4, Flags: command.Write | command.Fast | command.Decides, Keys: command.OneKey, Group: command.GroupLimit, Usage: "key limit n", Summary: "Gives back what was taken from a limit.", Run: onSession(cmdGive)},
	}
	others := []*command.Row{
		{Name: "ping", Arity: -1, Flags: command.Fast, Usage: "[message]", Summary: "Returns the server's liveliness response.", Since: "1.0.0", Group: "connection", Run: onSession(cmdPing)},
		{Name: "echo", Arity: 2, Flags: command.Loading | command.Fast, Usage: "message", Summary: "Returns the given string.", Since: "1.0.0", Group: "connection", Run: onSession(cmdEcho)},
		{Name: "quit", Arity: -1, Flags: command.AllowBusy | command.NoScript | command.Loading | command.Fast | command.NoAuth | command.Immediate, Summary: "Closes the connection.", Since: "1.0.0", Group: "connection", Run: onSession(cmdQuit)},
		{Name: "reset", Arity: 1, Flags: command.AllowBusy | command.Loading | command.Fast | command.NoAuth | command.Immediate | command.NoScript, Summary: "Resets the connection.", Since: "6.2.0", Group: "connection", Run: onSession(cmdReset)},
		{Name: "select", Arity: 2, Flags: command.Loading | command.Fast, Usage: "index", Summary: "Changes the selected database. There is one, 0.", Since: "1.0.0", Group: "connection", Run: onSession(cmdSelect)},
		{Name: "auth", Arity: -2, Flags: command.AllowBusy | command.Loading | command.Fast | command.NoAuth | command.NoScript, Usage: "[username] password", Summary: "Authenticates the connection.", Since: "1.0.0", Group: "connection", Run: onSession(cmdAuth)},
		{Name: "hello", Arity: -1, Flags: command.AllowBusy | command.Loading | command.Fast | command.NoAuth | command.NoScript, Usage: "[protover] [AUTH username password] [SETNAME clientname]", Summary: "Handshakes with the server.", Since: "6.0.0", Group: "connection", Run: onSession(cmdHello)},
		{Name: "client", Arity: -2, Flags: command.Loading, Summary: "A container for client connection commands.", Since: "2.4.0", Group: "connection", Sub: clientRows()},

		{Name: "acl", Arity: -2, Flags: command.Loading, Summary: "A container for commands on users and their rights.", Since: "6.0.0", Group: "server", Sub: aclRows()},
		describe.Row(func() *command.Table { return srv.commands }),
		{Name: "config", Arity: -2, Flags: command.Loading, Summary: "A container for server configuration commands.", Since: "2.0.0", Group: "server", Sub: config.Rows(srv.configCommands())},
	}
	serverRows := []*command.Row{
		{Name: "monitor", Arity: 1, Flags: command.Loading | command.Admin | command.NoScript, Summary: "Listens for all requests received by the server in real-time.", Since: "1.0.0", Group: "server", Run: onSession(cmdMonitor)},
		{Name: "latency", Arity: -2, Summary: "A container for latency diagnostics commands.", Since: "2.8.13", Group: "server", Sub: latency.Rows(srv.latency, func() *command.Table { return srv.commands })},
		{Name: "slowlog", Arity: -2, Flags: command.Loading, Summary: "A container for slow log commands.", Since: "2.2.12", Group: "server", Sub: slowlog.Rows(srv.slowlog)},
	}
	return slices.Concat(rows, limit.Rows(limits), others, keys.AllRows(of), admin.Rows(srv.admin), serverRows, keys.Rows(of), scriptRows(), transactionRows())
}
