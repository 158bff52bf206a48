package resp

import (
	"celld/resp/command/keys"
	"celld/store"
)

// engine is a store whose keys are on Redis or Valkey. A remote.Store is one.
type engine interface {
	store.Store
	keys.Space
}

// useEngine makes an engine keep the keys. The server's table has the policies only, which are those of the engine's views, too.
func (srv *Server) useEngine(e engine) {
	srv.space, srv.port, srv.limiter = e, e, e
	srv.deciding = srv.decides()
}
