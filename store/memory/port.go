package memory

import (
	"context"

	"celld/cell"
	"celld/store"
	"celld/store/memory/shard"
	"celld/store/policy"
)

// Port is a Store as a server asks it: see store.Store. All its answers are there at once.
type Port struct{ *Store }

func (p Port) InProcess() bool { return true }

// Open returns a transaction on the store itself: what it changes is stored at once.
func (p Port) Open(_ [][]byte, o store.OpenOptions, w store.Waker) store.Tx {
	w.Wake()
	return tx{p.Store, o.NowNS}
}

func (p Port) SetPolicy(name string, limits []cell.Limit, o policy.Options, done func(bool, error)) {
	done(p.Set.SetPolicy(name, limits, o))
}

func (p Port) DeletePolicy(name string, done func(bool, error)) {
	done(p.Set.DeletePolicy(name), nil)
}

func (p Port) PutRule(r policy.Rule, nowNS int64, done func(bool, error)) {
	done(p.Set.PutRule(r, nowNS))
}

func (p Port) DeleteRule(r policy.Rule, nowNS int64, done func(bool, error)) {
	done(p.Set.DeleteRule(r, nowNS), nil)
}

// KeepPolicies sets those that differ. What was used of the others is kept.
func (p Port) KeepPolicies(list []*policy.Policy, only func(name string) bool) (refused int, err error) {
	for i, one := range list {
		if only != nil && !only(one.Name) || p.PolicyNamed(one.Name).Lasting().Same(one) {
			continue
		}
		if _, err := p.Set.SetPolicy(one.Name, one.Plain(), policy.Options{Lasting: true}); err != nil {
			return i, err
		}
	}
	return 0, nil
}

// KeepRules sets those that differ. Rules that are over make no room: they are swept soon.
func (p Port) KeepRules(list []policy.Rule, only func(name string) bool) (refused int, err error) {
	for i, r := range list {
		text, _ := p.Set.SettingText(policy.Setting{Kind: policy.RuleSetting, Name: r.Name()}, 0)
		if only != nil && !only(r.Name()) || text == "0" {
			continue
		}
		if _, err := p.Set.PutRule(r, 0); err != nil {
			return i, err
		}
	}
	return 0, nil
}

func (p Port) Facts() store.Facts     { return store.Facts{} }
func (p Port) AwaitPolicies()         {}
func (p Port) PoliciesUnknown() error { return nil }
func (p Port) Away() error            { return nil }

func (p Port) Drain(context.Context) (drained func() bool) { return func() bool { return true } }

// tx is a transaction on a store in the process.
type tx struct {
	*Store
	nowNS int64
}

func (t tx) Keys() store.Keys                      { return t.Store }
func (t tx) TimeNS() int64                         { return t.nowNS }
func (t tx) Err() error                            { return nil }
func (t tx) Commit(store.Waker) bool               { return true }
func (t tx) Conflict() bool                        { return false }
func (t tx) Foreign([]byte) (kind string, is bool) { return "", false }
func (t tx) Close()                                {}

var _ store.Store = Port{}

// What a store tells of its keys.
type (
	Change   = shard.Change
	Position = shard.Position
	Stats    = shard.Stats
	Watch    = shard.Watch
)
