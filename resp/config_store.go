package resp

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"celld/persistence/regular"
	"celld/store/remote"
	"celld/store/remote/link"
)

// storeConfig are the settings of an engine that keeps the limits.
type storeConfig struct {
	url          *param[string]
	prefix       *param[string]
	username     *param[string]
	password     *param[string]
	passwordFile *param[string]
	tlsCA        *param[string]
	tlsCert      *param[string]
	tlsKey       *param[string]
	timeout      *param[time.Duration]
	maxWaiting   *param[int64]
	denials      *param[int64]
	failure      *param[string]
	localShare   *param[int64]
}

func (c *storeConfig) rows() []Setting {
	return []Setting{
		{Name: "store", Group: groupStore, Value: in(&c.url, newSecret("url", withoutPassword)), secret: true, Help: "keep the limits on this Redis or Valkey: redis://host, or rediss:// with TLS; redis://h1,h2,h3 for a Cluster; redis://h1,h2,h3?master=name for Sentinels; unix:///path; empty: in memory"},
		{Name: "store-prefix", Group: groupStore, Value: in(&c.prefix, newText("", "text", nil)), Help: "what all keys there begin with"},
		{Name: "store-username", Group: groupStore, Value: in(&c.username, newText("", "name", nil)), Help: "user, where --store has none"},
		{Name: "store-password", Group: groupStore, Value: in(&c.password, newSecret("password", hidden)), secret: true, Help: "password, where --store has none; other users of the machine can see flags, so prefer --store-password-file or the environment"},
		{Name: "store-password-file", Group: groupStore, Value: in(&c.passwordFile, newText("", "path", checkPath)), Help: "file that holds that password; a line break at its end is not part of it"},
		{Name: "store-tls-ca-cert-file", Group: groupStore, Value: in(&c.tlsCA, newText("", "path", checkPath)), Help: "certificates that rediss:// trusts, in PEM; the default is those of the system"},
		{Name: "store-tls-cert-file", Group: groupStore, Value: in(&c.tlsCert, newText("", "path", checkPath)), Help: "celld's own certificate for rediss://, in PEM"},
		{Name: "store-tls-key-file", Group: groupStore, Value: in(&c.tlsKey, newText("", "path", checkPath)), Help: "its key, in PEM"},
		{Name: "store-timeout", Group: groupStore, Value: in(&c.timeout, newDuration(500*time.Millisecond, time.Millisecond, time.Minute)), Help: "longest that a call waits for the store"},
		{Name: "store-max-waiting", Group: groupStore, Value: in(&c.maxWaiting, newSize(64<<20, 64<<10)), Help: "most bytes of calls that wait for the store; one more gets an error"},
		{Name: "store-denials", Group: groupStore, Value: in(&c.denials, newInt(65536, 0, 1<<24, "n")), Help: "most denied keys to remember, for a second at most, so that the store is not asked again; 0: none"},
		{Name: "store-failure", Group: groupStore, Value: in(&c.failure, newText("error", "modes", checkFailures)), mutable: true, Help: "what calls get while the store does not answer: error, allow, deny, or local (a share of the limit, in memory); and for policies: error,api=local,login=deny"},
		{Name: "store-local-share", Group: groupStore, Value: in(&c.localShare, newInt(20, 1, 1<<20, "n")), Help: "with local, each celld allows the limit divided by this"},
	}
}

func checkFailures(text string) error { _, err := remote.ParseFailures(text); return err }

func hidden(text string) string {
	if text == "" {
		return ""
	}
	return "(secret)"
}

// withoutPassword is a store's URL as CONFIG GET and INFO show it.
func withoutPassword(text string) string {
	if a, err := link.ParseURL(text); err == nil {
		return a.String()
	}
	return hidden(text)
}

// load reads the password's file, and checks what depends on several settings.
func (c *Config) loadStore(changed func(name string) bool) error {
	s := &c.engine
	if s.url.Get() == "" {
		return nil
	}
	address, err := link.ParseURL(s.url.Get())
	if err != nil {
		return fmt.Errorf("--store: %w", err) // not when it is set: pflag's errors quote the value
	}
	switch {
	case c.appendOnly.Get():
		return errors.New("--store keeps limits on an engine, so --appendonly must be no: there is nothing to log here")
	case c.save.Get() != "":
		return errors.New("--store keeps limits on an engine, so --save must be empty: there is nothing to save here")
	case !address.TLS && s.tlsCA.Get()+s.tlsCert.Get()+s.tlsKey.Get() != "":
		return errors.New("certificates are for --store rediss://…")
	case (s.tlsCert.Get() == "") != (s.tlsKey.Get() == ""):
		return errors.New("--store-tls-cert-file and --store-tls-key-file must be given together")
	}
	path := s.passwordFile.Get()
	switch {
	case path == "":
		return nil
	case changed("store-password"):
		return errors.New("store-password and store-password-file are both set; give one")
	}
	text, err := regular.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the store's password: %w", err)
	}
	password := strings.TrimRight(string(text), "\r\n")
	if password == "" {
		return fmt.Errorf("read the store's password: %s is empty", path)
	}
	return s.password.Set(password)
}

// Engine returns the settings of the engine as options of remote.Open, nil if limits are kept in memory. Policies and Log are not
// set.
func (c *Config) Engine() *remote.Options {
	s := &c.engine
	if s.url.Get() == "" {
		return nil
	}
	failures, _ := remote.ParseFailures(s.failure.Get())
	return &remote.Options{
		URL: s.url.Get(), Prefix: s.prefix.Get(), Username: s.username.Get(), Password: s.password.Get(),
		TLSCACertFile: s.tlsCA.Get(), TLSCertFile: s.tlsCert.Get(), TLSKeyFile: s.tlsKey.Get(),
		Timeout: s.timeout.Get(), MaxWaiting: s.maxWaiting.Get(), Denials: int(s.denials.Get()),
		Failures: failures, LocalShare: int(s.localShare.Get()), LocalKeys: c.MaxKeys(), LocalBytes: c.MaxMemory(),
	}
}

// StoreText is where limits are kept, for the log: the engine's URL without the password, or memory.
func (c *Config) StoreText() string { return cmp.Or(c.engine.url.String(), "memory") }
