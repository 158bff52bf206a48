package persistence

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"celld/persistence/aof"
	"celld/persistence/rdb"
	"celld/persistence/source"
	"celld/store"
	"celld/store/memory"
	"celld/store/policy"
)

// Loaded is what Load found.
type Loaded struct {
	File    string           // path of the last file that was read; "": none
	Files   []string         // paths of all files that were read
	NotRead []string         // paths of files that exist but were ignored, as another one has precedence
	Keys    int64            // in the store after loading
	Expired int64            // keys that had expired
	Others  map[string]int64 // what is no limit, counted by kind; nil: nothing
	Took    time.Duration
}

// loader puts what a file has into the store.
type loader struct {
	disk    *Disk
	nowNS   int64
	result  Loaded
	savedNS int64 // the latest time in the file, Unix nanoseconds
	db      int
	apply   func(args [][]byte) error

	state store.Value
	put   func(store.Value, bool) (store.Value, store.Action)
}

// Load locks the directory for this process, and reads its files into the store: the append-only file, if that is on and
// exists, otherwise the snapshot. apply runs the commands that Load does not know itself, as Redis's own files may have them;
// an error from it only counts the command in Others. Meanwhile Loading tells the progress.
//
// The error is ErrInUse if another process has the directory, ErrStopping after Stop, or says which file is damaged and how
// to repair it.
func (d *Disk) Load(apply func(args [][]byte) error) (Loaded, error) {
	l := &loader{disk: d, nowNS: d.o.Clock(), apply: apply}
	l.put = func(store.Value, bool) (store.Value, store.Action) {
		if l.state.TAT <= uint64(l.nowNS) {
			return l.state, store.Delete
		}
		return l.state, store.Put
	}
	d.loading.beganNS.Store(l.nowNS)
	if d.On() {
		if err := d.waitForDir(); err != nil {
			return Loaded{}, err
		}
	}
	began := time.Now()
	d.loading.beganNS.Store(d.o.Clock())
	stop := d.logProgress()
	err := l.load()
	stop()
	if err != nil {
		return Loaded{}, err
	}
	if back := l.savedNS - l.nowNS; back > 0 {
		d.log.Warn("the clock is behind that of the file, so all limits are set back as much", "file", l.result.File, "by", time.Duration(back))
		d.setBack(back, l.nowNS)
		d.rewriteAtStart = d.o.AppendOnly // otherwise the next start would set back later states as well
	}
	if d.rewriteAtStart {
		d.tailCRC = 0 // the new file ends in a stamp
	}
	d.store.DrainSettings(func(policy.Change) {}) // what was just read need not be written
	for d.store.Drain(func(memory.Change) {}) {
	}
	l.result.NotRead = l.notRead()
	l.result.Keys = int64(d.store.Len(l.nowNS))
	l.result.Took = time.Since(began)
	d.mu.Lock()
	d.status.Loaded = l.result
	d.snapshot.known = slices.Contains(l.result.Files, d.rdbPath())
	d.mu.Unlock()
	return l.result, nil
}

func (l *loader) load() error {
	d := l.disk
	if d.o.AppendOnly {
		switch found, err := l.loadAOF(d.aofPath(), true); {
		case found || err != nil:
			d.rewriteAtStart = d.rewriteAtStart || l.db != 0 // what is appended would be of that database
			return err
		}
		switch found, err := l.loadManifest(); {
		case found || err != nil:
			d.rewriteAtStart = true
			return err
		}
	}
	found, err := l.loadRDB(d.rdbPath())
	d.rewriteAtStart = found && d.o.AppendOnly
	return err
}

// notRead returns files that exist but were not read. celld ignores Redis's append-only file once it has its own, and a user
// might believe otherwise.
func (l *loader) notRead() (paths []string) {
	d := l.disk
	if len(l.result.Files) == 0 {
		return nil
	}
	inManifest := filepath.Dir(l.result.File) == filepath.Dir(d.manifestPath())
	for _, path := range []string{d.aofPath(), d.manifestPath(), d.rdbPath()} {
		if path == l.result.File || path == d.manifestPath() && inManifest {
			continue
		}
		if f, err := d.files.Open(path); err == nil {
			f.Close()
			paths = append(paths, path)
		}
	}
	return paths
}

// open opens a file for reading. The source is nil if there is no such file.
func (l *loader) open(path string) (*source.Source, func(), error) {
	f, err := l.disk.files.Open(path)
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
	l.result.File = path
	l.result.Files = append(l.result.Files, path)
	l.disk.loading.total.Add(info.Size())
	return source.New(f, info.Size(), &l.disk.loading.done), func() { f.Forget(0, info.Size()); f.Close() }, nil
}

func (l *loader) loadRDB(path string) (found bool, err error) {
	src, closeFile, err := l.open(path)
	if src == nil {
		return false, err
	}
	defer closeFile()
	return true, l.readRDB(src, path)
}

func (l *loader) readRDB(src *source.Source, path string) error {
	saved, err := rdb.Read(src, l)
	if err != nil {
		return fmt.Errorf("%s: %w. Put a good copy in its place, or move it away to start without", path, err)
	}
	l.savedNS = max(l.savedNS, saved)
	return nil
}

// loadAOF reads an append-only file. Of several, only the last may be torn: the later ones build on the earlier ones.
func (l *loader) loadAOF(path string, last bool) (found bool, err error) {
	src, closeFile, err := l.open(path)
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
		if err := l.readRDB(src, path); err != nil {
			return true, err
		}
	}
	crc, saved, err := aof.Read(src, l.command)
	l.disk.tailCRC, l.savedNS = crc, max(l.savedNS, saved)
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
	case !l.disk.o.LoadTruncated:
		return true, fmt.Errorf("%s: %w. To cut it off there: redis-check-aof --fix %s, or --aof-load-truncated yes", path, err, path)
	}
	l.disk.rewriteAtStart = l.disk.rewriteAtStart || d.Open
	l.disk.log.Warn("the append-only file ends in the middle of a command, which is cut off", "file", path, "at", d.At, "bytes_lost", src.Size()-d.At)
	f, err := l.disk.files.Append(path)
	if err != nil {
		return true, err
	}
	defer f.Close()
	return true, f.Truncate(d.At)
}

// loadManifest reads the append-only files of Redis 7 and later: a base and what followed, as their manifest lists them.
func (l *loader) loadManifest() (found bool, err error) {
	paths, found, err := l.disk.readManifest()
	if err != nil {
		return found, err
	}
	for i, path := range paths {
		switch there, err := l.loadAOF(path, i == len(paths)-1); {
		case err != nil:
			return true, err
		case !there:
			return true, l.disk.missing(path)
		}
	}
	return found, nil
}

// missing is the error for a file that the manifest lists and that is not there.
func (d *Disk) missing(path string) error {
	return fmt.Errorf("%s is missing, which %s lists", path, filepath.Base(d.manifestPath()))
}

// readManifest returns the paths of the files in the manifest, if there is one.
func (d *Disk) readManifest() (paths []string, found bool, err error) {
	f, err := d.files.Open(d.manifestPath())
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
		paths = append(paths, filepath.Join(filepath.Dir(d.manifestPath()), filepath.Base(name)))
	}
	return paths, true, nil
}

// Limit takes a key of an RDB file.
func (l *loader) Limit(key []byte, tat uint64, expiryMS int64) error {
	return l.set(key, rdb.StateOf(tat, expiryMS))
}

func (l *loader) Other(_ []byte, kind string) {
	if l.result.Others == nil {
		l.result.Others = map[string]int64{}
	}
	l.result.Others[kind]++
}

func (l *loader) set(key []byte, st store.Value) error {
	if l.disk.stopping.Load() {
		return ErrStopping
	}
	l.state = st
	if st.TAT <= uint64(l.nowNS) || st.ExpiryNS > 0 && st.ExpiryNS <= l.nowNS {
		l.result.Expired++
	}
	return l.full(l.disk.store.Update(key, store.Access{NowNS: l.nowNS}, l.put))
}

// full replaces store.ErrFull by an error that names the settings.
func (l *loader) full(err error) error {
	if errors.Is(err, store.ErrFull) {
		return errors.New("there are more keys than --max-keys, --maxmemory and noeviction allow")
	}
	return err
}

// command runs a command of an append-only file. The kinds that celld writes run here, without the command table; all others
// go to apply.
func (l *loader) command(args [][]byte) error {
	var upper [16]byte
	name := string(appendUpper(upper[:0], args[0]))
	switch {
	case name == "SELECT" && len(args) == 2:
		db, err := strconv.Atoi(string(args[1]))
		if err != nil {
			return fmt.Errorf("SELECT %q", args[1])
		}
		l.db = db
		return nil
	case name == "ECHO" && len(args) == 2:
		l.echo(args[1])
		return nil
	case name == "FLUSHALL", l.db == 0 && name == "FLUSHDB": // with ASYNC or not
		l.disk.store.Flush()
		return nil
	case l.db != 0:
		l.Other(nil, "database "+strconv.Itoa(l.db))
		return nil
	case name == "SET" && (len(args) == 3 || len(args) == 5 && strings.EqualFold(string(args[3]), "PXAT")):
		return l.setCommand(args)
	case name == "DEL" && len(args) == 2:
		l.disk.store.Delete(args[1], l.nowNS)
		return nil
	case isHash(name, args):
		return l.hashCommand(args)
	case name == "PEXPIREAT" && len(args) == 3:
		return l.expireCommand(args)
	}
	if err := l.apply(args); err != nil {
		l.Other(nil, strings.ToUpper(string(args[0][:min(len(args[0]), 32)])))
	}
	return nil
}

// appendUpper appends the name of a command in upper case, and nothing where it is longer than those that Load knows.
func appendUpper(b, name []byte) []byte {
	if len(name) > cap(b) {
		return b
	}
	for _, c := range name {
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		b = append(b, c)
	}
	return b
}

func (l *loader) setCommand(args [][]byte) error {
	tat, err := rdb.ParseTAT(args[2])
	if err != nil { // the key may have been a limit before; it is none now
		l.disk.store.Delete(args[1], l.nowNS)
		l.Other(args[1], "string")
		return nil
	}
	at := int64(-1)
	if len(args) == 5 {
		if at, err = strconv.ParseInt(string(args[4]), 10, 64); err != nil || at < 0 {
			l.Other(args[1], "SET")
			return nil
		}
	}
	return l.set(args[1], rdb.StateOf(tat, at))
}

// OthersText lists what the files had that is no limit: "3 hash, 1 string". "" if there was nothing.
func (l Loaded) OthersText() string {
	var parts []string
	for kind, n := range l.Others {
		parts = append(parts, fmt.Sprintf("%d %s", n, kind))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
