package dir

import (
	"errors"
	"fmt"
	"time"
)

// lockName is the file whose lock says which process uses the directory. It is empty. celld never removes it: two processes that each
// create it anew would each lock a file of their own. A lock on the directory itself would need no file, but on NFS and other network
// file systems it only holds within one host.
const lockName = "celld.lock"

// lockEvery is the pause between two tries to get a lock that another process holds.
const lockEvery = 50 * time.Millisecond

// ErrInUse means that another process has locked the directory.
var ErrInUse = errors.New("another process uses the directory")

// ErrNoLocks means that the file system has no locks. Lock has opened the file nevertheless.
var ErrNoLocks = errors.New("the file system has no locks")

func (d *Dir) lockPath() string { return d.Join(lockName) }

// Claimed reports whether this process holds, or held, the lock.
func (d *Dir) Claimed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.locked != nil
}

// Release unlocks the directory, if it is locked.
func (d *Dir) Release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.locked != nil {
		d.locked.Close()
		d.locked = nil
	}
}

// Claim locks the directory for this process until Release, or says why it cannot. It does not wait. If this process holds the lock, Claim
// checks that the locked file is still in place. If it is not, Claim locks the directory again, as another process could have.
func (d *Dir) Claim() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.locked != nil {
		same, err := d.FS.Names(d.lockPath(), d.locked)
		if err != nil {
			return fmt.Errorf("look for the lock of the directory of the data (--dir): %w", err)
		}
		if same {
			return nil
		}
	}
	for tries := 0; ; tries++ {
		f, err := d.FS.Lock(d.lockPath())
		switch {
		case errors.Is(err, ErrInUse):
			return fmt.Errorf("%w %s (--dir)", ErrInUse, d.Abs())
		case errors.Is(err, ErrNoLocks):
			d.Log.Warn("the directory cannot be locked; make sure that no other process uses it", "dir", d.Abs(), "error", err)
		case err != nil:
			return fmt.Errorf("cannot write to the directory of the data (--dir): %w", err)
		}
		same, err := d.FS.Names(d.lockPath(), f)
		if !same && err == nil {
			err = errors.New("the file is removed again and again")
			if tries < 10 { // another process has removed it between the two calls
				f.Close()
				continue
			}
		}
		if err != nil {
			f.Close()
			return fmt.Errorf("lock %s: %w", d.lockPath(), err)
		}
		if d.locked != nil {
			d.locked.Close()
		}
		d.locked = f
		return nil
	}
}

// Wait locks the directory. If another process uses it, Wait waits for so long, or until stopped returns true. The errors are those of
// Claim.
func (d *Dir) Wait(most time.Duration, stopped func() bool) error {
	began := time.Now()
	for told := false; ; told = true {
		err := d.Claim()
		left := most - time.Since(began)
		switch {
		case !errors.Is(err, ErrInUse):
			return err
		case most == 0, stopped():
			return err
		case left <= 0:
			return fmt.Errorf("%w; waited %v (--dir-lock-wait)", err, most)
		case !told:
			d.Log.Info("waiting for another process to leave the directory", "dir", d.Abs(), "most", most)
		}
		time.Sleep(min(left, lockEvery))
	}
}
