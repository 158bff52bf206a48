package load

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"celld/persistence/aof"
	"celld/persistence/rdb"
	"celld/persistence/source"
)

// open opens a file for reading. The source is nil if there is no such file.
func (r *run) open(path string) (*source.Source, func(), error) {
	f, err := r.Dir.FS.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	r.result.File = path
	r.result.Files = append(r.result.Files, path)
	r.progress.total.Add(info.Size())
	return source.New(f, info.Size(), &r.progress.done), func() { f.Forget(0, info.Size()); f.Close() }, nil
}

func (r *run) loadRDB(path string) (found bool, err error) {
	src, closeFile, err := r.open(path)
	if src == nil {
		return false, err
	}
	defer closeFile()
	return true, r.readRDB(src, path)
}

func (r *run) readRDB(src *source.Source, path string) error {
	saved, err := rdb.Read(src, r)
	if err != nil {
		return fmt.Errorf("%s: %w. Put a good copy in its place, or move it away to start without", path, err)
	}
	r.savedNS = max(r.savedNS, saved)
	return nil
}

// loadAOF reads an append-only file. Of several, only the last may be torn: the later ones build on the earlier ones.
func (r *run) loadAOF(path string, last bool) (found bool, err error) {
	src, closeFile, err := r.open(path)
	if src == nil {
		return false, err
	}
	defer closeFile()
	if src.Size() == 0 {
		return true, nil
	}
	if err := src.Fill(rdb.HeaderSize); err != nil {
		return true, err
	}
	if rdb.IsFile(src.Rest()) {
		if err := r.readRDB(src, path); err != nil {
			return true, err
		}
	}
	crc, saved, err := aof.Read(src, r.command)
	r.result.TailCRC, r.savedNS = crc, max(r.savedNS, saved)
	var d *aof.DamageError
	switch {
	case err == nil:
		return true, nil
	case !errors.As(err, &d):
		return true, fmt.Errorf("%s: %w", path, err)
	case d.Form:
		return true, fmt.Errorf("%s: %w. To cut it off there: redis-check-aof --fix %s", path, err, path)
	case !d.Torn:
		return true, fmt.Errorf("%s: %w. To cut it off there: truncate -s %d %s", path, err, d.At, path)
	case !last:
		return true, fmt.Errorf("%s: %w, and it is not the last of the append-only files. Put a good copy in its place", path, err)
	case !r.Truncated:
		return true, fmt.Errorf("%s: %w. To cut it off there: redis-check-aof --fix %s, or --aof-load-truncated yes", path, err, path)
	}
	r.result.Rewrite = r.result.Rewrite || d.Open
	r.Log.Warn("the append-only file ends in the middle of a command, which is cut off", "file", path, "at", d.At, "bytes_lost", src.Size()-d.At)
	f, err := r.Dir.FS.Append(path)
	if err != nil {
		return true, err
	}
	defer f.Close()
	return true, f.Truncate(d.At)
}

// loadManifest reads the append-only files of Redis 7 and later: a base and what followed, as their manifest lists them.
func (r *run) loadManifest() (found bool, err error) {
	paths, found, err := r.readManifest()
	if err != nil {
		return found, err
	}
	for i, path := range paths {
		switch there, err := r.loadAOF(path, i == len(paths)-1); {
		case err != nil:
			return true, err
		case !there:
			return true, r.missing(path)
		}
	}
	return found, nil
}

// missing is the error for a file that the manifest lists and that is not there.
func (l *Loader) missing(path string) error {
	return fmt.Errorf("%s is missing, which %s lists", path, filepath.Base(l.Paths.Manifest))
}

// readManifest returns the paths of the files in the manifest, if there is one.
func (l *Loader) readManifest() (paths []string, found bool, err error) {
	f, err := l.Dir.FS.Open(l.Paths.Manifest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, true, err
	}
	text := make([]byte, min(info.Size(), 1<<20))
	if _, err := f.ReadAt(text, 0); err != nil {
		return nil, true, err
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		name, kind := "", ""
		for i := 0; i+1 < len(words); i += 2 {
			switch words[i] {
			case "file":
				name = words[i+1]
			case "type":
				kind = words[i+1]
			}
		}
		if kind != "b" && kind != "i" { // h: history, which Redis is about to delete
			continue
		}
		paths = append(paths, filepath.Join(filepath.Dir(l.Paths.Manifest), filepath.Base(name)))
	}
	return paths, true, nil
}
