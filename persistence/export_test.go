package persistence

// ErrNotLasting is what a file system's Rename wraps where only the directory could not be synced.
var ErrNotLasting = errNotLasting

// ErrNoLocks is what a file system's Lock wraps that has none.
var ErrNoLocks = errNoLocks

// Wait waits for what goes on in the background.
func (d *Disk) Wait() { d.work.Wait() }

// Release ends the lock on the directory, as the end of the process does.
func (d *Disk) Release() { d.lock.release() }

// OnExit is called in place of os.Exit.
func (d *Disk) OnExit(exit func(code int)) { d.exit = exit }

// Bare is a file without its pacing.
func Bare(f File) File {
	if p, ok := f.(*paced); ok {
		return p.File
	}
	return f
}

// System is the file system of the machine.
var System FileSystem = system{}

// Unfetched is how many errors are kept for rounds that have not fetched theirs.
func (d *Disk) Unfetched() int {
	c := &d.aof.commits
	c.Lock()
	defer c.Unlock()
	return len(c.failed)
}
