package resp

import (
	"context"
	"errors"
	"strings"
	"time"

	"celld/cell"
	"celld/resp/command"
	"celld/store"
	"celld/store/memory"
	"celld/store/policy"
	"celld/store/remote"
)

// engine keeps the keys in place of the server's table, and answers later. A remote.Store is one.
type engine interface {
	store.Limiter
	Facts() remote.Facts
	Drain(ctx context.Context) (drained func() bool)

	// Open reads keys into a view, and then wakes w.
	Open(keys [][]byte, w store.Waker) view

	// These are for all keys. done is called once, from any goroutine, before they return or later.
	Scan(ctx context.Context, o remote.ScanOptions, done func(next uint64, keys []string, err error))
	Keys(ctx context.Context, pattern string, mostBytes int, done func(keys []string, err error))
	Size(ctx context.Context, done func(n int64, err error))
	RandomKey(ctx context.Context, done func(key string, found bool, err error))
	Flush(done func(err error))

	// Policies and rules are the engine's, too, and each change reaches the server's own when it is done.
	PoliciesUnknown() error
	SetPolicy(name string, l cell.Limit, o policy.Options, done func(set bool, err error))
	DeletePolicy(name string, done func(was bool, err error))
	PutRule(r policy.Rule, lasts time.Duration, done func(added bool, err error))
	DeleteRule(r policy.Rule, done func(held bool, err error))
	KeepPolicies(list []policy.Policy) error
	AwaitPolicies()
}

// view is some keys of an engine in a table of their own: see remote.View, whose fields are methods here.
type view interface {
	leaser
	Foreign(key []byte) (kind string, foreign bool)
	Table() *memory.Store
	TimeNS() int64
	Failure() error
	Commit(w store.Waker) (done bool)
	Conflict() bool
	Close()
}

type remoteEngine struct{ *remote.Store }

func (e remoteEngine) Open(keys [][]byte, w store.Waker) view {
	return remoteView{e.Store.Open(keys, w)}
}

type remoteView struct{ *remote.View }

func (v remoteView) TimeNS() int64  { return v.NowNS }
func (v remoteView) Failure() error { return v.Err }

// useEngine has an engine keep the keys. The server's table has the policies only, which are those of the engine's views, too.
func (srv *Server) useEngine(e engine) {
	srv.engine, srv.limiter, srv.answersLater = e, e, true
	of := any(e)
	if r, ok := e.(remoteEngine); ok {
		of = r.Store
	}
	if l, ok := of.(leaser); ok {
		srv.leases = l
	}
	for _, name := range []string{"save", "bgsave", "bgrewriteaof", "lastsave"} {
		srv.commands.Find([]byte(name)).Run = func(c *command.Call) { c.Error(errEngineKeeps, strings.ToUpper(name)) }
	}
	srv.cfg.save.check = func(points string) error { return noFilesIf(points != "") }
	srv.cfg.appendOnly.check = noFilesIf
}

// noFilesIf is the error of a setting that asks for files.
func noFilesIf(asked bool) error {
	if asked {
		return errors.New("with --store there is nothing to save: the engine keeps the keys")
	}
	return nil
}

// noPolicy is the error of a name that no policy has: NOPOLICY, or STOREDOWN where the engine may have one. No --store-failure can decide on such a
// call, as its limit is not known.
func (srv *Server) noPolicy(name []byte) string {
	if srv.engine != nil {
		if err := srv.engine.PoliciesUnknown(); err != nil {
			return formatError(errStoreDown, err)
		}
	}
	return formatError(errNoPolicy, shortText(name))
}

// store has the keys of the command that runs.
func (s *Session) store() *memory.Store {
	if v := s.scratch.visit; v != nil {
		return v.view.Table()
	}
	return s.srv.store
}

// leases has the leases of the keys of the command that runs.
func (s *Session) leases() leaser {
	if v := s.scratch.visit; v != nil {
		return v.view
	}
	return s.srv.leases
}
