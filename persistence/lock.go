package persistence

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"
)

// lockName is the file whose lock says which process has the directory. It is empty, and celld never removes it: of two processes
// that each made it anew, each would lock a file of its own. A lock on the directory itself would need no file, but on NFS
// and other network file systems that one holds within one host only.
const lockName = "celld.lock"

// lockEvery is how often a start asks for the lock that another process has.
const lockEvery = 50 * time.Millisecond

// ErrInUse is that another process has the directory.
var ErrInUse = errors.New("another process uses the directory")

// errNoLocks is that the file system has no locks. The file is open all the same.
var errNoLocks = errors.New("the file system has no locks")

// dirLock is the lock on the directory. The kernel ends it with the process, however that ends: Go opens files so that
// no child inherits them.
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

// Claim takes the directory for this process alone until it ends, or says why it cannot. It does not wait. Where the lock is taken
// already it looks whether the file is still there: else it is taken anew, as somebody else could take it.
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
			if tries < 10 { // somebody removed it between the two calls
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

// waitForDir takes the directory, and waits for a process that has it for as long as the options say.
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

// absDir is the directory as a person finds it.
func (d *Disk) absDir() string {
	path, err := filepath.Abs(d.dir())
	if err != nil {
		return d.dir()
	}
	return path
}
