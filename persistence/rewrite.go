package persistence

import (
	"errors"
	"fmt"
	"io"
	"time"

	"celld/store"
	"celld/store/policy"
)

// Rewrite begins to write the append-only file anew, as short as it can be. While a snapshot is taken it is only noted.
func (d *Disk) Rewrite() error {
	claimed := d.Claim()
	d.mu.Lock()
	defer d.mu.Unlock()
	st := &d.status
	switch {
	case d.stopping.Load():
		return ErrStopping
	case st.Rewriting:
		return ErrRewriting
	case st.Saving:
		st.RewriteScheduled = true
		return ErrSaving
	}
	st.Rewriting, st.RewriteScheduled, st.RewriteBeganNS = true, false, d.o.Clock()
	if claimed != nil {
		d.rewritten(claimed)
		return claimed
	}
	rewrite := d.rewrite
	if d.aof == nil { // once, as Redis does where the append-only file is off
		rewrite = func() error { return d.rewriteWhole(false) }
	}
	d.work.Go(func() {
		defer d.escaped("the rewrite")
		err := rewrite()
		d.mu.Lock()
		defer d.mu.Unlock()
		d.rewritten(err)
	})
	return nil
}

// ScheduleRewrite has the append-only file rewritten soon: with the next Tick, or when a snapshot has been taken.
func (d *Disk) ScheduleRewrite() error {
	if err := d.Claim(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.status.Rewriting {
		return ErrRewriting
	}
	d.status.RewriteScheduled = true
	return nil
}

// rewritten notes how a rewrite ended. The Disk is locked.
func (d *Disk) rewritten(err error) {
	st := &d.status
	st.Rewriting, st.RewriteErr, st.RewriteTookNS = false, err, d.o.Clock()-st.RewriteBeganNS
	if err != nil {
		d.log.Error("rewriting the append-only file failed; it is as it was", "file", d.aofPath(), "error", err)
		return
	}
	st.Rewrites++
	d.log.Info("append-only file rewritten", "file", d.aofPath(), "took", time.Duration(st.RewriteTookNS).Round(time.Millisecond))
}

// rewriteDue says whether the file has grown enough, or must be rewritten.
func (d *Disk) rewriteDue() bool {
	var size, base int64
	l := d.aof
	if l != nil {
		l.mu.Lock()
		size, base = l.size, max(l.baseSize, 1)
		l.mu.Unlock()
	}
	nowNS := d.o.Clock()
	d.mu.Lock()
	defer d.mu.Unlock()
	st := &d.status
	if st.Rewriting || st.Saving || st.RewriteErr != nil && nowNS-st.RewriteBeganNS < int64(saveRetry) {
		return false
	}
	if l == nil || st.RewriteScheduled {
		return st.RewriteScheduled
	}
	percent := d.o.RewritePercentage()
	if a := d.astray.Load(); a != nil {
		return a.mendable
	}
	grown := percent > 0 && size >= d.o.RewriteMinSize() && (size-base)*100/base >= percent
	return grown || l.lost.Load() && l.failing() == nil
}

// rewrite writes all limits to a new file, then what was appended to the old one since it began, and puts it into its place.
// Nobody waits for more than the last of that.
func (d *Disk) rewrite() (err error) {
	l := d.aof
	lost := l.lost.Swap(false)
	defer func() {
		if lost && (err != nil || l.writeErr.Load() != nil) { // what was refused may be of before the clock was set, and comes behind
			l.lost.Store(true)
		}
	}()
	from, resized, err := l.mark()
	if err != nil {
		return err
	}
	temp := d.temp("aof")
	f, err := d.createToAppend(temp)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			_ = d.files.Remove(temp)
		}
	}()
	if err := d.writeStates(f, false); err != nil {
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
		if d.stopping.Load() {
			return ErrStopping
		}
	}
	if err := f.Sync(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.checkSize(); err != nil {
		return err
	}
	if l.resized != resized {
		return errResized
	}
	if err := copyRange(f, l.file, from, l.size); err != nil {
		return err
	}
	return d.swap(f, temp)
}

// mark returns where what is appended from now on begins, and how often its size was changed by somebody else. A stamp there has
// the checksums of what follows begin anew, as they do in a new file.
func (l *appendLog) mark() (from, resized int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.crc != 0 {
		err = l.appendLocked(nil, false)
	}
	return l.size, l.resized, err
}

// rewriteWhole writes all limits to a new file where nothing is appended meanwhile: before anybody is served, at the end
// (direct), or where the append-only file is off.
func (d *Disk) rewriteWhole(direct bool) error {
	temp, err := d.writeTemp("aof", func(f File) error { return d.writeStates(f, direct) })
	if err != nil {
		return err
	}
	return d.place(temp, d.aofPath())
}

// createToAppend makes an empty file that, like the log, is always written to at its end.
func (d *Disk) createToAppend(name string) (*paced, error) {
	f, err := d.files.Create(name)
	if err != nil {
		return nil, err
	}
	f.Close()
	if f, err = d.files.Append(name); err != nil {
		_ = d.files.Remove(name)
		return nil, err
	}
	return &paced{File: f}, nil
}

// appending returns the log's file. Written once a second or so, it is forgotten as it grows; what follows each single
// decision is too little for that to pay, and who wants no syncs gets none.
func (d *Disk) appending(f File, size int64) File {
	if d.o.Fsync != Always && !d.unsynced.Load() {
		return &paced{File: f, size: size, done: size}
	}
	return f
}

// swap puts the new file into the place of the old one, to which nothing may be written once it has lost its name. The log
// is locked.
func (d *Disk) swap(f *paced, temp string) error {
	l := d.aof
	if err := f.Sync(); err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	err = d.place(temp, d.aofPath())
	if err != nil && !errors.Is(err, errNotLasting) {
		return fmt.Errorf("put the append-only file into its place: %w", err)
	}
	if err != nil {
		d.log.Warn("the append-only file was rewritten", "error", err)
	}
	old := l.file
	d.work.Go(func() { old.Close() }) // which frees its blocks, 0.1 s for 1 GB
	// All that is appended ends in a stamp, so what has been copied does.
	l.file, l.size, l.baseSize, l.crc, l.torn = d.appending(f.File, info.Size()), info.Size(), info.Size(), 0, false
	l.resized = 0
	l.show()
	d.noteAstray(nil)
	return nil
}

// writeStates writes the commands that lead to all limits, with a stamp behind each piece, so that damage is found where it is.
func (d *Disk) writeStates(w io.Writer, direct bool) (err error) {
	defer d.caught("the rewrite", &err)
	buf := make([]byte, 0, flushAt+flushAt/4)
	d.eachSetting(func(setting policy.Setting, text string) { buf = appendSetting(buf, setting, text) })
	return d.export(direct, func(key []byte, st store.Value) bool {
		buf = appendState(buf, key, st)
		return len(buf) >= flushAt
	}, func() error {
		buf = appendStamp(buf, d.wallNS(), jonesUpdate(0, buf))
		_, err := w.Write(buf)
		buf = buf[:0]
		return err
	})
}

// copyRange copies bytes of one file to the end of another.
func copyRange(to io.Writer, from io.ReaderAt, start, end int64) error {
	_, err := io.Copy(to, io.NewSectionReader(from, start, end-start))
	return err
}
