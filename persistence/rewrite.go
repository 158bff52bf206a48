package persistence

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"celld/persistence/aof"
	"celld/persistence/dir"
	"celld/persistence/source"
	"celld/store"
	"celld/store/policy"
)

// Rewrite begins to rewrite the append-only file in the background, as short as possible. The error is ErrStopping, ErrRewriting, ErrSaving
// (then the rewrite follows the snapshot), or why the directory could not be locked.
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
		defer d.endOnPanic("the rewrite")
		err := rewrite()
		d.mu.Lock()
		defer d.mu.Unlock()
		d.rewritten(err)
	})
	return nil
}

// ScheduleRewrite asks for a rewrite of the append-only file at the next Tick, or after the snapshot that is being taken. The error is
// ErrRewriting, or why the directory could not be locked.
func (d *Disk) ScheduleRewrite() error {
	return d.schedule(&d.status.RewriteScheduled, &d.status.Rewriting, ErrRewriting)
}

// schedule sets scheduled, unless the work runs.
func (d *Disk) schedule(scheduled, runs *bool, running error) error {
	if err := d.Claim(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if *runs {
		return running
	}
	*scheduled = true
	return nil
}

// rewritten records the result of a rewrite. The Disk is locked.
func (d *Disk) rewritten(err error) {
	st := &d.status
	st.Rewriting, st.RewriteErr, st.RewriteTookNS = false, err, d.o.Clock()-st.RewriteBeganNS
	if err != nil {
		d.log.Error("rewriting the append-only file failed; the file is unchanged", "file", d.paths.AppendOnly, "error", err)
		return
	}
	st.Rewrites++
	d.log.Info("append-only file rewritten", "file", d.paths.AppendOnly, "took", time.Duration(st.RewriteTookNS).Round(time.Millisecond))
}

// rewriteDue reports whether the file has grown enough, or must be rewritten.
func (d *Disk) rewriteDue() bool {
	var size, base int64
	l := d.aof
	if l != nil { // without the lock, which a write to a slow disk holds for long
		base = max(l.baseSize.Load(), 1) // before size: a file that is replaced in between has not grown
		size = l.size.Load()
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
	if a := d.misplaced.Load(); a != nil {
		return a.repairable
	}
	grown := percent > 0 && size >= d.o.RewriteMinSize() && (size-base)*100/base >= percent
	return grown || l.lost.Load() && l.failing() == nil
}

// rewrite writes all limits to a new file, copies what was appended to the old file meanwhile, and puts the new file into its place. It
// locks the log only for the last copy, of less than flushAt bytes and the last unit.
//
// The limits are written at different instants. So the copy ends behind a unit that has what they are at a later one. A file that takes no
// more may be too long: then that unit goes to the new file only.
func (d *Disk) rewrite() (err error) {
	l := d.aof
	lost, refused := l.lost.Swap(false), false
	defer func() {
		if lost && (err != nil || refused) { // refused bytes may be older than the clock change
			l.lost.Store(true)
		}
	}()
	var from, resized int64
	var within bool // a unit whose beginning stands before from
	if err := l.inTurn(func() (err error) {
		from, resized, err = l.mark()
		within = l.inFile
		return err
	}); err != nil {
		return err
	}
	temp := d.dir.Temp("aof")
	f, err := d.createToAppend(temp)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			_ = d.dir.FS.Remove(temp)
		}
	}()
	if err := d.writeStates(f, false); err != nil {
		return err
	}
	if within {
		begin := aof.AppendStamp([]byte(aof.Multi), d.wallNS(), source.Checksum(0, []byte(aof.Multi)))
		if _, err := f.Write(begin); err != nil {
			return err
		}
	}
	if from, err = d.follow(f, from); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return l.inTurn(func() error {
		refused, err = d.replace(f, temp, from, resized)
		return err
	})
}

// replace copies the rest of the old file to the new one, which takes its place. refused reports that the disk takes no more of the old
// one.
func (d *Disk) replace(f *dir.Paced, temp string, from, resized int64) (refused bool, err error) {
	l := d.aof
	if l.writeErr.Load() == nil {
		err = l.flush(l.write)
	}
	refused = l.writeErr.Load() != nil
	if err != nil && !refused {
		return false, err
	}
	if err := copyRange(f, l.file, from, l.size.Load()); err != nil {
		return refused, err
	}
	if refused {
		begun := l.begun
		defer func() { l.moved(begun, err) }()
		if err := l.writeTo(f); err != nil {
			return true, err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.checkSize(); err != nil {
		return refused, err
	}
	if l.resized != resized {
		return refused, errResized
	}
	return refused, d.swap(f, temp)
}

// follow copies what is appended to the old file from a place on, until less than flushAt bytes are left. It returns where these begin.
func (d *Disk) follow(f io.Writer, from int64) (int64, error) {
	l := d.aof
	for {
		to := l.size.Load()
		if to-from < flushAt {
			return from, nil
		}
		if err := copyRange(f, l.file, from, to); err != nil {
			return from, err
		}
		from = to
		if d.stopping.Load() {
			return from, ErrStopping
		}
	}
}

// writeTo writes to a new file what the disk has refused, and the rest of the unit.
func (l *appendLog) writeTo(f io.Writer) error {
	write := func(piece []byte) error {
		if len(piece) == 0 {
			return nil
		}
		_, err := f.Write(aof.AppendStamp(piece, l.wallNS(), source.Checksum(0, piece)))
		return err
	}
	if err := write(slices.Clip(l.refused)); err != nil {
		return err
	}
	return l.flush(write)
}

// moved ends writeTo: the new file is in its place, or, with an error, it is not and the old one lacks what the new one had.
func (l *appendLog) moved(begun bool, err error) {
	if err != nil {
		l.begun = begun
		l.lost.Store(true)
		return
	}
	l.refused = nil
	l.written()
	l.note(nil)
}

// rewriteWhole writes all limits to a new file, and copies nothing from an old one. It serves where nothing is appended meanwhile: before
// the first connection and after the last (direct), and while the append-only file is off.
func (d *Disk) rewriteWhole(direct bool) error {
	temp, err := d.dir.WriteTemp("aof", func(f dir.File) error { return d.writeStates(f, direct) })
	if err != nil {
		return err
	}
	return d.dir.Place(temp, d.paths.AppendOnly)
}

// createToAppend creates an empty file. Like the log, it is always written at its end.
func (d *Disk) createToAppend(name string) (*dir.Paced, error) {
	f, err := d.dir.FS.Create(name)
	if err != nil {
		return nil, err
	}
	f.Close()
	if f, err = d.dir.FS.Append(name); err != nil {
		_ = d.dir.FS.Remove(name)
		return nil, err
	}
	return &dir.Paced{File: f}, nil
}

// swap puts the new file into the place of the old one. The log is locked, as nothing may be written to the old file once it has lost its
// name.
func (d *Disk) swap(f *dir.Paced, temp string) error {
	l := d.aof
	if err := f.Sync(); err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	err = d.dir.Place(temp, d.paths.AppendOnly)
	if err != nil && !errors.Is(err, dir.ErrNotLasting) {
		return fmt.Errorf("put the append-only file into its place: %w", err)
	}
	if err != nil {
		d.log.Warn("the append-only file was rewritten", "error", err)
	}
	old := l.file
	d.work.Go(func() { old.Close() }) // frees its blocks: 0.1 s for 1 GB
	l.use(f.File, info.Size(), 0)     // each append ends in a stamp, so the copy does
	d.noteMisplaced(nil)
	return nil
}

// flushAt is how many bytes of commands are gathered before they are written.
const flushAt = 256 << 10

// writeStates writes the commands that make all limits, with a stamp behind each piece, so that an error can name the damaged piece.
func (d *Disk) writeStates(w io.Writer, direct bool) (err error) {
	defer d.catchPanic("the rewrite", &err)
	buf := make([]byte, 0, flushAt+flushAt/4)
	d.eachSetting(func(setting policy.Setting, text string) { buf = aof.AppendSetting(buf, setting, text) })
	return d.export(direct, func(key []byte, st store.Value) bool {
		buf = aof.AppendState(buf, key, st)
		return len(buf) >= flushAt
	}, func() error {
		buf = aof.AppendStamp(buf, d.wallNS(), source.Checksum(0, buf))
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
