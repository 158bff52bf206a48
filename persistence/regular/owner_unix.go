//go:build unix

package regular

import (
	"os"
	"syscall"
)

// keepOwner gives a file the owner and group of another. Only root may give a file away, others may set a group that they are in.
func keepOwner(file *os.File, as os.FileInfo) {
	of, ok := as.Sys().(*syscall.Stat_t)
	if ok && file.Chown(int(of.Uid), int(of.Gid)) != nil {
		_ = file.Chown(-1, int(of.Gid))
	}
}
