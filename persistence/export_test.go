package persistence

// Wait waits for what goes on in the background.
func (d *Disk) Wait() { d.work.Wait() }

// Release ends the lock on the directory, as the end of the process does.
func (d *Disk) Release() { d.dir.Release() }

// Writing reports whether a round is under way that gathers and writes changes.
func (d *Disk) Writing() bool { return d.aof != nil && d.aof.writing.Load() }

// OnExit is called in place of os.Exit.
func (d *Disk) OnExit(exit func(code int)) { d.exit = exit }
