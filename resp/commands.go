package resp

import (
	"slices"

	"celld/resp/command"
	"celld/resp/command/admin"
	"celld/resp/command/connection"
	"celld/resp/command/decide"
	"celld/resp/command/describe"
	"celld/resp/command/keys"
	"celld/resp/command/limit"
	"celld/resp/command/users"
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
	own := func() connection.Server {
		return connection.Server{Users: srv.users, Clients: &srv.clients, Waits: srv.port, Version: RedisVersion}
	}
	accounts := func() users.Server {
		return users.Server{Users: srv.users, Denied: &srv.aclLog, Clients: &srv.clients, Commands: srv.commands, File: srv.cfg.ACLFile.Get(),
			Log: srv.log}
	}
	others := []*command.Row{
		{Name: "latency", Arity: -2, Summary: "A container for latency diagnostics commands.", Since: "2.8.13", Group: "server", Sub: latency.Rows(srv.latency, func() *command.Table { return srv.commands })},
		{Name: "slowlog", Arity: -2, Flags: command.Loading, Summary: "A container for slow log commands.", Since: "2.2.12", Group: "server", Sub: slowlog.Rows(srv.slowlog)},
		describe.Row(func() *command.Table { return srv.commands }),
		{Name: "config", Arity: -2, Flags: command.Loading, Summary: "A container for server configuration commands.", Since: "2.0.0", Group: "server", Sub: config.Rows(srv.configCommands())},
	}
	return slices.Concat(decide.Rows(deciderOf), limit.Rows(limits), connection.Rows(own), users.Rows(accounts), others, keys.AllRows(of),
		admin.Rows(srv.admin), keys.Rows(of), scriptRows(), transactionRows())
}
