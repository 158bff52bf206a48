package policy

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"celld/cell"
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
	kept := &Policy{}
	if p := s.PolicyNamed(name); p != nil {
		for _, l := range p.Limits {
			if slices.Contains(ids, l.ID) {
				kept.Limits = append(kept.Limits, l)
			}
		}
	}
	if len(kept.Limits) == len(ids) {
		return "", false
	}
	return kept.settingText(), true
}

// settingText is String without blanks.
func (p *Policy) settingText() string { return strings.ReplaceAll(p.String(), " ", ";") }

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

// SettingText is a setting's text: a policy's limits with ; between them, or until when a rule holds, in Unix ms of a wall clock that is so
// far ahead, 0 for ever. It returns false if there is no such setting any more.
func (s *Set) SettingText(setting Setting, aheadNS int64) (string, bool) {
	if setting.Kind == PolicySetting {
		p := s.PolicyNamed(setting.Name)
		if p == nil {
			return "", false
		}
		return p.settingText(), true
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
	until := min(int64(cell.ShiftInstant(uint64(r.UntilNS), aheadNS)), math.MaxInt64-2_000_000) // what parseRule takes
	return strconv.FormatInt((until+999_999)/1_000_000, 10), true
}

var errUnknownSetting = errors.New("unknown kind of setting")

// PutSetting is the reverse of SettingText. It leaves out a rule that is over.
func (s *Set) PutSetting(setting Setting, text string, nowNS, aheadNS int64) error {
	switch setting.Kind {
	case PolicySetting:
		limits, err := ParseLimits(strings.ReplaceAll(text, ";", " "))
		if err == nil {
			_, err = s.SetPolicy(setting.Name, limits, Options{})
		}
		return err
	case IDSetting:
		id, err := strconv.ParseUint(text, 10, 64)
		if err == nil {
			s.RaiseID(id)
		}
		return err
	case RuleSetting:
		r, err := parseRule(setting.Name, text)
		r.UntilNS = int64(cell.ShiftInstant(uint64(r.UntilNS), -aheadNS))
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
	} else if r, err := parseRule(setting.Name, "0"); err == nil {
		s.DeleteRule(r, nowNS)
	}
}
