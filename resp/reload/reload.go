// Package reload reads files again while the server serves: certificates, users, policies with rules, and the log level. It knows no
// sessions.
//
//	r := &reload.Reloader{Config: cfg, Log: log, ...}
//	err := r.KeepPolicies() // at the start
//	r.Reload()              // at SIGHUP
package reload

import (
	"errors"
	"slices"
	"strings"
	"time"

	"celld/resp/acl"
	"celld/resp/client"
	"celld/resp/command/limit"
	"celld/resp/config"
	"celld/resp/loglimit"
	"celld/store"
	"celld/store/policy"
)

// Reloader reads files again while the server serves. Its methods are for one goroutine at a time.
type Reloader struct {
	Config  *config.Config
	Log     *loglimit.Logger
	Users   *acl.Users
	Clients *client.List

	File    limit.File         // that of --policies, when it was last read
	InForce *policy.Set        // which the process has
	Store   func() store.Store // which keeps them

	Others []Other // files that others read

	Alone    func() (end func())              // begins a time in which no command or script runs
	Stopping func() bool                      // what is set now would be lost
	Failed   func()                           // counts certificates that are not used
	Survive  func(where string, about ...any) // deferred: it recovers a panic
}

// Other is files that others read. Reload returns what is to be logged of a change, nil where there is none. Its error joins one for each
// mistake, and changes nothing.
type Other struct {
	What, File string
	Reload     func() (about []any, err error)
}

// reloadable is something that Reload reads again.
type reloadable struct {
	what, file string                  // the file is "" where none is set
	reload     func() (changes, error) // an error has changed nothing
}

// Reload reads again the certificates, --aclfile, --policies, --loglevel-file and the files of Others, and logs in one line each what has
// changed. Where one cannot be used, the log says why, its old content stays in force, and the others are used. Call it once the server
// serves.
func (r *Reloader) Reload() {
	parts := []reloadable{
		{"certificates", r.Config.TLS.Cert.Get(), r.reloadCertificates},
		{"users", r.Config.ACLFile.Get(), r.reloadUsers},
		{"policies", r.Config.PoliciesFile.Get(), r.reloadPolicies},
		{"loglevel", r.Config.LogLevelFile.Get(), r.reloadLogLevel},
	}
	for _, other := range r.Others {
		parts = append(parts, reloadable{other.What, other.File, func() (changes, error) {
			about, err := other.Reload()
			return changes{about: about}, err
		}})
	}
	parts = slices.DeleteFunc(parts, func(p reloadable) bool { return p.file == "" })
	if len(parts) == 0 {
		r.Log.Info("there is nothing to reload: none of --tls-cert-file, --aclfile, --policies, --loglevel-file and --envoy-config is set")
		return
	}
	var same, failed []string
	for _, p := range parts {
		switch changed, err := r.reload(p); {
		case err != nil:
			failed = append(failed, p.what)
			for line := range strings.Lines(err.Error()) { // one for each bad line of the file
				r.Log.Warn("a file is not reloaded, what was read before stays", "what", p.what, "file", p.file,
					"error", strings.TrimSpace(line))
			}
		case changed.none():
			same = append(same, p.what)
		default:
			r.Log.Info("a file is reloaded", append([]any{"what", p.what, "file", p.file}, changed.attrs()...)...)
		}
	}
	r.Log.Info("reloaded", "unchanged", strings.Join(same, " "), "failed", strings.Join(failed, " "))
}

// reload is p.reload, whose panics are errors.
func (r *Reloader) reload(p reloadable) (c changes, err error) {
	err = errors.New("a fault in celld")
	defer r.Survive("reload")
	return p.reload()
}

func (r *Reloader) reloadCertificates() (c changes, err error) {
	k := r.Config.TLS.Keeper
	taken, err := k.Reload()
	if err != nil {
		r.Failed()
	}
	if taken {
		c.about = []any{"not_after", k.NotAfter().UTC().Format(time.RFC3339)}
	}
	return c, err
}

// reloadUsers reads --aclfile again, and closes the connections of users that have changed or gone.
func (r *Reloader) reloadUsers() (c changes, err error) {
	file, err := acl.ReadFile(r.Users.Table(), r.Config.ACLFile.Get())
	if err != nil {
		return c, err
	}
	defer r.Alone()()
	before := r.Users.Lines()
	r.Clients.Kill(nil, client.Of(r.Users.Replace(file)))
	return changesOf(before, r.Users.Lines()), nil
}

func (r *Reloader) reloadLogLevel() (c changes, err error) {
	level, changed, err := r.Config.ReloadLogLevel()
	if changed {
		c.about = []any{"value", level}
	}
	return c, err
}
