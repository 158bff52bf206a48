package persistence

import "errors"

// ErrNeedsRestart is why a setting cannot change while the server runs.
var ErrNeedsRestart = errors.New("this needs a restart")

// SetFsync changes when the append-only file, if there is one, is forced to the disk. With Always replies wait for it, and
// sessions know that from the start: to and from there it cannot change.
func (d *Disk) SetFsync(fsync Fsync) error {
	if err := d.MaySetFsync(fsync); err != nil {
		return err
	}
	if was := d.unsynced.Swap(fsync == Never); was && fsync == EverySecond {
		d.syncSoon()
	}
	return nil
}

// MaySetFsync says what SetFsync would.
func (d *Disk) MaySetFsync(fsync Fsync) error {
	if d.aof != nil && (fsync == Always) != (d.o.Fsync == Always) {
		return ErrNeedsRestart
	}
	return nil
}

// syncSoon has on the disk what was written before anybody wanted that, as nothing may change for long.
func (d *Disk) syncSoon() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if l := d.aof; l != nil && l.active.Load() && !d.stopping.Load() {
		d.work.Go(func() {
			defer d.escaped("the append-only file")
			l.note(l.append(nil, true))
		})
	}
}
