package persistence

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"
)

// lockName is the file whose lock says which process has the directory. It is empty. celld never removes it, as two processes
// that each create it anew would each lock a file of their own. A lock on the directory itself would need no file, but on NFS
// and other network file systems it only holds within one host.
const lockName = "celld.lock"

// lockEvery is the pause between two tries to get a lock that another process has.
const lockEvery = 50 * time.Millisecond

// ErrInUse means that another process has locked the directory.
var ErrInUse = errors.New("another process uses the directory")

// errNoLocks means that the file system has no locks. Lock has opened the file all the same.
var errNoLocks = errors.New("the file system has no locks")

// dirLock is the lock on the directory. It ends with the process, however that ends: Go opens files so that no child inherits
// them.
type dirLock struct {
	sync.Mutex
	file File // nil: not taken
}

func (l *dirLock) taken() bool {
	l.Lock()
	defer l.Unlock()
	return l.file != nil
}

func (l *dirLock) release() {
	l.Lock()
	defer l.Unlock()
	if l.file != nil {
		l.file.Close()
		l.file = nil
	}
}

func (d *Disk) lockPath() string { return filepath.Join(d.o.Dir, lockName) }

// Claim locks the directory for this process until Close, or says why it cannot. It does not wait. If this process has the
// lock, Claim checks that the locked file is still in place. If it is not, Claim locks the directory again, as another
// process could have.
func (d *Disk) Claim() error {
	l := &d.lock
	l.Lock()
	defer l.Unlock()
	if l.file != nil {
		same, err := d.files.Names(d.lockPath(), l.file)
		if err != nil {
			return fmt.Errorf("look for the lock of the directory of the data (--dir): %w", err)
		}
		if same {
			return nil
		}
	}
	for tries := 0; ; tries++ {
		f, err := d.files.Lock(d.lockPath())
		switch {
		case errors.Is(err, ErrInUse):
			return fmt.Errorf("%w %s (--dir)", ErrInUse, d.absDir())
		case errors.Is(err, errNoLocks):
			d.log.Warn("the directory cannot be locked; see to it that no other process uses it", "dir", d.absDir(), "error", err)
		case err != nil:
			return fmt.Errorf("cannot write to the directory of the data (--dir): %w", err)
		}
		same, err := d.files.Names(d.lockPath(), f)
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
		if l.file != nil {
			l.file.Close()
		}
		l.file = f
		return nil
	}
}

// waitForDir locks the directory. If another process has it, waitForDir waits for LockWait.
func (d *Disk) waitForDir() error {
	began := time.Now()
	for told := false; ; told = true {
		err := d.Claim()
		left := d.o.LockWait - time.Since(began)
		switch {
		case !errors.Is(err, ErrInUse):
			return err
		case d.stopping.Load():
			return ErrStopping
		case d.o.LockWait == 0:
			return err
		case left <= 0:
			return fmt.Errorf("%w; waited %v (--dir-lock-wait)", err, d.o.LockWait)
		case !told:
			d.log.Info("waiting for another process to leave the directory", "dir", d.absDir(), "most", d.o.LockWait)
		}
		time.Sleep(min(left, lockEvery))
	}
}

// absDir returns the absolute path of the directory, for messages.
func (d *Disk) absDir() string {
	path, err := filepath.Abs(d.dir())
	if err != nil {
		return d.dir()
	}
	return path
}
