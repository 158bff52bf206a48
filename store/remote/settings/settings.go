package settings

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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

	mu      sync.RWMutex
	epochs  map[uint32]uint64 // by policy.Limit.ID
	endedNS int64             // temporary policies until then have ended in this process, though the engine's clock may be behind
	closed  chan struct{}
	once    sync.Once
	alone   atomic.Pointer[func() (end func())]
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

// nowMs is Options.Time in ms, as scripts take it.
func (t *Settings) nowMs() string {
	if t.Time == nil {
		return ""
	}
	return strconv.FormatInt(t.Time()/1e6, 10)
}

// await waits for one timeout at most.
func (t *Settings) await(ended <-chan struct{}) {
	select {
	case <-ended:
	case <-time.After(t.Timeout):
	}
}

// ChangeAlone sets begin, which is called before settings change here, and may wait. What it returns is called when they have changed. So a
// server keeps changes out of the middle of a script.
func (t *Settings) ChangeAlone(begin func() (end func())) { t.alone.Store(&begin) }

// begin begins to change settings.
func (t *Settings) begin() (end func()) {
	if begin := t.alone.Load(); begin != nil {
		return (*begin)()
	}
	return func() {}
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

// PoliciesUnknown says why the engine may hold policies or rules that this process does not know: it is away, or has not been read yet.
// nil: it was read a moment ago.
func (t *Settings) PoliciesUnknown() error {
	if err := t.Link.Away(); err != nil {
		return err
	}
	if !t.policies.loaded() || !t.rules.loaded() {
		return errors.New("its policies and rules have not been read yet")
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
	condition, reset, lasts := "", "0", ""
	switch {
	case o.IfAbsent:
		condition = "NX"
	case o.IfThere:
		condition = "XX"
	}
	if o.Reset {
		reset = "1"
	}
	switch {
	case o.UntilNS != 0:
		lasts = lastsMs(o.UntilNS, o.NowNS)
	case o.Lasting:
		lasts = "0"
	}
	args := []string{name, condition, reset, strconv.Itoa(policy.MaxPolicies), lasts}
	for _, l := range p.Limits {
		args = append(args, l.Limit.String(), string(l.AppendName(nil)))
	}
	t.policies.change(setPolicy, args, done)
}

// DeletePolicy removes a policy, as SetPolicy sets one.
func (t *Settings) DeletePolicy(name string, done func(was bool, err error)) {
	t.policies.change(deleteSetting, []string{name}, done)
}

// EndPolicies ends temporary policies of this process that are over. The engine's next change of the hash has them no more.
func (t *Settings) EndPolicies(nowNS int64) {
	if !t.Policies.PoliciesDue(nowNS) {
		return
	}
	t.mu.Lock()
	t.endedNS = nowNS
	t.Policies.EndPolicies(nowNS)
	for id := range t.epochs {
		if t.Policies.LimitOf(id) == nil {
			delete(t.epochs, id)
		}
	}
	t.mu.Unlock()
	t.Changed(false)
}

// PutRule adds a rule, as SetPolicy sets a policy. The rule's UntilNS is by the clock of nowNS; the engine applies its own.
func (t *Settings) PutRule(r policy.Rule, nowNS int64, done func(added bool, err error)) {
	lasts := "0" // for ever
	if r.UntilNS != 0 {
		lasts = lastsMs(r.UntilNS, nowNS)
	}
	t.rules.change(putRule, []string{r.Name(), lasts, strconv.Itoa(policy.MaxRules)}, done)
}

// lastsMs is how many ms are left until then, rounded up.
func lastsMs(untilNS, nowNS int64) string {
	return strconv.FormatInt(max((untilNS-nowNS-1)/1e6+1, 1), 10)
}

// DeleteRule removes a rule, as SetPolicy sets a policy.
func (t *Settings) DeleteRule(r policy.Rule, _ int64, done func(held bool, err error)) {
	t.rules.change(deleteSetting, []string{r.Name()}, done)
}

// KeepPolicies gives the engine the policies of a file. It sets those that differ as soon as the engine answers, and again if the engine
// has lost all. This process has them at once. The error is policy.ErrTooMany, for the policy whose place in the list is returned.
func (t *Settings) KeepPolicies(list []*policy.Policy, only func(name string) bool) (refused int, err error) {
	var file []ofFile
	for i, p := range list {
		if t.Policies.PolicyNamed(p.Name) == nil {
			if _, err := t.Policies.SetPolicy(p.Name, p.Plain(), policy.Options{}); err != nil {
				return i, err
			}
		}
		file = append(file, ofFile{p.Name, func(done func(bool, error)) {
			t.SetPolicy(p.Name, p.Plain(), policy.Options{Lasting: true}, done)
		}})
	}
	t.policies.keep(file, only)
	return 0, nil
}

// KeepRules gives the engine the rules of a file, as KeepPolicies gives it policies.
func (t *Settings) KeepRules(list []policy.Rule, only func(name string) bool) (refused int, err error) {
	var file []ofFile
	for i, r := range list {
		if _, there := t.Policies.SettingText(policy.Setting{Kind: policy.RuleSetting, Name: r.Name()}, 0); !there {
			if _, err := t.Policies.PutRule(r, 0); err != nil {
				return i, err
			}
		}
		file = append(file, ofFile{r.Name(), func(done func(bool, error)) { t.PutRule(r, 0, done) }})
	}
	t.rules.keep(file, only)
	return 0, nil
}

// put sets in this process what a field says and, of a policy, the field of its temporary one; "" for one that is not there.
func (t *Settings) put(kind policy.Kind, name, value, temporary string) error {
	set := t.Policies
	if kind == policy.RuleSetting { // each call checks whether it is over
		setting := policy.Setting{Kind: kind, Name: name}
		if text, there := set.SettingText(setting, 0); there && text == value {
			return nil
		}
		return set.PutSetting(setting, value, 0, 0)
	}
	p, epochs, err := parsePolicies(name, value, temporary)
	if err != nil {
		return err
	}
	t.mu.Lock() // a call that finds the policy waits here for its epochs
	defer t.mu.Unlock()
	if p.UntilNS != 0 && p.UntilNS <= t.endedNS {
		p, epochs = p.Then, epochs[len(p.Limits):]
	}
	old := set.PolicyNamed(name)
	if old.Same(p) && slices.Equal(t.epochsOf(old), epochs) {
		return nil
	}
	if p == nil {
		t.forget(old)
		set.DeletePolicy(name)
		return nil
	}
	all := p.All()
	forget := func(was, l *policy.Limit) bool { return t.epochs[was.ID] != epochs[slices.Index(all, l)] }
	if err = set.PutPolicy(p, forget); err != nil {
		return err
	}
	t.forget(old)
	for i, l := range slices.Backward(all) { // those in force last
		t.epochs[l.ID] = epochs[i]
	}
	return nil
}

// parsePolicies reads the fields of a policy, one of which may be empty. The epochs are those of All.
func parsePolicies(name, value, temporary string) (p *policy.Policy, epochs []uint64, err error) {
	if value != "" {
		if p, epochs, err = parsePolicy(name, value); err != nil || temporary == "" {
			return p, epochs, err
		}
	}
	until, rest, _ := strings.Cut(temporary, " ")
	ms, err := strconv.ParseInt(until, 10, 64)
	if err != nil {
		return nil, nil, fmt.Errorf("read its end: %w", err)
	}
	first, firstEpochs, err := parsePolicy(name, rest)
	if err != nil {
		return nil, nil, err
	}
	return first.Until(ms*1e6, p), append(firstEpochs, epochs...), nil
}

// parsePolicy reads the limits of a field: each is followed by its epoch and its name.
func parsePolicy(name, value string) (p *policy.Policy, epochs []uint64, err error) {
	var limits []cell.Limit
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
	return policy.New(name, limits...), epochs, nil
}

// epochsOf are the epochs of a policy's limits. The lock is held.
func (t *Settings) epochsOf(p *policy.Policy) (epochs []uint64) {
	for _, l := range p.All() {
		epochs = append(epochs, t.epochs[l.ID])
	}
	return epochs
}

// forget removes the epochs of a policy's limits; nil: there is none. The lock is held.
func (t *Settings) forget(p *policy.Policy) {
	for _, l := range p.All() {
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
