package policy

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Kind is a kind of setting: of what is kept beside the keys, and saved with them.
type Kind uint8

const (
	PolicySetting Kind = iota
	RuleSetting
	IDSetting    // the highest ID of a lease
	SettingKinds // how many there are
)

// Setting names a policy or a rule. To files each is a name and a text.
type Setting struct {
	Kind Kind
	Name string
}

// Change tells of a setting that has changed. SettingText is its text now.
type Change struct {
	Setting
	Renewed bool // it was deleted or reset: what was used under it before no longer counts, though it may be there again

	// Kept is the text of the limits of a renewed policy of which what was used before still counts; "": there is none.
	Kept string
}

// mostChanged is how many bytes of names, and 64 for each, are noted for DrainSettings.
const mostChanged = 16 << 20

// changes notes what has changed, for DrainSettings.
type changes struct {
	mu      sync.Mutex
	count   int64                // ever made
	changed map[Setting][]uint32 // the IDs of a policy's limits before the first change
	bytes   int                  // of changed
	lost    bool                 // there were more than mostChanged
}

// note notes that a setting changes. ids are those of the limits that a policy has had.
func (s *Set) note(setting Setting, ids []uint32) {
	c := &s.changes
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count++; !s.Journal {
		return
	}
	if _, noted := c.changed[setting]; noted {
		return
	}
	if c.bytes >= mostChanged {
		c.lost = true
		return
	}
	c.bytes += len(setting.Name) + 64 + 4*len(ids)
	if c.changed == nil {
		c.changed = make(map[Setting][]uint32)
	}
	c.changed[setting] = ids
}

// NoteSetting notes a setting that is to be written as if it had changed.
func (s *Set) NoteSetting(setting Setting) { s.note(setting, nil) }

// SettingChanges is how many changes there ever were.
func (s *Set) SettingChanges() int64 {
	s.changes.mu.Lock()
	defer s.changes.mu.Unlock()
	return s.changes.count
}

// DrainSettings calls fn for each setting that has changed since the last call. It reports whether there were too many to note all. Without
// Journal it notes none.
func (s *Set) DrainSettings(fn func(Change)) (lost bool) {
	c := &s.changes
	c.mu.Lock()
	changed := c.changed
	lost = c.lost
	c.changed, c.bytes, c.lost = nil, 0, false
	c.mu.Unlock()
	for setting, ids := range changed {
		change := Change{Setting: setting}
		if setting.Kind == PolicySetting {
			change.Kept, change.Renewed = s.keptOf(setting.Name, ids)
		}
		fn(change)
	}
	return lost
}

// keptOf is the text of those limits of a policy that have these IDs. renewed: some of the IDs are gone.
func (s *Set) keptOf(name string, ids []uint32) (text string, renewed bool) {
	kept := s.PolicyNamed(name).keep(ids)
	if len(kept.ids()) == len(ids) {
		return "", false
	}
	return kept.settingText(0), true
}

// keep is a policy with those limits only that have these IDs; nil: it has none. A temporary one then has no end that might have come
// before a file is read: the text that follows in the file has it.
func (p *Policy) keep(ids []uint32) *Policy {
	if p == nil {
		return nil
	}
	kept := &Policy{Name: p.Name, Then: p.Then.keep(ids)}
	for _, l := range p.Limits {
		if slices.Contains(ids, l.ID) {
			kept.Limits = append(kept.Limits, l)
		}
	}
	switch {
	case len(kept.Limits) == 0:
		return kept.Then
	case p.UntilNS != 0:
		kept.UntilNS = math.MaxInt64
	}
	return kept
}

// settingText is the limits with ; between them. A temporary policy stands behind the lasting one and its own end:
// 5/1m|1763800060000|9/1m. For nil it is empty.
func (p *Policy) settingText(aheadNS int64) string {
	if p == nil {
		return ""
	}
	text := strings.ReplaceAll(p.String(), " ", ";")
	if p.UntilNS != 0 {
		text = p.Then.settingText(aheadNS) + "|" + untilText(p.UntilNS, aheadNS) + "|" + text
	}
	return text
}

// parsePolicy is the reverse of settingText, without a temporary policy that is over; nil: that was all.
func parsePolicy(name, text string, nowNS, aheadNS int64) (p *Policy, err error) {
	read := func(text string) (*Policy, error) {
		limits, err := ParseLimits(strings.ReplaceAll(text, ";", " "))
		return New(name, limits...), err
	}
	lasting, rest, ends := strings.Cut(text, "|")
	if lasting != "" || !ends {
		if p, err = read(lasting); err != nil || !ends {
			return p, err
		}
	}
	until, limits, _ := strings.Cut(rest, "|")
	untilNS, err := parseUntil(until, aheadNS)
	if err != nil || untilNS <= nowNS {
		return p, err
	}
	temporary, err := read(limits)
	return temporary.Until(untilNS, p), err
}

// Settings returns the names of all settings of a kind, sorted.
func (s *Set) Settings(kind Kind) (names []string) {
	if kind == PolicySetting {
		for _, p := range s.Policies() {
			names = append(names, p.Name)
		}
		return names
	}
	if kind == IDSetting {
		if _, ok := s.savedID(); ok {
			names = append(names, idSetting.Name)
		}
		return names
	}
	s.rules.mu.RLock()
	defer s.rules.mu.RUnlock()
	return slices.Sorted(maps.Keys(s.rules.all))
}

// SettingText is a setting's text: a policy's limits with ; between them, as settingText has it, or until when a rule holds, 0 for ever.
// Ends are in Unix ms of a wall clock that is so far ahead. It returns false if there is no such setting any more.
func (s *Set) SettingText(setting Setting, aheadNS int64) (string, bool) {
	if setting.Kind == PolicySetting {
		p := s.PolicyNamed(setting.Name)
		if p == nil {
			return "", false
		}
		return p.settingText(aheadNS), true
	}
	if setting.Kind == IDSetting {
		return s.savedID()
	}
	s.rules.mu.RLock()
	defer s.rules.mu.RUnlock()
	r := s.rules.all[setting.Name]
	if r == nil {
		return "", false
	}
	return untilText(r.UntilNS, aheadNS), true
}

var errUnknownSetting = errors.New("unknown kind of setting")

// PutSetting is the reverse of SettingText. It leaves out a temporary policy and a rule that is over.
func (s *Set) PutSetting(setting Setting, text string, nowNS, aheadNS int64) error {
	switch setting.Kind {
	case PolicySetting:
		p, err := parsePolicy(setting.Name, text, nowNS, aheadNS)
		switch {
		case err != nil:
		case p == nil:
			s.DeletePolicy(setting.Name)
		default:
			err = s.PutPolicy(p, nil)
		}
		return err
	case IDSetting:
		id, err := strconv.ParseUint(text, 10, 64)
		if err == nil {
			s.RaiseID(id)
		}
		return err
	case RuleSetting:
		r, err := parseRule(setting.Name, text, aheadNS)
		switch {
		case err != nil:
		case r.over(nowNS):
			s.DeleteRule(r, nowNS)
		default:
			_, err = s.PutRule(r, nowNS)
		}
		return err
	}
	return errUnknownSetting
}

// DeleteSetting removes a setting, if it is there. The highest ID stays.
func (s *Set) DeleteSetting(setting Setting, nowNS int64) {
	if setting.Kind == IDSetting {
		return
	}
	if setting.Kind == PolicySetting {
		s.DeletePolicy(setting.Name)
	} else if r, err := parseRule(setting.Name, "0", 0); err == nil {
		s.DeleteRule(r, nowNS)
	}
}
