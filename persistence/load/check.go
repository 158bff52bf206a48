package load

import (
	"errors"
	"fmt"
	"io"

	"celld/persistence/aof"
	"celld/persistence/rdb"
	"celld/persistence/regular"
)

// Check says what is wrong with the directory, and with the first bytes of the file that Load would read. It neither writes nor locks:
// another process may use the directory. Call it in place of Load.
func (l *Loader) Check() error {
	if err := regular.Writable(l.Dir.Clean()); err != nil {
		return fmt.Errorf("cannot write to the directory of the data (--dir): %s: %w", l.Dir.Clean(), err)
	}
	paths, appendOnly, err := l.files()
	for _, path := range paths {
		err = errors.Join(err, l.checkStart(path, appendOnly))
	}
	return err
}

// checkStart reads the start of a file. Append-only files may begin as snapshots do, and may be empty.
func (l *Loader) checkStart(path string, appendOnly bool) error {
	f, err := l.open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	start := make([]byte, 4<<10)
	n, err := io.ReadFull(f, start)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return fmt.Errorf("%s: %w", path, err)
	}
	what := ""
	switch start = start[:n]; {
	case appendOnly && !rdb.IsFile(start):
		_, _, what = aof.ParseCommand(start, nil)
	case n < rdb.HeaderSize:
		what = "it ends in the middle"
	default:
		if _, err := rdb.Version(start[:rdb.HeaderSize]); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	if what != "" {
		return fmt.Errorf("%s: damaged at byte 0: %s", path, what)
	}
	return nil
}
