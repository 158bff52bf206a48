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
//
// A temporary policy ends by itself, and the lasting one is in force again. States under the limits of both are kept meanwhile. Limits of
// both that are alike have one ID, so what is used under one counts under the other.
type Policy struct {
	Name    string
	Limits  []*Limit // no two are alike: see cell.Shape.Alike
	UntilNS int64    // of a temporary one: limit time, Unix ns; 0: it lasts
	Then    *Policy  // of a temporary one: what is in force after it; nil: nothing
}

// Lasting is the policy itself, or what is in force when it ends; nil: nothing is, or p is nil.
func (p *Policy) Lasting() *Policy {
	if p == nil || p.UntilNS == 0 {
		return p
	}
	return p.Then
}

// Until returns a copy that ends then, with what is in force after it. Neither belongs to a Set yet.
func (p *Policy) Until(untilNS int64, then *Policy) *Policy {
	temporary := New(p.Name, p.Plain()...)
	if temporary.UntilNS = untilNS; then != nil {
		temporary.Then = New(p.Name, then.Plain()...)
	}
	return temporary
}

// All are the limits, and then those of Then; none where p is nil.
func (p *Policy) All() (limits []*Limit) {
	for ; p != nil; p = p.Then {
		limits = append(limits, p.Limits...)
	}
	return limits
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
	return "limits " + e.One + " and " + e.Other + " have the same algorithm and period: one needs a name, such as 100/1m,name=tokens"
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

// alike is the first of All that is alike with this shape; nil: none is.
func (p *Policy) alike(s cell.Shape) *Limit {
	for ; p != nil; p = p.Then {
		for _, l := range p.Limits {
			if l.Limit.Alike(s) {
				return l
			}
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

// Same reports whether both have the same limits in the same order, and the same end. nil is the same as nil.
func (p *Policy) Same(as *Policy) bool {
	if p == nil || as == nil {
		return p == as
	}
	return p.UntilNS == as.UntilNS && p.Then.Same(as.Then) &&
		slices.EqualFunc(p.Limits, as.Limits, func(a, b *Limit) bool { return a.Limit == b.Limit })
}

// AppendName appends the name that tools see of a state: @gold/gcra/1m.
func (l *Limit) AppendName(b []byte) []byte {
	b = append(append(append(b, '@'), l.Policy.Name...), '/')
	return l.Limit.Bare().AppendText(b)
}

// MaxPolicies is how many there may be, with those that would be in force after temporary ones; more are refused.
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
	ends    ends
	byName  map[string]*Policy // in force
	count   int                // of those, and of those that would be in force after them
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

// PolicyNamed returns the policy in force of just that name, or nil.
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
	IfAbsent bool  // NX
	IfThere  bool  // XX
	Reset    bool  // forget what was used; otherwise it is carried over to the limits that stay alike
	UntilNS  int64 // EX: set a temporary one, and keep the lasting one; by the clock of NowNS
	NowNS    int64
	Lasting  bool // keep a temporary one, and what was used; without it, and without UntilNS, that is replaced too
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
	switch {
	case o.IfAbsent && old != nil || o.IfThere && old == nil:
		return false, nil
	case o.UntilNS != 0:
		policy = policy.Until(o.UntilNS, old.Lasting())
	case o.Lasting && old != nil && old.UntilNS != 0:
		policy = old.Until(old.UntilNS, policy)
	}
	if err := s.replacePolicy(policy, func(*Limit, *Limit) bool { return o.Reset }); err != nil {
		return false, err
	}
	return true, nil
}

// PutPolicy makes its name stand for a policy that belongs to no Set yet, whatever it stood for. forget says whether what was used of a
// limit that stays alike is forgotten; nil: it is kept. The errors are ErrTooMany and Policy.Check's.
func (s *Set) PutPolicy(policy *Policy, forget func(old, l *Limit) bool) error {
	for one := policy; one != nil; one = one.Then {
		if err := New(one.Name, one.Plain()...).Check(); err != nil {
			return err
		}
	}
	defer s.notify()
	s.policies.mu.Lock()
	defer s.policies.mu.Unlock()
	return s.replacePolicy(policy, forget)
}

// replacePolicy is PutPolicy, when that has checked it and has the lock.
func (s *Set) replacePolicy(policy *Policy, forget func(old, l *Limit) bool) error {
	p := &s.policies
	old := p.byName[policy.Name]
	if more := policy.count() - old.count(); more > 0 && p.count+more > MaxPolicies {
		return ErrTooMany
	}
	for _, l := range policy.All() {
		if twin := policy.alike(l.Limit.Shape); twin != l { // of a temporary one
			l.ID = twin.ID
			continue
		}
		if was := old.alike(l.Limit.Shape); was != nil && (forget == nil || !forget(was, l)) {
			l.ID = was.ID
			continue
		}
		p.lastID++
		l.ID = p.lastID
	}
	s.putPolicy(policy.Name, policy)
	return nil
}

// DeletePolicy removes the policy of a name, also one that would be in force after it, with what was used of it, and reports whether there
// was one.
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

// EndPolicies ends temporary policies that are over. The caller sees to it that this is in the middle of no transaction. Without a call
// they stay in force.
func (s *Set) EndPolicies(nowNS int64) {
	p := &s.policies
	if !p.ends.due(nowNS) {
		return
	}
	defer s.notify()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ends.forget()
	for name, policy := range p.byName {
		if policy.UntilNS != 0 && policy.UntilNS <= nowNS {
			s.putPolicy(name, policy.Then)
		} else {
			p.ends.add(policy.UntilNS)
		}
	}
}

// PoliciesDue says, without any lock, whether EndPolicies has something to do.
func (s *Set) PoliciesDue(nowNS int64) bool { return s.policies.ends.due(nowNS) }

// putPolicy makes a name stand for a policy, or for none.
func (s *Set) putPolicy(name string, policy *Policy) {
	p := &s.policies
	if p.byName == nil {
		p.byName, p.ids = make(map[string]*Policy), make(map[uint32]*Limit)
	}
	old := p.byName[name]
	p.count += policy.count() - old.count()
	ids := old.ids()
	delete(p.byName, name)
	for _, id := range ids {
		delete(p.ids, id)
	}
	if policy != nil {
		p.byName[name] = policy
		p.ends.add(policy.UntilNS)
		for _, l := range slices.Backward(policy.All()) { // those in force last
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

// count is 1, or 2 for a temporary one that has another after it; 0 for nil.
func (p *Policy) count() (n int) {
	for ; p != nil; p = p.Then {
		n++
	}
	return n
}

// ids are those of All, each once.
func (p *Policy) ids() (ids []uint32) {
	for _, l := range p.All() {
		if !slices.Contains(ids, l.ID) {
			ids = append(ids, l.ID)
		}
	}
	return ids
}

// PolicyCount is how many there are, as MaxPolicies counts them.
func (s *Set) PolicyCount() int {
	s.policies.mu.RLock()
	defer s.policies.mu.RUnlock()
	return s.policies.count
}

// Policies returns all that are in force, sorted by name.
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
