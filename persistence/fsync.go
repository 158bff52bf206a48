package persistence

import "errors"

// ErrNeedsRestart means that a setting cannot change while the server runs.
var ErrNeedsRestart = errors.New("this needs a restart")

// SetFsync changes when the append-only file, if there is one, is forced to the disk. A change to or from Always is ErrNeedsRestart, as
// sessions depend on it from the start.
func (d *Disk) SetFsync(fsync Fsync) error {
	if err := d.MaySetFsync(fsync); err != nil {
		return err
	}
	if was := d.unsynced.Swap(fsync == Never); was && fsync == EverySecond {
		d.syncSoon()
	}
	return nil
}

// MaySetFsync returns the error that SetFsync would return, and changes nothing.
func (d *Disk) MaySetFsync(fsync Fsync) error {
	if d.aof != nil && (fsync == Always) != (d.o.Fsync == Always) {
		return ErrNeedsRestart
	}
	return nil
}

// syncSoon syncs what was written under Never. Without it, the sync would wait for the next change.
func (d *Disk) syncSoon() {
	if l := d.aof; l != nil && l.active.Load() {
		d.offload(func() { l.note(l.append(nil, true)) })
	}
}
