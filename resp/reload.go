package resp

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"celld/persistence/regular"
)

// reloadable is something that Reload reads again.
type reloadable struct {
	what, file string                  // the file is "" where none is set
	reload     func() (changes, error) // an error has changed nothing
}

// Reload reads again the certificates, --aclfile, --policies and --loglevel-file, and logs in one line each what has changed. Where one
// cannot be used, the log says why, what it had before stays, and the others are taken up. Call it once the server serves, from one
// goroutine at a time.
func (srv *Server) Reload() {
	parts := []reloadable{
		{"certificates", srv.cfg.tls.cert.Get(), srv.reloadCertificates},
		{"users", srv.cfg.users.file.Get(), srv.ReloadUsers},
		{"policies", srv.cfg.policiesFile.Get(), srv.reloadPolicies},
		{"loglevel", srv.cfg.logLevelFile.Get(), srv.reloadLogLevel},
	}
	parts = slices.DeleteFunc(parts, func(p reloadable) bool { return p.file == "" })
	if len(parts) == 0 {
		srv.log.Info("there is nothing to reload: none of --tls-cert-file, --aclfile, --policies and --loglevel-file is set")
		return
	}
	var same, failed []string
	for _, p := range parts {
		switch changed, err := srv.reload(p); {
		case err != nil:
			failed = append(failed, p.what)
			for line := range strings.Lines(err.Error()) { // one for each bad line of the file
				srv.log.Warn("a file is not reloaded, what was read before stays", "what", p.what, "file", p.file, "error", strings.TrimSpace(line))
			}
		case changed.none():
			same = append(same, p.what)
		default:
			srv.log.Info("a file is reloaded", append([]any{"what", p.what, "file", p.file}, changed.attrs()...)...)
		}
	}
	srv.log.Info("reloaded", "unchanged", strings.Join(same, " "), "failed", strings.Join(failed, " "))
}

// reload is p.reload, whose panics are errors.
func (srv *Server) reload(p reloadable) (c changes, err error) {
	err = errors.New("a fault in celld")
	defer srv.survive("reload")
	return p.reload()
}

// betweenScripts locks execution alone, in a round of its own where replies wait for the disk. Call what it returns at the end. A disk that refuses
// the changes is the file's trouble: they are written later.
//
// A script that is busy lets go of the lock. To change users or policies then would change them in its middle: clients who try that get -BUSY, and
// so this waits until the script has ended.
func (srv *Server) betweenScripts() (end func()) {
	for told := false; ; time.Sleep(10 * time.Millisecond) {
		if srv.gate.has(gateBusy) {
			if !told {
				srv.log.Info("the reload waits for the script that runs; SCRIPT KILL ends one that has changed nothing")
			}
			told = true
			continue
		}
		if srv.synchronous {
			srv.persist.Begin()
		}
		srv.execution.Lock()
		end = func() {
			srv.execution.Unlock()
			if srv.synchronous {
				_ = srv.commit()
			}
		}
		if !srv.gate.has(gateBusy) { // nor can it be set while this has the lock
			return end
		}
		end()
	}
}

// changes are the names of what a reload has changed.
type changes struct {
	added, changed, removed []string
	about                   []any // what is logged beside them
}

func (c *changes) none() bool { return len(c.added)+len(c.changed)+len(c.removed)+len(c.about) == 0 }

// mostNames is how many names a line of the log has of a kind.
const mostNames = 20

func (c *changes) attrs() (attrs []any) {
	for _, kind := range []struct {
		name  string
		names []string
	}{{"added", c.added}, {"changed", c.changed}, {"removed", c.removed}} {
		if n := len(kind.names); n > mostNames {
			attrs = append(attrs, kind.name, append(kind.names[:mostNames:mostNames], fmt.Sprintf("and %d more", n-mostNames)))
		} else if n > 0 {
			attrs = append(attrs, kind.name, kind.names)
		}
	}
	return append(attrs, c.about...)
}

// changesOf compares texts by their names.
func changesOf(before, after map[string]string) (c changes) {
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if text, there := before[name]; !there {
			c.added = append(c.added, name)
		} else if text != after[name] {
			c.changed = append(c.changed, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, there := after[name]; !there {
			c.removed = append(c.removed, name)
		}
	}
	return c
}

func (srv *Server) reloadCertificates() (c changes, err error) {
	k := srv.cfg.tls.keeper
	taken, err := k.Reload()
	if err != nil {
		srv.stats.FailedReloads.Add(1)
	}
	if taken {
		c.about = []any{"not_after", k.NotAfter().UTC().Format(time.RFC3339)}
	}
	return c, err
}

func (srv *Server) reloadLogLevel() (c changes, err error) {
	word, err := readLogLevel(srv.cfg.logLevelFile.Get())
	if err != nil {
		return c, err
	}
	srv.configMu.Lock()
	defer srv.configMu.Unlock()
	before := srv.cfg.logLevel.Get()
	if err := srv.cfg.logLevel.Set(word); err != nil {
		return c, err
	}
	if now := srv.cfg.logLevel.Get(); now != before {
		c.about = []any{"value", now}
	}
	return c, nil
}

// readLogLevel reads the word in a file. logLevel.Set checks it.
func readLogLevel(path string) (string, error) {
	f, err := regular.Open(path)
	if err != nil {
		return "", fmt.Errorf("read the loglevel: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 1<<10))
	if err != nil {
		return "", fmt.Errorf("read the loglevel: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// loadLogLevel reads --loglevel-file at the start.
func (c *Config) loadLogLevel(changed func(name string) bool) error {
	path := c.logLevelFile.Get()
	if path == "" {
		return nil
	}
	if changed("loglevel") {
		return errors.New("loglevel and loglevel-file are both set; give one")
	}
	word, err := readLogLevel(path)
	if err != nil {
		return err
	}
	if err := c.logLevel.Set(word); err != nil {
		return fmt.Errorf("read the loglevel: %s: %w", path, err)
	}
	return nil
}
