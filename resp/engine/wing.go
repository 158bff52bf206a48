// Package engine has the settings of an engine, a Redis or Valkey that keeps the limits, and opens it by package store/remote.
//
//	var wings = []resp.Wing{engine.Wing(), …}
package engine

import (
	"errors"
	"fmt"
	"time"

	"celld/resp"
	"celld/resp/certs"
	"celld/resp/config"
	"celld/resp/watch"
	"celld/store/remote"
	"celld/store/remote/link"
)

// passwordName is what errors call the engine's password.
const passwordName = "the engine's password"

// Settings are those of an engine that keeps the limits.
type Settings struct {
	with                remote.Options
	passwordFile        string
	denials, localShare int64
	ahead               *config.Param[string]
	failure             *config.Param[string]

	store *remote.Store // nil: there is no engine
}

// Wing keeps the limits on an engine.
func Wing() resp.Wing {
	s := &Settings{}
	return resp.Wing{Part: s.Part(), Open: s.open, Serve: s.serve}
}

// Part declares the settings.
func (s *Settings) Part() config.Part {
	return config.Part{Rows: s.rows, Load: s.load, Check: s.check, Needs: s.needs}
}

func (s *Settings) rows(*config.Config) []config.Setting {
	const group = "Limits on Redis or Valkey"
	return []config.Setting{
		{Name: "store", Group: group, Value: config.Into(&s.with.URL, config.NewSecret("url", withoutPassword)), Secret: true, Help: "keep the limits on this Redis or Valkey: redis://host, or rediss:// with TLS; redis://h1,h2,h3 for a Cluster; redis://h1,h2,h3?master=name for Sentinels; unix:///path; empty: in memory"},
		{Name: "store-prefix", Group: group, Value: config.Into(&s.with.Prefix, config.NewText("", "text", nil)), Help: "prefix of all keys on the engine"},
		{Name: "store-username", Group: group, Value: config.Into(&s.with.Username, config.NewText("", "name", nil)), Help: "user, where --store has none"},
		{Name: "store-password", Group: group, Value: config.Into(&s.with.Password, config.NewSecret("password", config.Hidden)), Secret: true, Help: "password, where --store has none; other users of the machine can see flags, so prefer --store-password-file or the environment"},
		{Name: "store-password-file", Group: group, Value: config.Into(&s.passwordFile, config.NewText("", "path", config.CheckPath)), Help: "file that holds that password; a line break at its end is not part of it"},
		{Name: "store-tls-ca-cert-file", Group: group, Value: config.Into(&s.with.TLSCACertFile, config.NewText("", "path", config.CheckPath)), Help: "certificates that rediss:// trusts, in PEM; the default is those of the system"},
		{Name: "store-tls-cert-file", Group: group, Value: config.Into(&s.with.TLSCertFile, config.NewText("", "path", config.CheckPath)), Help: "celld's own certificate for rediss://, in PEM"},
		{Name: "store-tls-key-file", Group: group, Value: config.Into(&s.with.TLSKeyFile, config.NewText("", "path", config.CheckPath)), Help: "its key, in PEM"},
		{Name: "store-timeout", Group: group, Value: config.Into(&s.with.Timeout, config.NewDuration(500*time.Millisecond, time.Millisecond, time.Minute)), Help: "longest time that a call waits for the engine"},
		{Name: "store-max-waiting", Group: group, Value: config.Into(&s.with.MaxWaiting, config.NewSize(64<<20, 64<<10)), Help: "most bytes of calls that wait for the engine; one more gets an error"},
		{Name: "store-denials", Group: group, Value: config.Into(&s.denials, config.NewInt(65536, 0, 1<<24, "n")), Help: "most denied keys to remember, for a second at most, so that the engine is not asked again; 0: none"},
		{Name: "store-ahead", Group: group, Value: config.In(&s.ahead, config.NewText("0", "ms", config.Readable(remote.ParseAhead))), Mutable: true, Help: "take units of hot keys ahead of their calls, which end after so many ms: then most calls need no request to the engine; 0: none are taken; and for policies: 20,login=0"},
		{Name: "store-failure", Group: group, Value: config.In(&s.failure, config.NewText("error", "modes", config.Readable(remote.ParseFailures))), Mutable: true, Help: "what calls get while the engine does not answer: error, allow, deny, or local (a share of the limit, in memory); and for policies: error,api=local,login=deny"},
		{Name: "store-local-share", Group: group, Value: config.Into(&s.localShare, config.NewInt(20, 1, 1<<20, "n")), Help: "with local, each celld allows the limit divided by this"},
	}
}

// withoutPassword is an engine's URL as CONFIG GET shows it.
func withoutPassword(text string) string {
	if a, err := link.ParseURL(text); err == nil {
		return a.String()
	}
	return config.Hidden(text)
}

func (s *Settings) needs() string {
	if s.with.URL == "" {
		return "--store"
	}
	return ""
}

// load reads the password's file, and checks what depends on several settings.
func (s *Settings) load(c *config.Config, given func(name string) bool) error {
	if s.with.URL == "" {
		return nil
	}
	address, err := link.ParseURL(s.with.URL)
	if err != nil {
		return fmt.Errorf("--store: %w", err) // not when it is set: pflag's errors quote the value
	}
	switch {
	case c.AppendOnly.Get():
		return errors.New("--store keeps limits on an engine, so --appendonly must be no: there is nothing to log here")
	case c.Save.Get() != "":
		return errors.New("--store keeps limits on an engine, so --save must be empty: there is nothing to save here")
	case !address.TLS && s.with.TLSCACertFile+s.with.TLSCertFile+s.with.TLSKeyFile != "":
		return errors.New("certificates are for --store rediss://…")
	case (s.with.TLSCertFile == "") != (s.with.TLSKeyFile == ""):
		return errors.New("--store-tls-cert-file and --store-tls-key-file must be given together")
	}
	return c.LoadSecret("store-password", passwordName, s.passwordFile, given)
}

// Options are those of remote.Open, without Policies and Log.
func (s *Settings) Options(c *config.Config) remote.Options {
	o := s.with
	o.Denials, o.LocalShare, o.LocalKeys, o.LocalBytes = int(s.denials), int(s.localShare), c.MaxKeys.Get(), c.MaxMemory.Get()
	o.Failures, _ = remote.ParseFailures(s.failure.Get())
	o.Ahead, _ = remote.ParseAhead(s.ahead.Get())
	return o
}

// valid returns an error if the engine refuses celld's certificate today. What cannot be read is no error: others say why.
func (s *Settings) valid() error {
	path := s.with.TLSCertFile
	if path == "" {
		return nil
	}
	pair, unread := certs.ReadPair(path, s.with.TLSKeyFile, "")
	if wrong := certs.Valid(pair, time.Now()); unread == nil && wrong != nil {
		return fmt.Errorf("the engine refuses the certificate: %s: %w", path, wrong)
	}
	return nil
}

// check looks at the certificates.
func (s *Settings) check(c *config.Config) (_ []string, _, faults error) {
	faults = s.valid()
	if _, wrong := link.ParseURL(s.with.URL); s.with.URL != "" && wrong == nil { // else load has said so
		faults = errors.Join(faults, remote.Check(s.Options(c)))
	}
	return nil, nil, faults
}

func (s *Settings) open(o *resp.Options) error {
	if s.with.URL == "" {
		return nil
	}
	with := s.Options(o.Config)
	with.Policies, with.Log = o.Store.Set, o.Log
	store, err := remote.Open(with)
	if err != nil {
		return err
	}
	s.store = store
	s.failure.OnSet(func(text string) {
		if modes, err := remote.ParseFailures(text); err == nil {
			store.SetFailures(modes)
		}
	})
	s.ahead.OnSet(func(text string) {
		if times, err := remote.ParseAhead(text); err == nil {
			store.SetAhead(times)
		}
	})
	o.Engine = store
	return nil
}

// serve makes known which files change: the password's, and those of certificates.
func (s *Settings) serve(srv *resp.Server, _ *resp.Options) error {
	if s.store == nil {
		return nil
	}
	srv.Watch(&watch.File{Setting: "store-password-file", Paths: []string{s.passwordFile}, Take: func() (_ []any, err error) {
		password, err := config.ReadSecret(passwordName, s.passwordFile, config.TrimEnd)
		if err == nil {
			s.store.UsePassword(password)
		}
		return nil, err
	}})
	srv.Watch(&watch.File{
		Setting: "store-tls-cert-file", Paths: []string{s.with.TLSCertFile, s.with.TLSKeyFile, s.with.TLSCACertFile},
		Take: func() (_ []any, err error) {
			if err = s.valid(); err == nil {
				err = s.store.RenewCertificates()
			}
			return nil, err
		},
	})
	return nil
}
