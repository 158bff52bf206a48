package resp

import (
	"slices"

	"celld/resp/command"
	"celld/resp/command/admin"
	"celld/resp/command/spec"
	"celld/resp/config"
	"celld/resp/session"
)

// Commands returns the rows of all commands by these settings, for those who print them.
func Commands(cfg *config.Config) []*command.Row { return tableOf(cfg).Rows }

// tableOf is a table of which only names and rights may be asked for.
func tableOf(cfg *config.Config) *command.Table {
	sessions := &session.Service{}
	sessions.Config = cfg
	return session.NewTable(sessions, rowsOfServer(nil))
}

// rowsOfServer returns the rows of the families that need the server. Without one, only their names and rights may be asked for.
func rowsOfServer(srv *Server) func(*session.Service) []*command.Row {
	if srv == nil {
		srv = &Server{}
	}
	return func(sessions *session.Service) []*command.Row {
		settings := &command.Row{Name: "config", Arity: -2, Flags: spec.Loading, Summary: "A container for server configuration commands.",
			Since: "2.0.0", Group: "server", Sub: config.Rows(srv.configCommands(sessions))}
		return slices.Concat([]*command.Row{settings}, admin.Rows(srv.admin))
	}
}
