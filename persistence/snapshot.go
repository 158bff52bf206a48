package persistence

import (
	"fmt"
	"time"

	"celld/store"
)

// saveRetry is how long after a failed snapshot the next is tried, as in Redis.
const saveRetry = 5 * time.Second

// Save takes a snapshot here and now, and returns when it is on the disk.
func (m *Manager) Save() error {
	m.mu.Lock()
	err := m.beginSave()
	m.mu.Unlock()
	if err != nil {
		return err
	}
	return m.save(true)
}

// BackgroundSave begins a snapshot. While the append-only file is rewritten it is only noted, if schedule says so.
func (m *Manager) BackgroundSave(schedule bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopping.Load() {
		return ErrStopping
	}
	if m.status.Rewriting && !m.status.Saving {
		m.status.SaveScheduled = m.status.SaveScheduled || schedule
		return ErrRewriting
	}
	if err := m.beginSave(); err != nil {
		return err
	}
	m.work.Go(func() { _ = m.save(false) })
	return nil
}

// PlanSave has a snapshot taken soon: with the next Tick, or when the append-only file has been rewritten.
func (m *Manager) PlanSave() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.status.Saving {
		return ErrSaving
	}
	m.status.SaveScheduled = true
	return nil
}

// beginSave notes that a snapshot is taken from now on. The manager is locked.
func (m *Manager) beginSave() error {
	if m.status.Saving {
		return ErrSaving
	}
	m.status.Saving, m.status.SaveScheduled = true, false
	m.status.SaveBeganNS = m.o.Clock()
	return nil
}

func (m *Manager) save(direct bool) error {
	changes := m.store.Stats(m.o.Clock()).Changes
	keys, size, err := m.writeRDB(direct)
	nowNS := m.o.Clock()
	m.mu.Lock()
	defer m.mu.Unlock()
	st := &m.status
	st.Saving, st.SaveErr, st.SaveTookNS = false, err, nowNS-st.SaveBeganNS
	if err != nil {
		m.log.Error("the snapshot failed; the one before is as it was", "file", m.rdbPath(), "error", err)
		return err
	}
	st.LastSaveNS, m.marked = nowNS, changes
	st.Saves++
	m.log.Info("snapshot taken", "file", m.rdbPath(), "keys", keys, "bytes", size, "took", time.Duration(st.SaveTookNS).Round(time.Millisecond))
	return nil
}

// writeRDB writes a file beside the snapshot and puts it into its place when it is on the disk.
func (m *Manager) writeRDB(direct bool) (keys, size int64, err error) {
	temp := m.temp("rdb")
	f, err := m.create(temp)
	if err != nil {
		return 0, 0, err
	}
	defer func() {
		if err != nil {
			f.Close()
			_ = m.files.Remove(temp)
		}
	}()
	nowNS := m.o.Clock()
	w := newRDBWriter(f, nowNS, int64(m.store.Len(nowNS)), "1")
	m.eachSetting(func(setting store.Setting, text string) { w.aux(settingNames[setting.Kind], text) })
	add := func(key []byte, st store.State) bool { w.add(key, st); return len(w.buf) >= flushAt }
	if err := m.export(direct, add, w.flush); err != nil {
		return 0, 0, err
	}
	if err := w.finish(m.o.Clock()); err != nil {
		return 0, 0, err
	}
	if err := f.Sync(); err != nil {
		return 0, 0, err
	}
	if err := f.Close(); err != nil {
		return 0, 0, err
	}
	if err := m.files.Rename(temp, m.rdbPath()); err != nil {
		return 0, 0, fmt.Errorf("put the snapshot into its place: %w", err)
	}
	return w.keys, w.size, nil
}

// saveDue says whether a save point has come, or a snapshot has been waiting for a rewrite to end.
func (m *Manager) saveDue(nowNS int64) bool {
	points := m.o.SavePoints()
	m.mu.Lock()
	defer m.mu.Unlock()
	st := &m.status
	if st.Saving || st.Rewriting {
		return false
	}
	if st.SaveScheduled {
		return true
	}
	if len(points) == 0 || st.SaveErr != nil && nowNS-st.SaveBeganNS < int64(saveRetry) {
		return false
	}
	changes := m.store.Stats(nowNS).Changes - m.marked
	for _, p := range points {
		if changes >= max(p.Changes, 1) && nowNS-st.LastSaveNS >= int64(p.After) {
			return true
		}
	}
	return false
}
