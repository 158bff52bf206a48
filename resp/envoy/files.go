package envoy

import (
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"celld/resp/envoy/domains"
)

// watcher keeps a configuration up to date with its files. It looks at what they hold, and does not wait for the system to tell of a
// change: so it does not matter who swaps which link. envoyproxy/ratelimit waits, and misses a file that is moved away.
type watcher struct {
	path  string
	merge bool

	mu      sync.Mutex
	current [sha256.Size]byte // what was read last
	suspect [sha256.Size]byte // what the last look has seen
}

// look returns a configuration that is new. A content must be seen by two looks, as it may be just half written; hurry takes it at once.
// changed is false if there is none. The error joins one for each mistake; what holds is no longer new then, too.
func (w *watcher) look(hurry bool) (set *domains.Set, changed bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	files, err := readFiles(w.path)
	digest := digestOf(files, err)
	seen := digest == w.suspect
	w.suspect = digest
	if digest == w.current || !seen && !hurry {
		return nil, false, nil
	}
	w.current = digest
	if err != nil {
		return nil, true, err
	}
	set, err = domains.Parse(files, domains.Options{Merge: w.merge})
	return set, true, err
}

// digestOf tells contents apart.
func digestOf(files []domains.File, err error) (digest [sha256.Size]byte) {
	h := sha256.New()
	part := func(text []byte) {
		sum := sha256.Sum256(text)
		h.Write(sum[:])
	}
	for _, file := range files {
		part([]byte(file.Name))
		part(file.Text)
	}
	if err != nil {
		part([]byte(err.Error()))
	}
	h.Sum(digest[:0])
	return digest
}

// mostText is how long all files together may be, in bytes.
const mostText = 16 << 20

// readFiles reads a file, or all files in a directory and below, in the order of their names. It follows links, as a ConfigMap's files are
// links. Names that begin with a dot are left out: there Kubernetes and editors keep what is not in force.
func readFiles(path string) (files []domains.File, err error) {
	left := int64(mostText)
	err = walk(path, 0, func(name string, info fs.FileInfo) error {
		if left -= info.Size(); left < 0 {
			return errors.New("the files are longer than 16 MB")
		}
		text, err := os.ReadFile(name)
		if err == nil {
			files = append(files, domains.File{Name: name, Text: text})
		}
		return err
	})
	return files, err
}

// mostDepth is how deep directories may lie in each other: links may lead round in a circle.
const mostDepth = 16

// walk visits all files.
func walk(path string, depth int, visit func(name string, info fs.FileInfo) error) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.Mode().IsRegular():
		return visit(path, info)
	case !info.IsDir():
		return errors.New(path + " is neither a file nor a directory")
	case depth > mostDepth:
		return errors.New(path + ": too many directories in each other")
	}
	entries, err := os.ReadDir(path) // sorted
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		if err := walk(filepath.Join(path, entry.Name()), depth+1, visit); err != nil {
			return err
		}
	}
	return nil
}
