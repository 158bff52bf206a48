package persistence

import (
	"fmt"
	"time"

	"celld/persistence/dir"
	"celld/persistence/rdb"
	"celld/store"
	"celld/store/policy"
)

// saveRetry is the pause between the start of a failed snapshot and the next try, as in Redis.
const saveRetry = 5 * time.Second

// Save takes a snapshot and returns when it is on the disk. The error is ErrSaving, or why there is no snapshot.
func (d *Disk) Save() error {
	claimed := d.Claim()
	d.mu.Lock()
	err := d.beginSave(claimed)
	d.mu.Unlock()
	if err != nil {
		return err
	}
	return d.save(true)
}

// BackgroundSave begins a snapshot in the background. The error is ErrStopping, ErrSaving, ErrRewriting (then, with schedule, the snapshot
// follows the rewrite), or why the directory could not be locked.
func (d *Disk) BackgroundSave(schedule bool) error {
	claimed := d.Claim()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopping.Load() {
		return ErrStopping
	}
	if d.status.Rewriting && !d.status.Saving {
		d.status.SaveScheduled = d.status.SaveScheduled || schedule
		return ErrRewriting
	}
	if err := d.beginSave(claimed); err != nil {
		return err
	}
	d.work.Go(func() {
		defer d.endOnPanic("the snapshot")
		_ = d.save(false)
	})
	return nil
}

// ScheduleSave asks for a snapshot at the next Tick, or after the rewrite that is under way. The error is ErrSaving, or why the
// directory could not be locked.
func (d *Disk) ScheduleSave() error {
	return d.schedule(&d.status.SaveScheduled, &d.status.Saving, ErrSaving)
}

// beginSave records that a snapshot begins, or that it failed because the directory could not be locked. The Disk is locked.
func (d *Disk) beginSave(claimed error) error {
	if d.status.Saving {
		return ErrSaving
	}
	d.status.Saving, d.status.SaveScheduled = true, false
	d.status.SaveBeganNS = d.o.Clock()
	if claimed != nil {
		d.saveFailed(claimed)
	}
	return claimed
}

// saveFailed records that a snapshot failed. The Disk is locked.
func (d *Disk) saveFailed(err error) {
	d.status.Saving, d.status.SaveErr = false, err
	d.log.Error("the snapshot failed; the previous one is unchanged", "file", d.paths.Snapshot, "error", err)
}

func (d *Disk) save(direct bool) error {
	changes := d.store.Stats(d.o.Clock()).Changes
	keys, size, err := d.writeRDB(direct)
	nowNS := d.o.Clock()
	d.mu.Lock()
	defer d.mu.Unlock()
	st := &d.status
	st.SaveTookNS = nowNS - st.SaveBeganNS
	if err != nil {
		d.saveFailed(err)
		return err
	}
	st.Saving, st.SaveErr = false, nil
	st.LastSaveNS, d.marked = nowNS, changes
	d.snapshot.known, d.snapshot.gone = true, false
	st.Saves++
	d.log.Info("snapshot taken", "file", d.paths.Snapshot, "keys", keys, "bytes", size,
		"took", time.Duration(st.SaveTookNS).Round(time.Millisecond))
	return nil
}

// writeRDB writes a new snapshot and puts it into the place of the old one.
func (d *Disk) writeRDB(direct bool) (keys, size int64, err error) {
	nowNS := d.o.Clock()
	temp, err := d.dir.WriteTemp("rdb", func(f dir.File) (err error) {
		defer d.catchPanic("the snapshot", &err)
		w := rdb.NewWriter(f, d.wallNS(), int64(d.store.Len(nowNS)), "1")
		d.eachSetting(func(setting policy.Setting, text string) {
			w.Aux(rdb.SettingNames[setting.Kind], text+" "+setting.Name)
		})
		add := func(key []byte, st store.Value) bool { w.Add(key, st); return w.Full() }
		if err := d.export(direct, add, w.Flush); err != nil {
			return err
		}
		err = w.Finish(d.wallNS())
		keys, size = w.Keys, w.Size
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	if err := d.dir.Place(temp, d.paths.Snapshot); err != nil {
		return 0, 0, fmt.Errorf("put the snapshot into its place: %w", err)
	}
	return keys, size, nil
}

// saveDue reports whether a save point is reached, or a scheduled snapshot can begin.
func (d *Disk) saveDue(nowNS int64) bool {
	points := d.o.SavePoints()
	d.mu.Lock()
	defer d.mu.Unlock()
	st := &d.status
	if st.Saving || st.Rewriting {
		return false
	}
	if st.SaveScheduled {
		return true
	}
	if len(points) == 0 || st.SaveErr != nil && nowNS-st.SaveBeganNS < int64(saveRetry) {
		return false
	}
	if d.snapshot.gone {
		return true
	}
	changes := d.store.Stats(nowNS).Changes - d.marked
	for _, p := range points {
		if changes >= max(p.Changes, 1) && nowNS-st.LastSaveNS >= int64(p.After) {
			return true
		}
	}
	return false
}
