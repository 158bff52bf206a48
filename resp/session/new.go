package session

import (
	"celld/resp/acl"
	"celld/resp/command"
	"celld/resp/command/keys"
	"celld/resp/door"
	"celld/resp/gate"
	"celld/resp/scripts"
	"celld/resp/stats"
	"celld/store"
	"celld/store/memory"
)

// Parts are what a service is made of.
type Parts struct {
	door.Parts
	Users   *acl.File                     // nil: the user default alone
	Scripts func() scripts.Engine         // makes what runs scripts; nil: nothing does, and Config has no lua-time-limit
	Rows    func(*Service) []*command.Row // of the families that sessions do not have; nil: none
}

// Engine is a store whose keys are elsewhere.
type Engine interface {
	store.Store
	keys.Space
	ChangeAlone(begin func() (end func())) // policies and rules that others have set change between begin and end
}

// New returns what sessions share.
func New(p Parts) *Service {
	srv := &Service{newScripts: p.Scripts, slowlog: stats.NewSlowlog(func() int64 { return p.Config.SlowlogMaxLen.Get() }),
		Saved: func(string) {}}
	srv.Init(p.Parts)
	srv.Commands = NewTable(srv, p.Rows)
	srv.useUsers(p.Users)
	srv.Use(memory.Port{Store: p.Store}, p.Store)
	srv.Config.SlowlogSlowerThan.Follow(func(us int64) { srv.Gate.Set(gate.Timed, us >= 0 && us < 1000) })
	srv.Config.MaxWaiters.Follow(func(n int64) { srv.Port.SetMaxWaiters(n) })
	return srv
}

// UseEngine makes an engine keep the keys, and decide. The store has the policies only from then on, which are those of the engine's views,
// too. Nobody may be served yet.
func (srv *Service) UseEngine(e Engine) {
	srv.space, srv.Held.Most = e, e.Facts().MaxWaiting
	srv.Use(e, e)
	e.SetMaxWaiters(srv.Config.MaxWaiters.Get())
	e.ChangeAlone(srv.BetweenScripts)
}
