package remote

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"celld/cell"
	"celld/store/policy"
	"celld/store/remote/link"
)

// Policies and rules are two hashes on the engine. A field is a policy's name, or a rule's as policy.Rule.Name has it. Two more fields
// have the version, which grows with each change, and the first version that the hash has had. Every celld asks for the version again and
// again, and reads all when it is another. A first version that is another tells that the engine has lost all since. Without it, a
// change just after the loss hid it, and policies of files stayed away.
//
//	celld:policies   " version" 1763800000123    " since" 1763799990456    api   100/1m 1763799990456      a limit, and its epoch
//	celld:rules      " version" 1763800000789    " since" 1763800000789    DENY - bad:*   1763800060000    Unix ms of the engine until when it holds, 0: for ever
//
// An epoch is the version that made a policy, or reset it. What is spent under another epoch counts no longer. Versions are the
// engine's time in ms, or one more than the last: so they mostly grow where the engine has lost its keys, too.

// pollEvery is how often the version is asked for. One question costs the engine some 2 µs.
const pollEvery = 500 * time.Millisecond

// firstPoll is how often while none has been answered yet: until then the engine's policies are unknown.
const firstPoll = 20 * time.Millisecond

// No policy and no rule has the name of one of these fields.
const versionField, sinceField = " version", " since"

// Callers who choose whole keys may have made a limit of the hash's name. It counts as no settings, and the first change removes it.

// bump defines was, the version before a change, bump, which sets the next, and full, whether there are as many as may be. The last argument is the time in Unix ms, empty for the
// engine's own.
const bump = `
if redis.call('TYPE', KEYS[1]).ok ~= 'hash' then redis.call('DEL', KEYS[1]) end
local time = redis.call('TIME')
local now = tonumber(ARGV[#ARGV]) or time[1] * 1000 + math.floor(time[2] / 1000)
local was = redis.call('HGET', KEYS[1], ' version') or ''
local function bump()
	local version = string.format('%.0f', math.max((tonumber(was) or 0) + 1, now))
	redis.call('HSET', KEYS[1], ' version', version)
	if was == '' then redis.call('HSET', KEYS[1], ' since', version) end
	return version
end
local function full(most) return redis.call('HLEN', KEYS[1]) >= most + (was == '' and 0 or 2) end
`

// The scripts of changes answer 1 when they did it, 0 when not and -1 when there are too many; the version before and after; and the
// field's value, if it has one.
var (
	// read returns the version if it and the first one are those that are known, else all. The version alone may come again: as many
	// changes in a ms take it ahead of the time, it may be that of the first changes after a loss.
	readSettings = link.NewScript(`
local version = redis.pcall('HGET', KEYS[1], ' version')
if type(version) == 'table' then return {} end
if version == ARGV[1] and (redis.call('HGET', KEYS[1], ' since') or '') == ARGV[2] then return version end
return redis.call('HGETALL', KEYS[1])`)

	setPolicy = link.NewScript(bump + `
local name, limit, condition, reset, most = unpack(ARGV)
local old = redis.call('HGET', KEYS[1], name)
if old and condition == 'NX' or not old and condition == 'XX' then return {0, was, was} end
if not old and full(tonumber(most)) then return {-1, was, was} end
local text, epoch = string.match(old or '', '^(.*) (%d+)$')
if reset == '0' and text == limit then return {1, was, was, old} end
local version = bump()
if reset == '1' or not epoch then epoch = version end
redis.call('HSET', KEYS[1], name, limit .. ' ' .. epoch)
return {1, was, version, limit .. ' ' .. epoch}`)

	deleteSetting = link.NewScript(bump + `
local old = redis.call('HGET', KEYS[1], ARGV[1])
if not old then return {0, was, was} end
redis.call('HDEL', KEYS[1], ARGV[1])
local held = not string.match(old, '^%d+$') or old == '0' or tonumber(old) > now
return {held and 1 or 0, was, bump()}`)

	// A rule that is over makes room only where there is none: those who read all leave it out.
	putRule = link.NewScript(bump + `
local name, lasts, most = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local function over(ends) return ends ~= '0' and tonumber(ends) <= now end
local old = redis.call('HGET', KEYS[1], name)
if not old and full(most) then
	local all = redis.call('HGETALL', KEYS[1])
	for i = 1, #all, 2 do
		if string.sub(all[i], 1, 1) ~= ' ' and over(all[i + 1]) then redis.call('HDEL', KEYS[1], all[i]) end
	end
	if full(most) then return {-1, was, was} end
end
local ends = '0'
if lasts > 0 then ends = string.format('%.0f', math.min(now + lasts, 9223372036851)) end
local new = not old or over(old)
redis.call('HSET', KEYS[1], name, ends)
return {new and 1 or 0, was, bump(), ends}`)
)

// settings are the policies and rules of the engine.
type settings struct {
	store           *Store
	policies, rules registry

	mu     sync.RWMutex
	epochs map[uint32]uint64 // by Policy.ID
	file   []policy.Policy   // of this process's file
	unset  []policy.Policy   // those of the file that the engine has refused, or not answered: they are set again with the next poll
	poll   *time.Timer
	closed bool
}

func (t *settings) init(s *Store) {
	t.store, t.epochs = s, make(map[uint32]uint64)
	t.policies = registry{store: s, key: s.options.Prefix + policiesKey, kind: policy.PolicySetting}
	t.rules = registry{store: s, key: s.options.Prefix + rulesKey, kind: policy.RuleSetting}
}

// start has the settings read, and waits for them, so that the first call finds its policy.
func (t *settings) start() {
	t.await(func(done func()) { go t.ask(done) })
}

// await waits for one timeout at most.
func (t *settings) await(do func(done func())) {
	ended := make(chan struct{})
	do(func() { close(ended) })
	select {
	case <-ended:
	case <-time.After(t.store.options.Timeout):
	}
}

// AwaitPolicies waits until the engine has those of KeepPolicies, or has refused them, for one timeout at most. What is taken under a policy
// before that is void: the policy has no epoch yet.
func (s *Store) AwaitPolicies() {
	s.settings.await(s.settings.policies.read) // its turn comes after theirs
}

// ask asks for the settings if they have changed, and again in a while.
func (t *settings) ask(done func()) {
	t.store.askNumber()
	t.policies.read(func() {
		t.rules.read(func() {
			every := pollEvery
			if !t.policies.known() || !t.rules.known() {
				every = firstPoll
			}
			t.mu.Lock()
			again := t.unset
			t.unset = nil
			if !t.closed {
				t.poll = time.AfterFunc(every, func() { t.ask(func() {}) })
			}
			t.mu.Unlock()
			t.setAll(again)
			done()
		})
	})
}

func (t *settings) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed = true; t.poll != nil {
		t.poll.Stop()
	}
}

// epochOf is the epoch of a policy of the process's Set: states of the engine under another are void. 0: it is not on the engine.
func (s *Store) epochOf(p *policy.Policy) uint64 {
	s.settings.mu.RLock()
	defer s.settings.mu.RUnlock()
	return s.settings.epochs[p.ID]
}

// PoliciesUnknown says why the engine may have policies that this process has not: it is away, or has not been asked yet. nil: it was asked a
// moment ago.
func (s *Store) PoliciesUnknown() error {
	if err := s.Away(); err != nil {
		return err
	}
	if !s.settings.policies.known() {
		return errors.New("its policies have not been read yet")
	}
	return nil
}

// SetPolicy sets a policy on the engine, and then in this process. done is called once, from any goroutine, and must not block. The
// error is policy.ErrTooMany, a *DownError or one of the engine's.
func (s *Store) SetPolicy(name string, l cell.Limit, o policy.Options, done func(set bool, err error)) {
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
	s.settings.policies.change(setPolicy, []string{name, l.String(), condition, reset, strconv.Itoa(policy.MaxPolicies)}, done)
}

// DeletePolicy removes a policy, as SetPolicy sets one.
func (s *Store) DeletePolicy(name string, done func(was bool, err error)) {
	s.settings.policies.change(deleteSetting, []string{name}, done)
}

// PutRule adds a rule that lasts so long, 0 for ever, as SetPolicy sets a policy. The rule's UntilNS is not used: the engine's time
// decides.
func (s *Store) PutRule(r policy.Rule, lasts time.Duration, done func(added bool, err error)) {
	ms := lasts / time.Millisecond
	if lasts%time.Millisecond > 0 {
		ms++
	}
	s.settings.rules.change(putRule, []string{r.Name(), strconv.FormatInt(int64(ms), 10), strconv.Itoa(policy.MaxRules)}, done)
}

// DeleteRule removes a rule, as SetPolicy sets a policy.
func (s *Store) DeleteRule(r policy.Rule, done func(held bool, err error)) {
	s.settings.rules.change(deleteSetting, []string{r.Name()}, done)
}

// KeepPolicies has the engine have these policies, which are those of a file. Those that differ are set as soon as it answers, and
// once more where it has lost all that it had. This process has them at once. The error is policy.ErrTooMany, for the policy whose place
// in the list is returned.
func (s *Store) KeepPolicies(list []policy.Policy) (refused int, err error) {
	t := &s.settings
	for i, p := range list {
		if old := s.policies.PolicyNamed(p.Name); old == nil {
			if _, err := s.policies.SetPolicy(p.Name, p.Limit, policy.Options{}); err != nil {
				return i, err
			}
		}
	}
	t.mu.Lock()
	t.file = list
	t.mu.Unlock()
	if t.policies.known() {
		t.setFile()
	}
	return 0, nil
}

// setFile sets the policies of the file that differ.
func (t *settings) setFile() {
	t.mu.Lock()
	file := t.file
	t.unset = nil
	t.mu.Unlock()
	t.setAll(file)
}

func (t *settings) setAll(list []policy.Policy) {
	for _, p := range list {
		t.store.SetPolicy(p.Name, p.Limit, policy.Options{}, func(_ bool, err error) {
			if err == nil {
				return
			}
			if !errors.Is(err, policy.ErrTooMany) {
				t.mu.Lock()
				t.unset = append(t.unset, p)
				t.mu.Unlock()
			} else if t.store.options.Log != nil {
				t.store.options.Log.Error("A policy of the file is not on the engine.", "policy", p.Name, "error", err)
			}
		})
	}
}

// put gives this process what a field says.
func (t *settings) put(kind policy.Kind, name, value string) error {
	set := t.store.policies
	if kind == policy.RuleSetting { // whether it is over is asked with each call
		setting := policy.Setting{Kind: kind, Name: name}
		if text, there := set.SettingText(setting, 0); there && text == value {
			return nil
		}
		return set.PutSetting(setting, value, 0, 0)
	}
	text, last, _ := strings.Cut(value, " ")
	epoch, err := strconv.ParseUint(last, 10, 64)
	if err != nil {
		return fmt.Errorf("read its epoch: %w", err)
	}
	l, err := cell.ParseLimit(text)
	if err != nil {
		return err
	}
	t.mu.Lock() // who has found the policy waits for its epoch
	defer t.mu.Unlock()
	old, was := set.PolicyNamed(name), uint64(0)
	if old != nil {
		if was = t.epochs[old.ID]; was == epoch && old.Limit == l {
			return nil
		}
	}
	if _, err = set.SetPolicy(name, l, policy.Options{Reset: was != epoch}); err != nil {
		return err
	}
	if was != epoch && old != nil {
		delete(t.epochs, old.ID)
	}
	t.epochs[set.PolicyNamed(name).ID] = epoch
	return nil
}

// remove takes from this process what the engine has no longer.
func (t *settings) remove(kind policy.Kind, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if kind == policy.PolicySetting {
		if p := t.store.policies.PolicyNamed(name); p != nil {
			delete(t.epochs, p.ID)
		}
	}
	t.store.policies.DeleteSetting(policy.Setting{Kind: kind, Name: name}, 0)
}
