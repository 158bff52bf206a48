package session

import (
	"slices"

	"celld/resp/command"
	"celld/resp/command/connection"
	"celld/resp/command/decide"
	"celld/resp/command/describe"
	"celld/resp/command/keys"
	"celld/resp/command/limit"
	"celld/resp/command/spec"
	"celld/resp/command/users"
	"celld/resp/stats"
)

// RedisVersion is the version of Redis whose replies celld gives. Clients that ask for a version get this one.
const RedisVersion = "7.2.4"

// NewTable returns the rows of all families, others' among them. A table of which only names and rights are asked needs only the
// Config of a service.
func NewTable(srv *Service, others func(*Service) []*command.Row) *command.Table {
	rows := ownRows(srv)
	if srv.Config.LuaTimeLimit != nil {
		rows = append(rows, scriptRows()...)
	}
	if others != nil {
		rows = append(rows, others(srv)...)
	}
	return command.NewTable(rows, func() any { return &stats.Command{} })
}

// ownRows are the rows of the families that need no more than sessions do.
func ownRows(srv *Service) []*command.Row {
	limits := func() limit.Server {
		return limit.Server{Store: srv.Port, File: srv.Config.PoliciesFile.Get(), InForce: srv.Store, LogMax: srv.Config.LogMax.Get(),
			Decisions: srv.Decisions, Top: srv.Top, Now: srv.Clock, Saved: func() { srv.Saved("policies") }}
	}
	of := keys.Options{
		Space: func() keys.Space { return srv.space },
	}
	own := func() connection.Server {
		return connection.Server{Users: srv.Users, Clients: &srv.Clients, Waits: srv.Port, Version: RedisVersion}
	}
	accounts := func() users.Server {
		return users.Server{Users: srv.Users, Denied: &srv.ACLLog, Clients: &srv.Clients, Commands: srv.Commands,
			File: srv.Config.ACLFile.Get(), Saved: func() { srv.Saved("aclfile") }, Log: srv.Log}
	}
	others := []*command.Row{
		{Name: "latency", Arity: -2, Summary: "A container for latency diagnostics commands.", Since: "2.8.13", Group: "server", Sub: srv.Latency.Rows(func() *command.Table { return srv.Commands })},
		{Name: "slowlog", Arity: -2, Flags: spec.Loading, Summary: "A container for slow log commands.", Since: "2.2.12", Group: "server", Sub: srv.slowlog.Rows()},
		describe.Row(func() *command.Table { return srv.Commands }),
	}
	return slices.Concat(decide.Rows(), limit.Rows(limits), connection.Rows(own), users.Rows(accounts), others, keys.AllRows(of),
		keys.Rows(of), transactionRows())
}
