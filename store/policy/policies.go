package policy

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"celld/cell"
)

// Policy is 1 to MostLimits limits with a name. A call that names it takes from all of them, or from none. It does not change: setting
// other limits makes another Policy.
type Policy struct {
	Name   string
	Limits []*Limit // no two are alike: see cell.Shape.Alike
}

// Limit is one limit of a policy.
type Limit struct {
	Policy *Policy
	ID     uint32 // of the states under it. A policy whose limits change keeps the ID of one that stays alike, except by a reset
	Limit  cell.Limit
}

// New returns a policy that belongs to no Set yet.
func New(name string, limits ...cell.Limit) *Policy {
	p := &Policy{Name: name}
	for _, l := range limits {
		p.Limits = append(p.Limits, &Limit{Policy: p, Limit: l})
	}
	return p
}

// Plain is the limits without their IDs.
func (p *Policy) Plain() (limits []cell.Limit) {
	for _, l := range p.Limits {
		limits = append(limits, l.Limit)
	}
	return limits
}

// ParseLimits reads limits, as Policy.String writes them. The error is a *cell.LimitError.
func ParseLimits(text string) (limits []cell.Limit, err error) {
	for _, word := range strings.Fields(text) {
		l, err := cell.ParseLimit(word)
		if err != nil {
			return nil, err
		}
		limits = append(limits, l)
	}
	return limits, nil
}

// MostLimits is how many limits a policy may have.
const MostLimits = 16

// ErrLimitCount reports a policy without limits, or with more than MostLimits.
var ErrLimitCount = fmt.Errorf("a policy has 1 to %d limits", MostLimits)

// AlikeError reports two limits of a policy that are alike: they would share a state.
type AlikeError struct{ One, Other string }

func (e *AlikeError) Error() string {
	return "limits " + e.One + " and " + e.Other + " have the same algorithm and period: a policy has one of each"
}

// Check returns ErrLimitCount or an *AlikeError.
func (p *Policy) Check() error {
	if len(p.Limits) == 0 || len(p.Limits) > MostLimits {
		return ErrLimitCount
	}
	for i, l := range p.Limits {
		if other := p.alike(l.Limit.Shape); other != l {
			return &AlikeError{other.Limit.String(), p.Limits[i].Limit.String()}
		}
	}
	return nil
}

// alike is the first limit of a policy that is alike with this shape; nil: none is.
func (p *Policy) alike(s cell.Shape) *Limit {
	for _, l := range p.Limits {
		if l.Limit.Alike(s) {
			return l
		}
	}
	return nil
}

// String is the limits, as CL.POLICY SET takes them.
func (p *Policy) String() string {
	var b []byte
	for i, l := range p.Limits {
		if i > 0 {
			b = append(b, ' ')
		}
		b = l.Limit.AppendText(b)
	}
	return string(b)
}

// Same reports whether both have the same limits in the same order.
func (p *Policy) Same(as *Policy) bool {
	return slices.EqualFunc(p.Limits, as.Limits, func(a, b *Limit) bool { return a.Limit == b.Limit })
}

// AppendName appends the name that tools see of a state: @gold/gcra/1m.
func (l *Limit) AppendName(b []byte) []byte {
	b = append(append(append(b, '@'), l.Policy.Name...), '/')
	return l.Limit.Bare().AppendText(b)
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
	ids     map[uint32]*Limit
	lastID  uint32
}

// LimitOf returns the limit of an ID; nil if it is gone.
func (s *Set) LimitOf(id uint32) *Limit {
	s.policies.mu.RLock()
	defer s.policies.mu.RUnlock()
	return s.policies.ids[id]
}

// LimitsRemoved is how many IDs have ever gone, because their policies were deleted or reset, or lost these limits.
func (s *Set) LimitsRemoved() uint64 { return s.policies.removed.Load() }

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

// LimitNamed returns the limit whose state has a name, as AppendName writes it without the @, and a shape. Until policies had several
// limits, the name was that of the policy. It returns nil for a limit that is not there.
func (s *Set) LimitNamed(name string, shape cell.Shape) *Limit {
	p := s.PolicyNamed(name)
	if p == nil {
		policy, found := strings.CutSuffix(name, "/"+string(shape.Bare().AppendText(nil)))
		if p = s.PolicyNamed(policy); p == nil || !found {
			return nil
		}
	}
	return p.alike(shape)
}

// Options say when SetPolicy sets one, and what becomes of the states under it.
type Options struct {
	IfAbsent bool // NX
	IfThere  bool // XX
	Reset    bool // forget what was used; otherwise it is carried over to the limits that stay alike

	// Forget reports whether what was used of a limit that stays alike is forgotten all the same; nil: it is kept.
	Forget func(old, l *Limit) bool
}

// SetPolicy sets the limits of a name and reports whether it did. The errors are ErrTooMany and Policy.Check's.
func (s *Set) SetPolicy(name string, limits []cell.Limit, o Options) (bool, error) {
	policy := New(name, limits...)
	if err := policy.Check(); err != nil {
		return false, err
	}
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
	for _, l := range policy.Limits {
		if old != nil && !o.Reset {
			if was := old.alike(l.Limit.Shape); was != nil && (o.Forget == nil || !o.Forget(was, l)) {
				l.ID = was.ID
				continue
			}
		}
		p.lastID++
		l.ID = p.lastID
	}
	s.putPolicy(name, policy)
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
	s.putPolicy(name, nil)
	return true
}

// putPolicy makes a name stand for a policy, or for none.
func (s *Set) putPolicy(name string, policy *Policy) {
	p := &s.policies
	if p.byName == nil {
		p.byName, p.ids = make(map[string]*Policy), make(map[uint32]*Limit)
	}
	var ids []uint32 // of the limits before
	if old := p.byName[name]; old != nil {
		delete(p.byName, name)
		for _, l := range old.Limits {
			delete(p.ids, l.ID)
			ids = append(ids, l.ID)
		}
	}
	if policy != nil {
		p.byName[name] = policy
		for _, l := range policy.Limits {
			p.ids[l.ID] = l
		}
	}
	for _, id := range ids {
		if p.ids[id] == nil {
			p.removed.Add(1)
		}
	}
	p.version.Add(1)
	s.note(Setting{PolicySetting, name}, ids)
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
