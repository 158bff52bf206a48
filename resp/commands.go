package resp

import (
	"slices"

	"celld/resp/command"
	"celld/resp/command/admin"
	"celld/resp/command/spec"
	"celld/resp/config"
	"celld/resp/session"
)

// Commands returns the rows of all commands, for those who print them.
func Commands() []*command.Row { return session.NewTable(nil, rowsOfServer(nil)).Rows }

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
