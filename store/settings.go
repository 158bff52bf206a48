package store

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"

	"celld/cell"
)

// SettingKind is a kind of what is kept beside the keys, and saved with them.
type SettingKind uint8

const (
	PolicySetting SettingKind = iota
	RuleSetting
	SettingKinds // how many there are
)

// Setting names a policy or a rule. To files each is a name and a text.
type Setting struct {
	Kind SettingKind
	Name string
}

// SettingChange tells of one that has changed. SettingText is what it says by now.
type SettingChange struct {
	Setting
	Renewed bool // it was deleted or reset: what was used under it before no longer counts, though it may be there again
}

// mostChanged is how many bytes of names, and 64 for each, are noted for DrainSettings.
const mostChanged = 16 << 20

// settings notes what has changed, for DrainSettings.
type settings struct {
	mu      sync.Mutex
	on      bool
	changes int64            // ever made
	changed map[Setting]bool // whether it was renewed
	bytes   int              // of changed
	lost    bool             // there were more than mostChanged
}

// note notes that a setting changes.
func (s *settings) note(setting Setting, renewed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changes++; !s.on {
		return
	}
	before, noted := s.changed[setting]
	if !noted {
		if s.bytes >= mostChanged {
			s.lost = true
			return
		}
		s.bytes += len(setting.Name) + 64
	}
	if s.changed == nil {
		s.changed = make(map[Setting]bool)
	}
	s.changed[setting] = before || renewed
}

// DrainSettings calls fn for each setting that was changed since it was last called, and reports whether there were others of
// which it does not know, because they were too many. Without Options.Journal there are none.
func (s *Store) DrainSettings(fn func(SettingChange)) (lost bool) {
	s.settings.mu.Lock()
	changed := s.settings.changed
	lost = s.settings.lost
	s.settings.changed, s.settings.bytes, s.settings.lost = nil, 0, false
	s.settings.mu.Unlock()
	for setting, renewed := range changed {
		fn(SettingChange{setting, renewed})
	}
	return lost
}

// Settings are the names of all there are of a kind, sorted.
func (s *Store) Settings(kind SettingKind) (names []string) {
	if kind == PolicySetting {
		for _, p := range s.Policies() {
			names = append(names, p.Name)
		}
		return names
	}
	s.rules.mu.RLock()
	defer s.rules.mu.RUnlock()
	return slices.Sorted(maps.Keys(s.rules.all))
}

// SettingText is what a setting says: a policy's limit, or until when a rule holds in Unix ms, 0 for ever. It returns false
// where it is no more.
func (s *Store) SettingText(setting Setting) (string, bool) {
	if setting.Kind == PolicySetting {
		p := s.PolicyNamed(setting.Name)
		if p == nil {
			return "", false
		}
		return p.Limit.String(), true
	}
	s.rules.mu.RLock()
	defer s.rules.mu.RUnlock()
	r := s.rules.all[setting.Name]
	if r == nil {
		return "", false
	}
	until := min(int64(cell.ShiftInstant(uint64(r.UntilNS), s.wall.Load())), math.MaxInt64-2_000_000) // what parseRule takes
	return strconv.FormatInt((until+999_999)/1_000_000, 10), true
}

var errUnknownSetting = errors.New("unknown kind of setting")

// PutSetting is the reverse of SettingText. A rule that is over is left out.
func (s *Store) PutSetting(setting Setting, text string, nowNS int64) error {
	switch setting.Kind {
	case PolicySetting:
		l, err := cell.ParseLiteral(text)
		if err == nil {
			_, err = s.SetPolicy(setting.Name, l, PolicyOptions{})
		}
		return err
	case RuleSetting:
		r, err := parseRule(setting.Name, text)
		r.UntilNS = int64(cell.ShiftInstant(uint64(r.UntilNS), -s.wall.Load()))
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

// DeleteSetting removes one, if it is there.
func (s *Store) DeleteSetting(setting Setting, nowNS int64) {
	if setting.Kind == PolicySetting {
		s.DeletePolicy(setting.Name)
	} else if r, err := parseRule(setting.Name, "0"); err == nil {
		s.DeleteRule(r, nowNS)
	}
}
