package resp

import (
	"slices"

	"celld/resp/command"
	"celld/resp/command/admin"
	"celld/resp/config"
)

// serverRows returns the rows of the families that need the server. Without one, only their names and rights may be asked for.
func serverRows(srv *Server) func(*service) []*command.Row {
	if srv == nil {
		srv = &Server{}
	}
	return func(s *service) []*command.Row {
		srv.service = s
		settings := &command.Row{Name: "config", Arity: -2, Flags: command.Loading, Summary: "A container for server configuration commands.", Since: "2.0.0", Group: "server", Sub: config.Rows(srv.configCommands())}
		return slices.Concat([]*command.Row{settings}, admin.Rows(srv.admin))
	}
}
