package resp

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"celld/resp/door"
	"celld/resp/session/sessiontest"
)

var inside = door.Caller{Addr: "192.0.2.1:7", Trusted: true}

// ask makes an door.Ask of key limit [option value]...
func ask(key, limit string, options ...door.Option) door.Ask {
	return door.Ask{Key: key, Limits: []string{limit}, Options: options}
}

// told is how calls were answered: what was granted, or the error.
func (w *world) told(ctx context.Context, asks ...door.Ask) (told string, err error) {
	err = w.Door.Take(ctx, inside, asks, func(t *door.Taken, err error) {
		if err != nil {
			told += fmt.Sprintf("%v; ", err)
		} else {
			told += fmt.Sprintf("%d %d; ", t.Granted, t.Limits[t.Binding].Remaining)
		}
	})
	return told, err
}

// Where replies wait for the disk, those within the process do, too.
func TestDoNeedsTheDisk(t *testing.T) {
	disk := &sessiontest.Disk{}
	w := newWorldOn(t, disk, t.TempDir())
	if err := w.loadAll(nil); err != nil {
		t.Fatal(err)
	}
	got, err := w.told(t.Context(), ask("k", "5/1h"))
	if got != "1 4; " || err != nil || disk.Syncs.Load() == 0 {
		t.Errorf("%q, %v after %d syncs", got, err, disk.Syncs.Load())
	}
	var lease int64
	leases := []door.Ask{ask("k", "5/1h", door.Option{Name: "LEASE", N: 5000})}
	err = w.Door.Take(t.Context(), inside, leases, func(t *door.Taken, _ error) { lease = t.Lease })
	syncs := disk.Syncs.Load()
	did, wrong := w.Door.ChangeLease(inside, "cl.release", "k", lease)
	if !did || err != nil || wrong != nil || disk.Syncs.Load() == syncs {
		t.Errorf("%v, %v, %v after %d syncs", did, err, wrong, disk.Syncs.Load()-syncs)
	}
	syncs = disk.Syncs.Load()
	if _, err := w.Door.Show(inside, "k"); err != nil || disk.Syncs.Load() != syncs {
		t.Errorf("to look: %v after %d syncs", err, disk.Syncs.Load()-syncs)
	}
	disk.Full.Store(true)
	if _, err = w.told(t.Context(), ask("k", "5/1h")); err == nil || !strings.HasPrefix(err.Error(), "MISCONF ") {
		t.Errorf("%v", err)
	}
	if _, err := w.Door.ChangeLease(inside, "cl.release", "k", 1); err == nil || !strings.HasPrefix(err.Error(), "MISCONF ") {
		t.Errorf("%v", err)
	}
	if _, err := w.Door.Show(inside, "k"); err != nil {
		t.Error(err)
	}
}
