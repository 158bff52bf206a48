package policy

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"celld/cell"
)

// Rule allows or denies keys before any limit decides.
type Rule struct {
	Deny    bool
	Pause   bool         // with Deny: those who wait go on waiting
	Pattern string       // a key; a prefix of keys, with * at the end; with Net: what stands before an address. \* is a star of the key
	Net     netip.Prefix // the zero value: none
	UntilNS int64        // limit time, Unix ns; 0: for ever
}

// MaxRules is how many there may be; more are refused.
const MaxRules = 1 << 16

// ruleSet holds the rules of one verdict, by what a key is compared with. A key is looked up once among the exact ones, once for each
// length of a prefix, and once for each length of a mask.
type ruleSet struct {
	exact    map[string]*Rule
	prefixes map[string]*Rule
	nets     map[string]map[netip.Prefix]*Rule
}

// rules are those of a Set.
type rules struct {
	any  atomic.Bool // there are some
	ends ends        // when to remove those that are over
	mu   sync.RWMutex
	all  map[string]*Rule // by Name
	sets [3]ruleSet       // rules that deny, that pause, that allow, the first of which that holds decides
	// The lengths of prefixes and of what stands before addresses, shortest first.
	lengths []int
}

// Seen is what rules see of a call beside its key, as if each were a key. One that denies holds if it matches any. Addresses are allowed
// only if each is: a client may have written one of several himself.
type Seen struct {
	Key       []byte // the call's, with whole addresses in place of their nets; nil: it has no nets
	Addresses [][]byte
}

// verdicts are the words for what rules do, in the order in which they decide.
var verdicts = [...]string{"DENY", "PAUSE", "ALLOW"}

// verdict is the place of a rule's in verdicts.
func (r *Rule) verdict() int {
	switch {
	case !r.Deny:
		return 2
	case r.Pause:
		return 1
	}
	return 0
}

// Verdict is ALLOW, PAUSE or DENY.
func (r *Rule) Verdict() string { return verdicts[r.verdict()] }

// SetVerdict sets what Verdict returns. It returns false for another word.
func (r *Rule) SetVerdict(word string) (ok bool) {
	r.Deny, r.Pause = word != "ALLOW", word == "PAUSE"
	return slices.Contains(verdicts[:], word)
}

// Name tells a rule from others: DENY 10.0.0.0/8 ip:, with - for no net.
func (r *Rule) Name() string {
	net := "-"
	if r.Net.IsValid() {
		net = r.CanonicalNet().String()
	}
	return r.Verdict() + " " + net + " " + r.Pattern
}

// parseRule reads a name, and a text that is until when the rule holds, as untilText writes it.
func parseRule(name, text string, aheadNS int64) (Rule, error) {
	var r Rule
	words := strings.SplitN(name, " ", 3)
	if len(words) != 3 || !r.SetVerdict(words[0]) {
		return r, fmt.Errorf("not a rule: %q", name)
	}
	r.Pattern = words[2]
	var err error
	if words[1] != "-" {
		if r.Net, err = netip.ParsePrefix(words[1]); err != nil {
			return r, err
		}
	}
	r.UntilNS, err = parseUntil(text, aheadNS)
	return r, err
}

// CanonicalNet is the net without the bits behind its length. It turns ::ffff:10.0.0.0/104 into 10.0.0.0/8, as addresses are looked up in
// that form.
func (r *Rule) CanonicalNet() netip.Prefix { return canonical(r.Net) }

func canonical(net netip.Prefix) netip.Prefix {
	if addr := net.Addr(); addr.Is4In6() && net.Bits() >= 96 {
		net = netip.PrefixFrom(addr.Unmap(), net.Bits()-96)
	}
	return net.Masked()
}

// text is what keys are compared with, and whether that is their beginning.
func (r *Rule) text() (text string, begins bool) {
	text = r.Pattern
	if before, star := strings.CutSuffix(text, "*"); star && !strings.HasSuffix(before, `\`) && !r.Net.IsValid() {
		text, begins = before, true
	}
	return strings.ReplaceAll(text, `\*`, "*"), begins
}

// Canonical is the pattern with \* for each star of the key.
func (r *Rule) Canonical() string {
	text, begins := r.text()
	if text = strings.ReplaceAll(text, "*", `\*`); begins {
		text += "*"
	}
	return text
}

func (r *Rule) over(nowNS int64) bool { return r.UntilNS != 0 && r.UntilNS <= nowNS }

// PutRule adds a rule, or changes until when it holds, and reports whether it is new. The error is ErrTooMany.
func (s *Set) PutRule(r Rule, nowNS int64) (bool, error) {
	rs := &s.rules
	defer s.notify()
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r.Net = r.CanonicalNet()
	name := r.Name()
	old := rs.all[name]
	if old == nil && len(rs.all) >= MaxRules {
		s.forgetOver(nowNS)
		if len(rs.all) >= MaxRules {
			return false, ErrTooMany
		}
	}
	s.putRule(name, &r)
	return old == nil || old.over(nowNS), nil
}

func (s *Set) putRule(name string, r *Rule) {
	rs := &s.rules
	if rs.all == nil {
		rs.all = make(map[string]*Rule)
	}
	s.note(Setting{RuleSetting, name}, nil)
	rs.all[name] = r
	rs.index(r)
	rs.endsWith(r)
	rs.any.Store(true)
}

// DeleteRule removes a rule and reports whether it held.
func (s *Set) DeleteRule(r Rule, nowNS int64) bool {
	rs := &s.rules
	defer s.notify()
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r.Net = r.CanonicalNet()
	old := rs.all[r.Name()]
	if old == nil {
		return false
	}
	s.removeRule(r.Name(), old)
	return !old.over(nowNS)
}

// Rules returns the rules that hold, sorted by name.
func (s *Set) Rules(nowNS int64) []Rule {
	rs := &s.rules
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	list := make([]Rule, 0, len(rs.all))
	for _, name := range slices.Sorted(maps.Keys(rs.all)) {
		if r := rs.all[name]; !r.over(nowNS) {
			list = append(list, *r)
		}
	}
	return list
}

// SweepRules removes rules that are over, so that keys are not looked up in vain.
func (s *Set) SweepRules(nowNS int64) {
	if s.RulesDue(nowNS) {
		s.rules.mu.Lock()
		s.forgetOver(nowNS)
		s.rules.mu.Unlock()
	}
}

// RulesDue says, without any lock, whether SweepRules has something to do.
func (s *Set) RulesDue(nowNS int64) bool { return s.rules.ends.due(nowNS) }

func (s *Set) forgetOver(nowNS int64) {
	rs := &s.rules
	rs.ends.forget()
	for name, r := range rs.all {
		if r.over(nowNS) {
			s.removeRule(name, r)
		} else {
			rs.endsWith(r)
		}
	}
}

// sweepRules is how late a rule may be removed, so that one sweep removes many.
const sweepRules = 10 * int64(time.Second)

func (rs *rules) endsWith(r *Rule) {
	if r.UntilNS != 0 {
		rs.ends.add(min(r.UntilNS, math.MaxInt64-sweepRules) + sweepRules)
	}
}

// removeRule keeps the lengths until the last rule goes. A length without a rule costs a look-up.
func (s *Set) removeRule(name string, r *Rule) {
	rs := &s.rules
	delete(rs.all, name)
	if len(rs.all) == 0 {
		rs.any.Store(false)
		rs.lengths = nil
	}
	s.note(Setting{RuleSetting, name}, nil)
	set := &rs.sets[r.verdict()]
	text, begins := r.text()
	switch {
	case r.Net.IsValid():
		if delete(set.nets[text], r.Net); len(set.nets[text]) == 0 {
			delete(set.nets, text)
		}
	case begins:
		delete(set.prefixes, text)
	default:
		delete(set.exact, text)
	}
}

func (rs *rules) index(r *Rule) {
	set := &rs.sets[r.verdict()]
	if set.exact == nil {
		*set = ruleSet{make(map[string]*Rule), make(map[string]*Rule), make(map[string]map[netip.Prefix]*Rule)}
	}
	switch text, begins := r.text(); {
	case r.Net.IsValid():
		if set.nets[text] == nil {
			set.nets[text] = make(map[netip.Prefix]*Rule)
		}
		set.nets[text][r.Net] = r
		rs.addLength(len(text))
	case begins:
		set.prefixes[text] = r
		rs.addLength(len(text))
	default:
		set.exact[text] = r
	}
}

func (rs *rules) addLength(length int) {
	if at, there := slices.BinarySearch(rs.lengths, length); !there {
		rs.lengths = slices.Insert(rs.lengths, at, length)
	}
}

// HasRules says, without any lock, whether there are any.
func (s *Set) HasRules() bool { return s.rules.any.Load() }

// Rule returns the rule that holds for a key, and for what is seen beside it (nil: nothing); nil if there is none. A rule that denies comes
// before one that pauses, and that before one that allows. All who decide on calls ask here: see store.Call.Rule.
func (s *Set) Rule(key []byte, seen *Seen, nowNS int64) *Rule {
	rs := &s.rules
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	for i := range rs.sets {
		set := &rs.sets[i]
		r := set.find(key, rs.lengths, nowNS)
		if r == nil && seen != nil {
			r = rs.findSeen(set, seen, nowNS)
		}
		if r != nil {
			return r
		}
	}
	return nil
}

// findSeen is find for what is seen beside a key.
func (rs *rules) findSeen(set *ruleSet, seen *Seen, nowNS int64) (first *Rule) {
	if seen.Key != nil {
		if r := set.find(seen.Key, rs.lengths, nowNS); r != nil {
			return r
		}
	}
	denies := set != &rs.sets[2]
	for _, address := range seen.Addresses {
		r := set.find(address, rs.lengths, nowNS)
		if denies == (r != nil) {
			return r
		}
		first = cmp.Or(first, r)
	}
	return first
}

func (set *ruleSet) find(key []byte, lengths []int, nowNS int64) *Rule {
	holds := func(r *Rule) bool { return r != nil && !r.over(nowNS) }
	if r := set.exact[string(key)]; holds(r) {
		return r
	}
	for _, n := range lengths {
		if n > len(key) {
			break
		}
		if r := set.prefixes[string(key[:n])]; holds(r) {
			return r
		}
		nets := set.nets[string(key[:n])]
		if len(nets) == 0 || len(key)-n > len("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255/128") {
			continue
		}
		own := netIn(string(key[n:]))
		for bits := own.Bits(); bits >= 0; bits-- {
			net, _ := own.Addr().Prefix(bits)
			if r := nets[net]; holds(r) {
				return r
			}
		}
	}
	return nil
}

// netIn reads an address or a net, as keys have it. What is neither has less than 0 bits.
func netIn(text string) netip.Prefix {
	if strings.Contains(text, "/") {
		net, _ := netip.ParsePrefix(text)
		return canonical(net)
	}
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Zone() != "" {
		return netip.Prefix{}
	}
	addr = addr.Unmap()
	return netip.PrefixFrom(addr, addr.BitLen())
}

// Ruled decides on a call by a rule, if one holds for it, in place of a limit of this capacity.
func (s *Set) Ruled(key []byte, seen *Seen, capacity, nowNS int64, d *cell.Decision) bool {
	r := s.Rule(key, seen, nowNS)
	if r != nil {
		*d = r.Decision(capacity, nowNS)
	}
	return r != nil
}

// LeftNS is how long a rule still holds; math.MaxInt64: for ever.
func (r *Rule) LeftNS(nowNS int64) uint64 {
	if r.UntilNS == 0 {
		return math.MaxInt64
	}
	return uint64(max(0, r.UntilNS-nowNS))
}

// Decision is the answer of a rule to a call, in place of a limit of this capacity.
func (r *Rule) Decision(capacity, nowNS int64) cell.Decision {
	if !r.Deny {
		return cell.Decision{Limit: capacity, Remaining: capacity, RetryAfterNS: cell.Never}
	}
	d := cell.Decision{Limited: true, RetryAfterNS: cell.Never}
	if r.UntilNS != 0 {
		d.RetryAfterNS = uint64(r.UntilNS - nowNS)
		d.ResetAfterNS = d.RetryAfterNS
	}
	return d
}
