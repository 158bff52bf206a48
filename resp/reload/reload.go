// Package reload puts to use what is in the files of certificates, passwords, users, policies with rules, and the log level, when they have
// changed. It knows no sessions.
//
//	r := &reload.Reloader{Config: cfg, ...}
//	err := r.KeepPolicies() // at the start
//	r.AddTo(watcher)        // which finds changes
package reload

import (
	"errors"
	"time"

	"celld/resp/acl"
	"celld/resp/client"
	"celld/resp/command/limit"
	"celld/resp/config"
	"celld/resp/watch"
	"celld/store"
	"celld/store/policy"
)

// Reloader knows who uses the files.
type Reloader struct {
	Config  *config.Config
	Users   *acl.Users
	Clients *client.List

	File    limit.File         // that of --policies, when it was last read
	InForce *policy.Set        // which the process has
	Store   func() store.Store // which keeps them

	Alone    func() (end func()) // begins a time in which no command or script runs
	Stopping func() bool         // what is set now would be lost
}

// AddTo makes the files known to who finds changes.
func (r *Reloader) AddTo(w *watch.Watcher) {
	c := r.Config
	if t := &c.TLS; t.Keeper != nil {
		w.Add(&watch.File{Setting: "tls-cert-file", Paths: []string{t.Cert.Get(), t.Key.Get(), t.CA.Get(), t.CADir.Get()},
			Take: r.takeCertificates})
	}
	for _, f := range []*watch.File{
		{Setting: "requirepass-file", Paths: []string{c.RequirePassFile.Get()}, Take: r.takePassword},
		{Setting: "aclfile", Paths: []string{c.ACLFile.Get()}, Take: r.takeUsers},
		{Setting: "policies", Paths: []string{c.PoliciesFile.Get()}, Take: r.takePolicies, Saved: r.savedPolicies},
		{Setting: "loglevel-file", Paths: []string{c.LogLevelFile.Get()}, Take: r.takeLogLevel},
	} {
		w.Add(f)
	}
}

func (r *Reloader) takeCertificates() (about []any, err error) {
	k := r.Config.TLS.Keeper
	if err := k.Reload(); err != nil {
		return nil, err
	}
	return []any{"not_after", k.NotAfter().UTC().Format(time.RFC3339)}, nil
}

func (r *Reloader) takePassword() (about []any, err error) { return nil, r.Config.ReloadPassword() }

// takeUsers does what ACL LOAD does.
func (r *Reloader) takeUsers() (about []any, err error) {
	file, err := acl.ReadFile(r.Users.Table(), r.Config.ACLFile.Get())
	if err != nil {
		return nil, err
	}
	defer r.Alone()()
	if r.Stopping() {
		return nil, errStopping
	}
	before := r.Users.Lines()
	r.Clients.Kill(nil, client.Of(r.Users.Replace(file)))
	c := changesOf(before, r.Users.Lines())
	return c.attrs("removed"), nil
}

func (r *Reloader) takeLogLevel() (about []any, err error) {
	level, err := r.Config.ReloadLogLevel()
	return []any{"value", level}, err
}

var errStopping = errors.New("the server is stopping")
