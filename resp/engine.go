package resp

import (
	"context"

	"celld/store"
	"celld/store/remote"
)

// engine is a store whose keys are on Redis or Valkey. A remote.Port is one.
type engine interface {
	store.Store
	Facts() remote.Facts

	// These are for all keys. done is called once, from any goroutine, before they return or later.
	Scan(ctx context.Context, o remote.ScanOptions, done func(next uint64, keys []string, err error))
	Keys(ctx context.Context, pattern string, mostBytes int, done func(keys []string, err error))
	Size(ctx context.Context, done func(n int64, err error))
	RandomKey(ctx context.Context, done func(key string, found bool, err error))
	Flush(done func(err error))
}

// useEngine has an engine keep the keys. The server's table has the policies only, which are those of the engine's views, too.
func (srv *Server) useEngine(e engine) {
	srv.engine, srv.port, srv.limiter, srv.answersLater = e, e, e, true
}

// store has the keys of the command that runs.
func (s *Session) store() store.Keys {
	if v := s.scratch.visit; v != nil {
		return v.tx.Keys()
	}
	return s.srv.keys
}
