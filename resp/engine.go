package resp

import (
	"celld/resp/command/keys"
	"celld/store"
)

// engine is a store whose keys are on Redis or Valkey. A remote.Port is one.
type engine interface {
	store.Store
	keys.Space
}

// useEngine makes an engine keep the keys. The server's table has the policies only, which are those of the engine's views, too.
func (srv *Server) useEngine(e engine) {
	srv.space, srv.port, srv.limiter, srv.answersLater = e, e, e, true
	srv.deciding = srv.decides()
}
