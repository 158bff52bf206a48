// Package watch reads files again that people or tools have changed while the server runs: where it finds them changed, and at SIGHUP. It
// knows neither what they hold nor who uses it.
//
//	w := &watch.Watcher{Config: cfg, Log: log, Seen: watch.See(cfg)}
//	w.Add(&watch.File{Setting: "aclfile", Paths: []string{"/etc/celld/users.acl"}, Take: readUsers})
//	w.Run(ctx)  // looks at each file every 2 s
//	w.Reload()  // at SIGHUP
//
// It looks at what files hold, and does not wait for the system to tell of a change. So it does not matter who swaps which link, as
// Kubernetes does, nor whether the file system tells at all, which those of a network do not.
package watch

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"celld/persistence/regular"
	"celld/resp/config"
	"celld/resp/loglimit"
	"celld/resp/metrics"
)

// lookTime is between two looks at a file. A change is taken when two looks have found the same, as the first may find it half written.
const lookTime = 2 * time.Second

// Watcher keeps what files hold in force. Add all files before any other method is called. Any goroutine may call the others.
type Watcher struct {
	Config  *config.Config
	Log     *loglimit.Logger
	Seen    Contents                         // what files held just before the process read them; nil: what they hold when they are added
	Survive func(where string, about ...any) // deferred: it recovers a panic

	files []*File
}

// File is a file that is read again, or several that belong together.
type File struct {
	Setting string   // that names it, by which the log and metrics call it
	Paths   []string // of all that belong to it, which are files or directories of files; "" is none

	// Take reads it and puts it to use. about is what the log says of it. An error has changed nothing.
	Take func() (about []any, err error)

	// Saved is told that celld itself has written what is in force; nil: it need not know.
	Saved func()

	mu       sync.Mutex // held for a look
	inForce  digest     // of what was taken last
	suspect  digest     // of what the last look has found
	reported digest     // of what was refused last

	why            atomic.Pointer[string] // it is refused; nil: it is not
	taken, refused atomic.Int64
}

// Counts is how often a content was taken, also one that was in force before another was refused, and how often one was refused.
func (f *File) Counts() (taken, refused int64) { return f.taken.Load(), f.refused.Load() }

type digest = [sha256.Size]byte

// Contents are digests of what files held, by their paths.
type Contents map[string]digest

// See looks at the files that settings name. Where that is done before they are read, no change is missed.
func See(c *config.Config) Contents {
	seen := Contents{}
	for _, s := range c.Settings() {
		if path := s.Value.String(); s.Value.Type() == "path" && path != "" && s.Name != "dir" && s.Name != "unixsocket" {
			seen[path] = contentOf(path)
		}
	}
	return seen
}

// contentOf is the digest of a file, or of all files in a directory. What cannot be read has that of its error.
func contentOf(path string) (d digest) {
	h := sha256.New()
	err := regular.Walk(path, func(name string, text []byte) {
		fmt.Fprintf(h, "%q %x\n", name, sha256.Sum256(text))
	})
	fmt.Fprint(h, err)
	h.Sum(d[:0])
	return d
}

// content is the digest of all that belongs to the file.
func (f *File) content(of func(path string) digest) (d digest) {
	h := sha256.New()
	for _, path := range f.Paths {
		one := of(path)
		h.Write(one[:])
	}
	h.Sum(d[:0])
	return d
}

// Add makes a file known, if it has a path.
func (w *Watcher) Add(f *File) {
	if f.Paths = slices.DeleteFunc(f.Paths, func(path string) bool { return path == "" }); len(f.Paths) == 0 {
		return
	}
	f.inForce = f.content(func(path string) digest {
		if d, ok := w.Seen[path]; ok {
			return d
		}
		return contentOf(path)
	})
	w.files = append(w.files, f)
}

// Run looks at all files until ctx ends, unless --watch is no. It returns at once.
func (w *Watcher) Run(ctx context.Context) {
	if !w.Config.Watch.Get() {
		return
	}
	for _, f := range w.files {
		go w.follow(ctx, f) // nobody waits for it: the files of a network may hang
	}
}

// follow looks at a file again and again. Where that takes long, it does so less often: it takes 5 % of a core at most.
func (w *Watcher) follow(ctx context.Context, f *File) {
	for pause := lookTime; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		began := time.Now()
		w.look(f, false)
		pause = max(lookTime, 20*time.Since(began))
	}
}

// Reload looks at all files for somebody who says that they are whole.
func (w *Watcher) Reload() {
	if len(w.files) == 0 {
		w.Log.Info("there is nothing to reload: no setting names a file that could have changed")
		return
	}
	var same, failed []string
	for _, f := range w.files {
		switch changed, err := w.look(f, true); {
		case err != nil:
			failed = append(failed, f.Setting)
		case !changed:
			same = append(same, f.Setting)
		}
	}
	w.Log.Info("reloaded", "unchanged", strings.Join(same, " "), "failed", strings.Join(failed, " "))
}

// look takes what the file holds, if that is new, and says so. Unless somebody says that it is whole, two looks must have found the same.
// What is refused is tried again by each look, as a certificate may become valid, and is told once.
func (w *Watcher) look(f *File, whole bool) (changed bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := f.content(contentOf)
	settled := found == f.suspect || whole
	f.suspect = found
	switch {
	case found == f.inForce:
		if f.why.Swap(nil) != nil {
			f.taken.Add(1)
			w.Log.Info("a file is again as it was before", "setting", f.Setting, "file", f.Paths[0])
		}
		f.reported = digest{}
		return false, nil
	case !settled:
		return false, nil
	}
	about, err := w.take(f)
	switch {
	case err == nil:
		f.inForce, f.reported = found, digest{}
		f.why.Store(nil)
		f.taken.Add(1)
		w.Log.Info("a file is taken", append([]any{"setting", f.Setting, "file", f.Paths[0]}, about...)...)
	case whole || found != f.reported:
		f.reported = found
		f.refused.Add(1)
		why, rest, _ := strings.Cut(err.Error(), "\n")
		f.why.Store(&why)
		about := []any{"setting", f.Setting, "file", f.Paths[0], "error", why}
		if rest != "" {
			about = append(about, "more_mistakes", strings.Count(rest, "\n")+1)
		}
		w.Log.Warn("a file is refused, and what was read before stays", about...)
	}
	return err == nil, err
}

// take is Take, whose panic is an error.
func (w *Watcher) take(f *File) (about []any, err error) {
	err = errors.New("a fault in celld")
	defer w.Survive("reload of " + f.Setting)
	return f.Take()
}

// Read takes a file that nobody has read yet.
func (w *Watcher) Read(f *File) {
	f.inForce = digest{}
	_, _ = w.look(f, true)
}

// Saved notes that celld has written the file of a setting, and that what it holds is in force. It reads the file, and waits for a look
// that is under way, which may wait until no command runs: so no command may wait for it.
func (w *Watcher) Saved(setting string) {
	defer w.Survive("saved " + setting)
	for _, f := range w.files {
		if f.Setting != setting {
			continue
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.inForce = f.content(contentOf)
		f.why.Store(nil)
		if f.Saved != nil {
			f.Saved()
		}
	}
}

// Troubles are lines about files that are refused.
func (w *Watcher) Troubles() (lines []string) {
	for _, f := range w.files {
		if why := f.why.Load(); why != nil {
			lines = append(lines,
				fmt.Sprintf("the file of --%s is refused, and what was read before stays: %s", f.Setting, metrics.Printable(*why)))
		}
	}
	return lines
}

// Declare tells of each file how often it was read again, and whether it is refused.
func (w *Watcher) Declare(l *metrics.List) {
	for _, f := range w.files {
		taken, refused := f.Counts()
		for _, of := range []struct {
			result string
			n      int64
		}{{"taken", taken}, {"refused", refused}} {
			l.Counter(metrics.Metric{Name: "celld_reloads_total", Help: "Changed files that were read again, named by their setting.",
				Labels: []string{"file", f.Setting, "result", of.result}, Value: of.n})
		}
	}
	for _, f := range w.files {
		l.Gauge(metrics.Metric{Name: "celld_file_refused", Help: "1 while a changed file is refused, and what was read before stays.",
			Labels: []string{"file", f.Setting}, Value: f.why.Load() != nil})
	}
}
