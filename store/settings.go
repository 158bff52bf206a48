package store

import "sync"

// Settings are what is kept beside the keys, and saved with them: policies and rules, each a name and a text.
type SettingKind uint8

const (
	PolicySetting SettingKind = iota
	RuleSetting
	SettingKinds
)

// Setting names one.
type Setting struct {
	Kind SettingKind
	Name string
}

// settings notes which have changed, for Drain. There are not more than MaxPolicies and MaxRules of them, and what is
// deleted meanwhile.
type settings struct {
	mu      sync.Mutex
	on      bool
	changes int64 // ever made
	changed map[Setting]struct{}
}

func (s *settings) note(kind SettingKind, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changes++; !s.on {
		return
	}
	if s.changed == nil {
		s.changed = make(map[Setting]struct{})
	}
	s.changed[Setting{kind, name}] = struct{}{}
}

// DrainSettings calls fn for each setting that was changed since it was last called.
func (s *Store) DrainSettings(fn func(Setting)) {
	s.settings.mu.Lock()
	changed := s.settings.changed
	s.settings.changed = nil
	s.settings.mu.Unlock()
	for setting := range changed {
		fn(setting)
	}
}
