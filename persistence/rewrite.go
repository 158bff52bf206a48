package persistence

import (
	"errors"
	"fmt"
	"io"
	"time"

	"celld/store"
)

// Rewrite begins to write the append-only file anew, as short as it can be. While a snapshot is taken it is only noted.
func (m *Manager) Rewrite() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	st := &m.status
	switch {
	case m.stopping.Load():
		return ErrStopping
	case st.Rewriting:
		return ErrRewriting
	case st.Saving:
		st.RewritePlanned = true
		return ErrSaving
	}
	m.beginRewrite()
	rewrite := m.rewrite
	if m.aof == nil { // once, as Redis does where the append-only file is off
		rewrite = m.rewriteOnce
	}
	m.work.Go(func() { m.endRewrite(rewrite()) })
	return nil
}

// PlanRewrite has the append-only file rewritten soon: with the next Tick, or when a snapshot has been taken.
func (m *Manager) PlanRewrite() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.status.Rewriting {
		return ErrRewriting
	}
	m.status.RewritePlanned = true
	return nil
}

func (m *Manager) beginRewrite() {
	m.status.Rewriting, m.status.RewritePlanned = true, false
	m.status.RewriteBeganNS = m.o.Clock()
}

func (m *Manager) endRewrite(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	st := &m.status
	st.Rewriting, st.RewriteErr, st.RewriteTookNS = false, err, m.o.Clock()-st.RewriteBeganNS
	if err != nil {
		m.log.Error("rewriting the append-only file failed; it is as it was", "file", m.aofPath(), "error", err)
		return
	}
	st.Rewrites++
	m.log.Info("append-only file rewritten", "file", m.aofPath(), "took", time.Duration(st.RewriteTookNS).Round(time.Millisecond))
}

// rewriteDue says whether the file has grown enough, or must be rewritten.
func (m *Manager) rewriteDue() bool {
	var size, base int64
	l := m.aof
	if l != nil {
		l.mu.Lock()
		size, base = l.size, max(l.baseSize, 1)
		l.mu.Unlock()
	}
	nowNS := m.o.Clock()
	m.mu.Lock()
	defer m.mu.Unlock()
	st := &m.status
	if st.Rewriting || st.Saving || st.RewriteErr != nil && nowNS-st.RewriteBeganNS < int64(saveRetry) {
		return false
	}
	if l == nil || st.RewritePlanned {
		return st.RewritePlanned
	}
	percent := m.o.RewritePercentage()
	grown := percent > 0 && size >= m.o.RewriteMinSize() && (size-base)*100/base >= percent
	return grown || l.lost.Load() && l.failing() == nil
}

// rewrite writes all limits to a new file, then what was appended to the old one since it began, and puts it into its place.
// Nobody waits for more than the last of that.
func (m *Manager) rewrite() (err error) {
	l := m.aof
	lost := l.lost.Swap(false)
	defer func() {
		if err != nil && lost {
			l.lost.Store(true)
		}
	}()
	from, failed, err := l.mark()
	if err != nil {
		return err
	}
	temp := m.temp("aof")
	f, err := m.createToAppend(temp)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			_ = m.files.Remove(temp)
		}
	}()
	if err := m.writeStates(f, false); err != nil {
		return err
	}
	for {
		l.mu.Lock()
		to := l.size
		l.mu.Unlock()
		if to-from < flushAt {
			break
		}
		if err := copyRange(f, l.file, from, to); err != nil {
			return err
		}
		from = to
		if m.stopping.Load() {
			return ErrStopping
		}
	}
	if err := f.Sync(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.o.Fsync == Always && l.failed != failed {
		return errors.New("a write has failed meanwhile, and some of the limits may be as they were before they were taken back")
	}
	if err := copyRange(f, l.file, from, l.size); err != nil {
		return err
	}
	return m.swap(f, temp)
}

// mark returns where what is appended from now on begins, and how many writes have failed. A stamp there has the checksums
// of what follows begin anew, as they do in a new file.
func (l *appendLog) mark() (from, failed int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.undoing { // keys under a policy that is gone, and comes back, would not be told again
		return 0, 0, errors.New("a write has failed, and what it was to write is still to be taken back")
	}
	if l.crc != 0 {
		err = l.appendLocked(nil, false)
	}
	return l.size, l.failed, err
}

// rewriteDirect does the same before anybody is served.
func (m *Manager) rewriteDirect() error {
	temp := m.temp("aof")
	f, err := m.create(temp)
	if err != nil {
		return err
	}
	err = m.writeStates(f, true)
	if err == nil {
		err = f.Sync()
	}
	f.Close()
	if err == nil {
		err = m.files.Rename(temp, m.aofPath())
	}
	if err != nil {
		_ = m.files.Remove(temp)
	}
	return err
}

// createToAppend makes an empty file that, like the log, is always written to at its end.
func (m *Manager) createToAppend(name string) (*paced, error) {
	f, err := m.files.Create(name)
	if err != nil {
		return nil, err
	}
	f.Close()
	if f, err = m.files.Append(name); err != nil {
		_ = m.files.Remove(name)
		return nil, err
	}
	return &paced{File: f}, nil
}

// appending returns the log's file. Written once a second or so, it is forgotten as it grows; what follows each single
// decision is too little for that to pay, and who wants no syncs gets none.
func (m *Manager) appending(f File, size int64) File {
	if m.o.Fsync != Always && !m.unsynced.Load() {
		return &paced{File: f, size: size, done: size}
	}
	return f
}

// swap puts the new file into the place of the old one, to which nothing may be written once it has lost its name. The log
// is locked.
func (m *Manager) swap(f *paced, temp string) error {
	l := m.aof
	if err := f.Sync(); err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	err = m.files.Rename(temp, m.aofPath())
	if err != nil && !errors.Is(err, errNotLasting) {
		return fmt.Errorf("put the append-only file into its place: %w", err)
	}
	if err != nil {
		m.log.Warn("the append-only file was rewritten", "error", err)
	}
	old := l.file
	m.work.Go(func() { old.Close() }) // which frees its blocks, 0.1 s for 1 GB
	// All that is appended ends in a stamp, so what has been copied does.
	l.file, l.size, l.baseSize, l.crc, l.torn = m.appending(f.File, info.Size()), info.Size(), info.Size(), 0, false
	l.show()
	l.swaps.Add(1)
	return nil
}

// writeStates writes the commands that lead to all limits, with a stamp behind each piece, so that damage is found where it is.
func (m *Manager) writeStates(w io.Writer, direct bool) error {
	buf := make([]byte, 0, flushAt+flushAt/4)
	m.eachSetting(func(setting store.Setting, text string) { buf = appendSetting(buf, setting, text) })
	return m.export(direct, func(key []byte, st store.State) bool {
		buf = appendState(buf, key, st)
		return len(buf) >= flushAt
	}, func() error {
		buf = appendStamp(buf, m.o.Clock(), jonesUpdate(0, buf))
		_, err := w.Write(buf)
		buf = buf[:0]
		return err
	})
}

func (m *Manager) rewriteOnce() (err error) {
	temp := m.temp("aof")
	f, err := m.create(temp)
	if err != nil {
		return err
	}
	defer func() {
		f.Close()
		if err != nil {
			_ = m.files.Remove(temp)
		}
	}()
	if err := m.writeStates(f, false); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return m.files.Rename(temp, m.aofPath())
}

// copyRange copies bytes of one file to the end of another.
func copyRange(to io.Writer, from io.ReaderAt, start, end int64) error {
	_, err := io.Copy(to, io.NewSectionReader(from, start, end-start))
	return err
}
