package persistence

import "errors"

// ErrNeedsRestart is why a setting cannot change while the server runs.
var ErrNeedsRestart = errors.New("this needs a restart")

// SetFsync changes when the append-only file, if there is one, is forced to the disk. With Always replies wait, and what cannot
// be written is taken back, which is prepared at the start: to and from there it cannot change.
func (m *Manager) SetFsync(fsync Fsync) error {
	if m.aof != nil && (fsync == Always) != (m.o.Fsync == Always) {
		return ErrNeedsRestart
	}
	if was := m.unsynced.Swap(fsync == Never); was && fsync == EverySecond {
		m.syncSoon()
	}
	return nil
}

// syncSoon has on the disk what was written before anybody wanted that, as nothing may change for long.
func (m *Manager) syncSoon() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l := m.aof; l != nil && l.active.Load() && !m.stopping.Load() {
		m.work.Go(func() { l.note(l.append(nil, true)) })
	}
}
