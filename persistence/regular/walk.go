package regular

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// mostDepth is how deep directories may lie in each other: links may lead round in a circle.
const mostDepth = 16

// Walk reads a file, or all files in a directory and below, in the order of their names, up to 16 MB. It follows links, as a ConfigMap's
// files are links. Names in a directory that begin with a dot are left out: there Kubernetes and editors keep what is not in force. The
// error joins one for each file that cannot be read; the others are visited.
func Walk(path string, visit func(name string, text []byte)) error {
	w := walk{visit: visit, left: most}
	return errors.Join(w.enter(path, 0), errors.Join(w.unread...))
}

type walk struct {
	visit  func(name string, text []byte)
	left   int // bytes
	unread []error
}

// enter visits a file or a directory. Its error ends all.
func (w *walk) enter(path string, depth int) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return w.directory(path, depth)
	case err == nil && info.Mode().IsRegular():
		if info.Size() > int64(w.left) {
			return errors.New("the files are longer than 16 MB")
		}
		var text []byte
		if text, err = ReadFile(path); err == nil {
			w.left -= len(text)
			w.visit(path, text)
			return nil
		}
	case err == nil:
		err = errors.New(path + " is neither a file nor a directory")
	}
	w.unread = append(w.unread, err)
	return nil
}

func (w *walk) directory(path string, depth int) error {
	if depth > mostDepth {
		return errors.New(path + ": too many directories in each other")
	}
	entries, err := os.ReadDir(path) // sorted
	if err != nil {
		w.unread = append(w.unread, err)
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		if err := w.enter(filepath.Join(path, entry.Name()), depth+1); err != nil {
			return err
		}
	}
	return nil
}
