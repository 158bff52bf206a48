package resp

import (
	"errors"
	"slices"
	"strings"
	"time"

	"celld/resp/acl"
	"celld/resp/client"
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
		{"certificates", srv.cfg.TLS.Cert.Get(), srv.reloadCertificates},
		{"users", srv.cfg.ACLFile.Get(), srv.reloadUsers},
		{"policies", srv.cfg.PoliciesFile.Get(), srv.reloadPolicies},
		{"loglevel", srv.cfg.LogLevelFile.Get(), srv.reloadLogLevel},
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

func (srv *Server) reloadCertificates() (c changes, err error) {
	k := srv.cfg.TLS.Keeper
	taken, err := k.Reload()
	if err != nil {
		srv.stats.FailedReloads.Add(1)
	}
	if taken {
		c.about = []any{"not_after", k.NotAfter().UTC().Format(time.RFC3339)}
	}
	return c, err
}

// reloadUsers reads --aclfile again, and closes the connections of users that have changed or gone.
func (srv *Server) reloadUsers() (c changes, err error) {
	file, err := acl.ReadFile(srv.users.Table(), srv.cfg.ACLFile.Get())
	if err != nil {
		return c, err
	}
	defer srv.betweenScripts()()
	before := srv.users.Lines()
	srv.clients.Kill(nil, client.Of(srv.users.Replace(file)))
	return changesOf(before, srv.users.Lines()), nil
}

func (srv *Server) reloadLogLevel() (c changes, err error) {
	level, changed, err := srv.cfg.ReloadLogLevel()
	if changed {
		c.about = []any{"value", level}
	}
	return c, err
}

// betweenScripts locks execution alone, in a round of its own where replies wait for the disk. Call what it returns at the end. A disk that refuses
// the changes is the file's trouble: they are written later.
//
// A script that is busy lets go of the lock. To change users or policies then would change them in its middle: clients who try that get -BUSY, and
// so this waits until the script has ended.
func (srv *service) betweenScripts() (end func()) {
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
