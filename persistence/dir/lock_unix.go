//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package dir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Lock opens the file for writing, as NFS requires, or for reading if another user owns it.
func (System) Lock(name string) (File, error) {
	f, err := open(name, os.O_RDWR|os.O_CREATE)
	if errors.Is(err, fs.ErrPermission) {
		var readErr error
		if f, readErr = open(name, os.O_RDONLY); readErr == nil {
			err = nil
		}
	}
	if err != nil {
		return nil, err
	}
	return f, lock(f.(systemFile), func(fd int) error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
}

// lock locks an open file. If another process holds the lock, it closes the file.
func lock(f systemFile, flock func(fd int) error) error {
	for {
		switch err := flock(int(f.Fd())); err {
		case nil:
			return nil
		case unix.EINTR:
		case unix.EWOULDBLOCK:
			f.Close()
			return ErrInUse
		default: // ENOLCK, EOPNOTSUPP, ENOSYS, EBADF (NFS, opened to read)
			return fmt.Errorf("%w: %w", ErrNoLocks, os.NewSyscallError("flock", err))
		}
	}
}
