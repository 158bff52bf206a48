package config

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"celld/store/remote"
	"celld/store/remote/link"
)

// storeConfig are the settings of an engine that keeps the limits.
type storeConfig struct {
	URL          *Param[string]
	Prefix       *Param[string]
	Username     *Param[string]
	Password     *Param[string]
	PasswordFile *Param[string]
	TLSCA        *Param[string]
	TLSCert      *Param[string]
	TLSKey       *Param[string]
	Timeout      *Param[time.Duration]
	MaxWaiting   *Param[int64]
	Denials      *Param[int64]
	Failure      *Param[string]
	LocalShare   *Param[int64]
}

func (c *storeConfig) rows() []Setting {
	return []Setting{
		{Name: "store", Group: groupStore, Value: in(&c.URL, newSecret("url", withoutPassword)), secret: true, Help: "keep the limits on this Redis or Valkey: redis://host, or rediss:// with TLS; redis://h1,h2,h3 for a Cluster; redis://h1,h2,h3?master=name for Sentinels; unix:///path; empty: in memory"},
		{Name: "store-prefix", Group: groupStore, Value: in(&c.Prefix, newText("", "text", nil)), Help: "prefix of all keys on the engine"},
		{Name: "store-username", Group: groupStore, Value: in(&c.Username, newText("", "name", nil)), Help: "user, where --store has none"},
		{Name: "store-password", Group: groupStore, Value: in(&c.Password, newSecret("password", hidden)), secret: true, Help: "password, where --store has none; other users of the machine can see flags, so prefer --store-password-file or the environment"},
		{Name: "store-password-file", Group: groupStore, Value: in(&c.PasswordFile, newText("", "path", checkPath)), Help: "file that holds that password; a line break at its end is not part of it"},
		{Name: "store-tls-ca-cert-file", Group: groupStore, Value: in(&c.TLSCA, newText("", "path", checkPath)), Help: "certificates that rediss:// trusts, in PEM; the default is those of the system"},
		{Name: "store-tls-cert-file", Group: groupStore, Value: in(&c.TLSCert, newText("", "path", checkPath)), Help: "celld's own certificate for rediss://, in PEM"},
		{Name: "store-tls-key-file", Group: groupStore, Value: in(&c.TLSKey, newText("", "path", checkPath)), Help: "its key, in PEM"},
		{Name: "store-timeout", Group: groupStore, Value: in(&c.Timeout, newDuration(500*time.Millisecond, time.Millisecond, time.Minute)), Help: "longest time that a call waits for the engine"},
		{Name: "store-max-waiting", Group: groupStore, Value: in(&c.MaxWaiting, newSize(64<<20, 64<<10)), Help: "most bytes of calls that wait for the engine; one more gets an error"},
		{Name: "store-denials", Group: groupStore, Value: in(&c.Denials, newInt(65536, 0, 1<<24, "n")), Help: "most denied keys to remember, for a second at most, so that the engine is not asked again; 0: none"},
		{Name: "store-failure", Group: groupStore, Value: in(&c.Failure, newText("error", "modes", readable(remote.ParseFailures))), Mutable: true, Help: "what calls get while the engine does not answer: error, allow, deny, or local (a share of the limit, in memory); and for policies: error,api=local,login=deny"},
		{Name: "store-local-share", Group: groupStore, Value: in(&c.LocalShare, newInt(20, 1, 1<<20, "n")), Help: "with local, each celld allows the limit divided by this"},
	}
}

func hidden(text string) string {
	if text == "" {
		return ""
	}
	return "(secret)"
}

// withoutPassword is an engine's URL as CONFIG GET and INFO show it.
func withoutPassword(text string) string {
	if a, err := link.ParseURL(text); err == nil {
		return a.String()
	}
	return hidden(text)
}

// loadEngine reads the password's file, and checks what depends on several settings.
func (c *Config) loadEngine(changed func(name string) bool) error {
	s := &c.Engine
	if s.URL.Get() == "" {
		return nil
	}
	address, err := link.ParseURL(s.URL.Get())
	if err != nil {
		return fmt.Errorf("--store: %w", err) // not when it is set: pflag's errors quote the value
	}
	switch {
	case c.AppendOnly.Get():
		return errors.New("--store keeps limits on an engine, so --appendonly must be no: there is nothing to log here")
	case c.Save.Get() != "":
		return errors.New("--store keeps limits on an engine, so --save must be empty: there is nothing to save here")
	case !address.TLS && s.TLSCA.Get()+s.TLSCert.Get()+s.TLSKey.Get() != "":
		return errors.New("certificates are for --store rediss://…")
	case (s.TLSCert.Get() == "") != (s.TLSKey.Get() == ""):
		return errors.New("--store-tls-cert-file and --store-tls-key-file must be given together")
	}
	return loadSecret(s.Password, "store-password", "the engine's password", s.PasswordFile.Get(), changed)
}

// EngineOptions returns the settings of the engine as options of remote.Open, nil if limits are kept in memory. Policies and Log are not
// set.
func (c *Config) EngineOptions() *remote.Options {
	s := &c.Engine
	if s.URL.Get() == "" {
		return nil
	}
	failures, _ := remote.ParseFailures(s.Failure.Get())
	return &remote.Options{
		URL: s.URL.Get(), Prefix: s.Prefix.Get(), Username: s.Username.Get(), Password: s.Password.Get(),
		TLSCACertFile: s.TLSCA.Get(), TLSCertFile: s.TLSCert.Get(), TLSKeyFile: s.TLSKey.Get(),
		Timeout: s.Timeout.Get(), MaxWaiting: s.MaxWaiting.Get(), Denials: int(s.Denials.Get()),
		Failures: failures, LocalShare: int(s.LocalShare.Get()), LocalKeys: c.MaxKeys.Get(), LocalBytes: c.MaxMemory.Get(),
	}
}

// StoreText is where limits are kept, for the log: the engine's URL without the password, or memory.
func (c *Config) StoreText() string { return cmp.Or(c.Engine.URL.String(), "memory") }
