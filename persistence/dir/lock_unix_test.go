//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package dir

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// The answer of a file system without locks differs from that of a lock that is taken.
func TestAnswersOfFlock(t *testing.T) {
	for answer, want := range map[error]error{
		nil: nil, unix.EWOULDBLOCK: ErrInUse, unix.ENOLCK: ErrNoLocks, unix.EOPNOTSUPP: ErrNoLocks, unix.ENOSYS: ErrNoLocks,
		unix.EBADF: ErrNoLocks,
	} {
		f, err := open(filepath.Join(t.TempDir(), "lock"), os.O_RDWR|os.O_CREATE)
		if err != nil {
			t.Fatal(err)
		}
		calls := 0
		err = lock(f.(systemFile), func(int) error {
			if calls++; calls == 1 {
				return unix.EINTR
			}
			return answer
		})
		_, statErr := f.Stat()
		if !errors.Is(err, want) || (err == nil) != (want == nil) || (statErr != nil) != (want == ErrInUse) {
			t.Errorf("%v: %v, want %v; the file: %v", answer, err, want, statErr)
		}
		f.Close()
	}
}
