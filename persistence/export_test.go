package persistence

// ErrNotLasting is what a file system's Rename wraps where only the directory could not be synced.
var ErrNotLasting = errNotLasting

// Wait waits for what goes on in the background.
func (d *Disk) Wait() { d.work.Wait() }
