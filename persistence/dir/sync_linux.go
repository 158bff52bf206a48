package dir

import (
	"os"

	"golang.org/x/sys/unix"
)

// dataSync is fdatasync. It does not write the time of the last change. That saves a journalling file system half of its work.
func dataSync(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}

// dropCache is a hint to the kernel. The content of the file does not depend on it.
func dropCache(f *os.File, at, n int64) {
	_ = unix.Fadvise(int(f.Fd()), at, n, unix.FADV_DONTNEED)
}
