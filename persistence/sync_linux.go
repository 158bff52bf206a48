package persistence

import (
	"os"

	"golang.org/x/sys/unix"
)

// dataSync is fdatasync: the time of the last change need not be on the disk, which spares a journalling file system half of
// its work.
func dataSync(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}

// dropCache is a hint; whether it is taken makes no difference to what a file holds.
func dropCache(f *os.File, at, n int64) {
	_ = unix.Fadvise(int(f.Fd()), at, n, unix.FADV_DONTNEED)
}
