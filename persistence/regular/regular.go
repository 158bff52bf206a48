// Package regular opens the files that settings name, if they are regular files or lead to such by links, and replaces them. It does not
// know what is in them.
//
// Anything else would do harm: to open a FIFO waits for a writer, /dev/zero never ends, and a pipe can be read once. celld reads most of
// its files again while it runs. It would then find a file without users (as Redis does at ACL LOAD) or no certificate.
package regular

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// most is the most bytes that ReadFile reads.
const most = 16 << 20

// Open opens a file to read. Errors name it.
func Open(path string) (*os.File, error) { return OpenFile(path, os.O_RDONLY, 0) }

// OpenFile is os.OpenFile. With os.O_CREATE there may be no file yet.
func OpenFile(path string, flags int, perm fs.FileMode) (*os.File, error) {
	// A look before opening is enough, as nobody else may change these files. To open without waiting, and then look, would fail while
	// another process holds a lease on the file.
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("it is %s, not a regular file", kind(info.Mode()))}
	}
	return os.OpenFile(path, flags, perm)
}

// ReadFile is os.ReadFile of up to 16 MB.
func ReadFile(path string) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && len(text) > most {
		err = tooLarge(path)
	}
	return text, err
}

func tooLarge(path string) error {
	return &fs.PathError{Op: "read", Path: path, Err: errors.New("it is larger than 16 MB")}
}

func kind(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}
