package load

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"celld/persistence/aof"
	"celld/persistence/dir"
	"celld/persistence/rdb"
	"celld/persistence/source"
)

// files are the paths of what Load reads, in this order, and whether they are append-only files. Redis 7 and later have several: a base and
// what followed, as their manifest lists them.
func (l *Loader) files() (paths []string, appendOnly bool, err error) {
	if l.AppendOnly {
		if l.Dir.Has(l.Paths.AppendOnly) {
			return []string{l.Paths.AppendOnly}, true, nil
		}
		if l.Dir.Has(l.Paths.Manifest) {
			paths, err = l.readManifest()
			return paths, true, err
		}
	}
	if l.Dir.Has(l.Paths.Snapshot) {
		paths = []string{l.Paths.Snapshot}
	}
	return paths, false, nil
}

// open opens one of those files for reading.
func (l *Loader) open(path string) (dir.File, error) {
	f, err := l.Dir.FS.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s, which %s lists, is missing", path, filepath.Base(l.Paths.Manifest))
	}
	return f, err
}

// read reads a file. Of several append-only files, only the last may be torn: the later ones build on the earlier ones.
func (r *run) read(path string, appendOnly, last bool) error {
	f, err := r.open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	defer f.Forget(0, size)
	r.result.File = path
	r.result.Files = append(r.result.Files, path)
	r.progress.total.Add(size)
	src := source.New(f, size, &r.progress.done)
	if !appendOnly {
		return r.readRDB(src, path)
	}
	return r.readAOF(src, path, last)
}

func (r *run) readRDB(src *source.Source, path string) error {
	saved, err := rdb.Read(src, r)
	if err != nil {
		return fmt.Errorf("%s: %w. Put a good copy in its place, or move it away to start without", path, err)
	}
	r.savedNS = max(r.savedNS, saved)
	return nil
}

// readAOF reads an append-only file, which may begin as a snapshot does.
func (r *run) readAOF(src *source.Source, path string, last bool) error {
	if src.Size() == 0 {
		return nil
	}
	if err := src.Fill(rdb.HeaderSize); err != nil {
		return err
	}
	if rdb.IsFile(src.Rest()) {
		if err := r.readRDB(src, path); err != nil {
			return err
		}
	}
	crc, saved, err := aof.Read(src, r.command)
	r.result.TailCRC, r.savedNS = crc, max(r.savedNS, saved)
	var d *aof.DamageError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &d):
		return fmt.Errorf("%s: %w", path, err)
	case d.Form:
		return fmt.Errorf("%s: %w. To cut it off there: redis-check-aof --fix %s", path, err, path)
	case !d.Torn:
		return fmt.Errorf("%s: %w. To cut it off there: truncate -s %d %s", path, err, d.At, path)
	case !last:
		return fmt.Errorf("%s: %w, and it is not the last of the append-only files. Put a good copy in its place", path, err)
	case !r.Truncated:
		return fmt.Errorf("%s: %w. To cut it off there: redis-check-aof --fix %s, or --aof-load-truncated yes", path, err, path)
	}
	r.Log.Warn("the append-only file ends in the middle of a command, which is cut off", "file", path, "at", d.At,
		"bytes_lost", src.Size()-d.At)
	f, err := r.Dir.FS.Append(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Truncate(d.At)
}

// readManifest returns the paths of the files in the manifest.
func (l *Loader) readManifest() (paths []string, err error) {
	f, err := l.Dir.FS.Open(l.Paths.Manifest)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil {
		return nil, err
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
		if kind == "b" || kind == "i" { // h: history, which Redis is about to delete
			paths = append(paths, filepath.Join(filepath.Dir(l.Paths.Manifest), filepath.Base(name)))
		}
	}
	return paths, nil
}
