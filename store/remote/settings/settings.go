package settings

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"celld/cell"
	"celld/store/policy"
	"celld/store/remote/link"
)

// Options say where settings are. All except Time must be set.
type Options struct {
	Link     *link.Link
	Prefix   string
	Timeout  time.Duration
	Policies *policy.Set     // of this process; those on the engine are copied into it
	Changed  func(here bool) // some have changed; here: by this process, so others must be told
	Poll     func()          // called before each poll
	Time     func() int64    // limit time in Unix ns, for tests; nil: the engine's
	Log      *slog.Logger
}

// Settings are the policies and rules of the engine.
type Settings struct {
	Options
	policies, rules hash

	mu     sync.RWMutex
	epochs map[uint32]uint64 // by policy.Limit.ID
	closed chan struct{}
	once   sync.Once
}

// Own reports whether a key, without the prefix, is one of the hashes.
func Own(key string) bool { return key == policiesKey || key == rulesKey }

const policiesKey, rulesKey = "celld:policies", "celld:rules"

// New returns Settings that have not been read.
func New(o Options) *Settings {
	t := &Settings{Options: o, epochs: make(map[uint32]uint64), closed: make(chan struct{})}
	t.policies = hash{settings: t, key: o.Prefix + policiesKey, kind: policy.PolicySetting}
	t.rules = hash{settings: t, key: o.Prefix + rulesKey, kind: policy.RuleSetting}
	return t
}

// pollEvery is how often the version is read. That costs the engine some 2 µs.
const pollEvery = 500 * time.Millisecond

// firstPoll is how often before the first answer: until then the engine's policies are unknown.
const firstPoll = 20 * time.Millisecond

// Start reads the settings again and again until Close. It waits for the first reading, so that the first call finds its policy.
func (t *Settings) Start() {
	first := make(chan struct{})
	go t.poll(sync.OnceFunc(func() { close(first) }))
	t.await(first)
}

func (t *Settings) poll(done func()) {
	for {
		t.Poll()
		<-t.policies.read()
		<-t.rules.read()
		t.policies.setUnset()
		t.rules.setUnset()
		done()
		every := pollEvery
		if !t.policies.loaded() || !t.rules.loaded() {
			every = firstPoll
		}
		select {
		case <-time.After(every):
		case <-t.closed:
			return
		}
	}
}

// await waits for one timeout at most.
func (t *Settings) await(ended <-chan struct{}) {
	select {
	case <-ended:
	case <-time.After(t.Timeout):
	}
}

// Close ends the polls.
func (t *Settings) Close() { t.once.Do(func() { close(t.closed) }) }

// Read reads the settings if they have changed. It does not wait for that.
func (t *Settings) Read() {
	t.policies.read()
	t.rules.read()
}

// AwaitPolicies waits until the engine has those of KeepPolicies, or has refused them, for one timeout at most. What is taken under a
// policy before that is void: the policy has no epoch yet.
func (t *Settings) AwaitPolicies() { t.await(t.policies.read()) } // the reading comes after those changes

// EpochOf is the epoch of a policy's limit of the process's Set: states of the engine under another are void. 0: it is not on the engine.
func (t *Settings) EpochOf(l *policy.Limit) uint64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.epochs[l.ID]
}

// PoliciesUnknown says why the engine may hold policies that this process does not know: it is away, or has not been read yet. nil: it was
// read a moment ago.
func (t *Settings) PoliciesUnknown() error {
	if err := t.Link.Away(); err != nil {
		return err
	}
	if !t.policies.loaded() {
		return errors.New("its policies have not been read yet")
	}
	return nil
}

// SetPolicy sets a policy on the engine, and then in this process. done is called once, from any goroutine, and must not block. The
// error is policy.ErrTooMany, one of policy.Policy.Check, a *DownError or one of the engine's.
func (t *Settings) SetPolicy(name string, limits []cell.Limit, o policy.Options, done func(set bool, err error)) {
	p := policy.New(name, limits...)
	if err := p.Check(); err != nil {
		done(false, err)
		return
	}
	condition, reset := "", "0"
	switch {
	case o.IfAbsent:
		condition = "NX"
	case o.IfThere:
		condition = "XX"
	}
	if o.Reset {
		reset = "1"
	}
	args := []string{name, condition, reset, strconv.Itoa(policy.MaxPolicies)}
	for _, l := range p.Limits {
		args = append(args, l.Limit.String(), string(l.AppendName(nil)))
	}
	t.policies.change(setPolicy, args, done)
}

// DeletePolicy removes a policy, as SetPolicy sets one.
func (t *Settings) DeletePolicy(name string, done func(was bool, err error)) {
	t.policies.change(deleteSetting, []string{name}, done)
}

// PutRule adds a rule, as SetPolicy sets a policy. The rule's UntilNS is by the clock of nowNS; the engine applies its own.
func (t *Settings) PutRule(r policy.Rule, nowNS int64, done func(added bool, err error)) {
	ms := int64(0) // for ever
	if r.UntilNS != 0 {
		ms = max((r.UntilNS-nowNS-1)/1e6+1, 1)
	}
	t.rules.change(putRule, []string{r.Name(), strconv.FormatInt(ms, 10), strconv.Itoa(policy.MaxRules)}, done)
}

// DeleteRule removes a rule, as SetPolicy sets a policy.
func (t *Settings) DeleteRule(r policy.Rule, _ int64, done func(held bool, err error)) {
	t.rules.change(deleteSetting, []string{r.Name()}, done)
}

// KeepPolicies gives the engine the policies of a file. It sets those that differ as soon as the engine answers, and again if the engine
// has lost all. This process has them at once. The error is policy.ErrTooMany, for the policy whose place in the list is returned.
func (t *Settings) KeepPolicies(list []*policy.Policy) (refused int, err error) {
	var file []ofFile
	for i, p := range list {
		if t.Policies.PolicyNamed(p.Name) == nil {
			if _, err := t.Policies.SetPolicy(p.Name, p.Plain(), policy.Options{}); err != nil {
				return i, err
			}
		}
		file = append(file, ofFile{p.Name, func(done func(bool, error)) { t.SetPolicy(p.Name, p.Plain(), policy.Options{}, done) }})
	}
	t.policies.keep(file)
	return 0, nil
}

// KeepRules gives the engine the rules of a file, as KeepPolicies gives it policies.
func (t *Settings) KeepRules(list []policy.Rule) (refused int, err error) {
	var file []ofFile
	for i, r := range list {
		if _, there := t.Policies.SettingText(policy.Setting{Kind: policy.RuleSetting, Name: r.Name()}, 0); !there {
			if _, err := t.Policies.PutRule(r, 0); err != nil {
				return i, err
			}
		}
		file = append(file, ofFile{r.Name(), func(done func(bool, error)) { t.PutRule(r, 0, done) }})
	}
	t.rules.keep(file)
	return 0, nil
}

// put sets what a field says in this process.
func (t *Settings) put(kind policy.Kind, name, value string) error {
	set := t.Policies
	if kind == policy.RuleSetting { // each call checks whether it is over
		setting := policy.Setting{Kind: kind, Name: name}
		if text, there := set.SettingText(setting, 0); there && text == value {
			return nil
		}
		return set.PutSetting(setting, value, 0, 0)
	}
	limits, epochs, err := parsePolicy(value)
	if err != nil {
		return err
	}
	t.mu.Lock() // a call that finds the policy waits here for its epochs
	defer t.mu.Unlock()
	old := set.PolicyNamed(name)
	if old != nil && old.Same(policy.New(name, limits...)) && slices.Equal(t.epochsOf(old), epochs) {
		return nil
	}
	forget := func(was, l *policy.Limit) bool { return t.epochs[was.ID] != epochs[slices.Index(l.Policy.Limits, l)] }
	if _, err = set.SetPolicy(name, limits, policy.Options{Forget: forget}); err != nil {
		return err
	}
	t.forget(old)
	for i, l := range set.PolicyNamed(name).Limits {
		t.epochs[l.ID] = epochs[i]
	}
	return nil
}

// parsePolicy reads the value of a policy's field: each limit is followed by its epoch and its name.
func parsePolicy(value string) (limits []cell.Limit, epochs []uint64, err error) {
	words := strings.Fields(value)
	for ; len(words) >= 3; words = words[3:] {
		epoch, err := strconv.ParseUint(words[1], 10, 64)
		if err != nil {
			return nil, nil, fmt.Errorf("read its epoch: %w", err)
		}
		l, err := cell.ParseLimit(words[0])
		if err != nil {
			return nil, nil, err
		}
		limits, epochs = append(limits, l), append(epochs, epoch)
	}
	if len(words) > 0 || len(limits) == 0 {
		return nil, nil, errors.New("it is cut off")
	}
	return limits, epochs, nil
}

// epochsOf are the epochs of a policy's limits. The lock is held.
func (t *Settings) epochsOf(p *policy.Policy) (epochs []uint64) {
	for _, l := range p.Limits {
		epochs = append(epochs, t.epochs[l.ID])
	}
	return epochs
}

// forget removes the epochs of a policy's limits; nil: there is none. The lock is held.
func (t *Settings) forget(p *policy.Policy) {
	if p == nil {
		return
	}
	for _, l := range p.Limits {
		delete(t.epochs, l.ID)
	}
}

// remove removes from this process what the engine does not hold any more.
func (t *Settings) remove(kind policy.Kind, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if kind == policy.PolicySetting {
		t.forget(t.Policies.PolicyNamed(name))
	}
	t.Policies.DeleteSetting(policy.Setting{Kind: kind, Name: name}, 0)
}
