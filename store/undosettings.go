package store

import "slices"

// settingsUndo is what settings were before they changed, in the order of the changes, for Undo.
type settingsUndo struct {
	kept  bool // KeepUndo was called
	still bool // Undo is at work: its own changes are not noted
	notes []settingWas
	told  int // how many of notes DrainSettings has told the changes of
}

// settingWas is what a setting was.
type settingWas struct {
	Setting
	policy *Policy // nil: there was none of that name
	rule   *Rule
}

func (u *settingsUndo) note(was settingWas) {
	if u.kept && !u.still {
		u.notes = append(u.notes, was)
	}
}

func (s *settings) keepUndo() {
	s.mu.Lock()
	s.undo.kept = true
	s.mu.Unlock()
}

// keep forgets what was told.
func (s *settings) keep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.undo.told > 0 {
		s.undo.notes, s.undo.told = slices.Clone(s.undo.notes[s.undo.told:]), 0
	}
}

// takeBack makes all settings what they were. They are told anew, but not as renewed: what was used under a policy before
// counts again.
func (s *settings) takeBack(store *Store) {
	s.mu.Lock()
	notes := s.undo.notes
	s.undo.notes, s.undo.told, s.undo.still = nil, 0, true
	for _, was := range notes {
		if _, noted := s.changed[was.Setting]; noted {
			s.changed[was.Setting] = false
		}
	}
	s.mu.Unlock()
	for _, was := range slices.Backward(notes) { // the newest first, so that the oldest stays
		if was.Kind == PolicySetting {
			store.policies.restore(store, was)
		} else {
			store.rules.restore(store, was)
		}
	}
	s.mu.Lock()
	s.undo.still = false
	s.mu.Unlock()
}
