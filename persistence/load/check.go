package load

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"celld/persistence/aof"
	"celld/persistence/rdb"

	"golang.org/x/sys/unix"
)

// Check says what is wrong with the directory, and with the first bytes of the file that Load would read. It writes nothing, and locks
// nothing: another process may use the directory. Call it in place of Load.
func (l *Loader) Check() error {
	if err := unix.Access(l.Dir.Clean(), unix.R_OK|unix.W_OK|unix.X_OK); err != nil {
		return fmt.Errorf("cannot write to the directory of the data (--dir): %s: %w", l.Dir.Clean(), err)
	}
	if l.AppendOnly {
		if there, err := l.begins(l.Paths.AppendOnly, true); there || err != nil {
			return err
		}
		paths, found, err := l.readManifest()
		for _, path := range paths {
			switch there, bad := l.begins(path, true); {
			case bad != nil:
				err = errors.Join(err, bad)
			case !there:
				err = errors.Join(err, l.missing(path))
			}
		}
		if found || err != nil {
			return err
		}
	}
	_, err := l.begins(l.Paths.Snapshot, false)
	return err
}

// begins reads the start of a file, and reports whether there is one. Append-only files may begin as snapshots do, and may be empty.
func (l *Loader) begins(path string, appendOnly bool) (there bool, err error) {
	f, err := l.Dir.FS.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	start := make([]byte, 4<<10)
	n, err := io.ReadFull(f, start)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return true, fmt.Errorf("%s: %w", path, err)
	}
	if start = start[:n]; appendOnly && !rdb.IsFile(start) {
		if _, _, what := aof.ParseCommand(start, nil); what != "" {
			return true, fmt.Errorf("%s: damaged at byte 0: %s", path, what)
		}
		return true, nil
	}
	if n < rdb.HeaderSize {
		return true, fmt.Errorf("%s: damaged at byte 0: it ends in the middle", path)
	}
	if _, err := rdb.Version(start[:rdb.HeaderSize]); err != nil {
		return true, fmt.Errorf("%s: %w", path, err)
	}
	return true, nil
}
