package policy

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"celld/cell"
)

// Policy is a limit with a name. It does not change: setting another limit makes another Policy.
type Policy struct {
	ID    uint32 // of the states under it: kept when the limit changes, except by a reset
	Name  string
	Limit cell.Limit
}

// MaxPolicies is how many there may be; more are refused.
const MaxPolicies = 1 << 16

// ErrTooMany reports that there are MaxPolicies, or MaxRules.
var ErrTooMany = errors.New("too many")

// ErrNoPolicy reports a state of a policy that is not there, or a call whose policy has gone while it waited.
var ErrNoPolicy = errors.New("no such policy")

// policies are those of a Set.
type policies struct {
	version atomic.Uint64 // changes with every change
	removed atomic.Uint64
	mu      sync.RWMutex
	byName  map[string]*Policy
	ids     map[uint32]*Policy
	lastID  uint32
}

// PolicyOf returns the policy of an ID; nil if it is gone.
func (s *Set) PolicyOf(id uint32) *Policy {
	s.policies.mu.RLock()
	defer s.policies.mu.RUnlock()
	return s.policies.ids[id]
}

// PoliciesRemoved is how many IDs have ever gone, because their policies were deleted or reset.
func (s *Set) PoliciesRemoved() uint64 { return s.policies.removed.Load() }

// PoliciesVersion changes whenever a policy does. What Policy has returned is right as long as it stays.
func (s *Set) PoliciesVersion() uint64 { return s.policies.version.Load() }

// Policy returns the policy of a name or, where there is none, that of the name cut off at its last colon, and so on:
// api:cust42 falls back to api. It returns nil where there is none either.
func (s *Set) Policy(name []byte) *Policy {
	p := &s.policies
	p.mu.RLock()
	defer p.mu.RUnlock()
	for {
		if policy := p.byName[string(name)]; policy != nil {
			return policy
		}
		colon := bytes.LastIndexByte(name, ':')
		if colon < 0 {
			return nil
		}
		name = name[:colon]
	}
}

// PolicyNamed returns the policy of just that name, or nil.
func (s *Set) PolicyNamed(name string) *Policy {
	s.policies.mu.RLock()
	defer s.policies.mu.RUnlock()
	return s.policies.byName[name]
}

// Options say when SetPolicy sets one, and what becomes of the states under it.
type Options struct {
	IfAbsent bool // NX
	IfThere  bool // XX
	Reset    bool // forget what was used; otherwise it is carried over to the new limit
}

// SetPolicy sets the limit of a name and reports whether it did. The error is ErrTooMany.
func (s *Set) SetPolicy(name string, l cell.Limit, o Options) (bool, error) {
	p := &s.policies
	defer s.notify()
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.byName[name]
	if o.IfAbsent && old != nil || o.IfThere && old == nil {
		return false, nil
	}
	if old == nil && len(p.byName) >= MaxPolicies {
		return false, ErrTooMany
	}
	policy := &Policy{Name: name, Limit: l}
	if old != nil && !o.Reset {
		policy.ID = old.ID
	} else {
		p.lastID++
		policy.ID = p.lastID
	}
	s.putPolicy(name, policy, o.Reset)
	return true, nil
}

// DeletePolicy removes the policy of a name, with what was used of it, and reports whether there was one.
func (s *Set) DeletePolicy(name string) bool {
	p := &s.policies
	defer s.notify()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byName[name] == nil {
		return false
	}
	s.putPolicy(name, nil, true)
	return true
}

// putPolicy makes a name stand for a policy, or for none.
func (s *Set) putPolicy(name string, policy *Policy, renewed bool) {
	p := &s.policies
	if p.byName == nil {
		p.byName, p.ids = make(map[string]*Policy), make(map[uint32]*Policy)
	}
	old := p.byName[name]
	if old != nil {
		delete(p.byName, name)
		delete(p.ids, old.ID)
		if policy == nil || policy.ID != old.ID {
			p.removed.Add(1)
		}
	}
	if policy != nil {
		p.byName[name], p.ids[policy.ID] = policy, policy
	}
	p.version.Add(1)
	s.note(Setting{PolicySetting, name}, renewed)
}

// Policies returns all, sorted by name.
func (s *Set) Policies() []*Policy {
	p := &s.policies
	p.mu.RLock()
	list := make([]*Policy, 0, len(p.byName))
	for _, policy := range p.byName {
		list = append(list, policy)
	}
	p.mu.RUnlock()
	slices.SortFunc(list, func(a, b *Policy) int { return strings.Compare(a.Name, b.Name) })
	return list
}
