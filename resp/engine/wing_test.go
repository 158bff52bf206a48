package engine

import (
	"crypto/x509"
	"strings"
	"testing"
	"time"

	"celld/internal/celldtest"
	"celld/resp"
	"celld/resp/config"
	"celld/resp/config/configtest"
	"celld/store/memory"
)

// given returns a configuration with these settings, the part's own among them, and whether one is set.
func given(t *testing.T, texts ...string) (*config.Config, *Settings, func(name string) bool) {
	t.Helper()
	s := &Settings{}
	cfg, set := configtest.Given(t, s.Part(), texts...)
	return cfg, s, set
}

// Settings that do not go together are errors that name them.
func TestSettingsThatDoNotGoTogether(t *testing.T) {
	word, empty := celldtest.TempFile(t, " word\r\n"), celldtest.TempFile(t, "\r\n")
	for settings, want := range map[string]string{
		"store=redis://h appendonly=yes":                                                       "--appendonly must be no",
		"store=redis://h save=1,1":                                                             "--save must be empty",
		"store=redis://h store-tls-key-file=x":                                                 "certificates are for --store rediss://",
		"store=redis://h store-tls-ca-cert-file=x":                                             "certificates are for --store rediss://",
		"store=rediss://h store-tls-key-file=x":                                                "must be given together",
		"store=rediss://h store-tls-key-file=x store-tls-cert-file=x store-tls-ca-cert-file=x": "",
		"store=h":              "--store: ",
		"store-tls-key-file=x": "", // without an engine it does not matter
		"store=redis://h store-password-file=" + empty:                 "read the engine's password: " + empty + " is empty",
		"store=redis://h store-password-file=/none":                    "read the engine's password: ",
		"store=redis://h store-password=x store-password-file=" + word: "store-password and store-password-file are both set; give one",
	} {
		words := strings.Fields(settings)
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], "save=1,1", "save=1 1")
		}
		cfg, _, set := given(t, words...)
		if err := cfg.Load(set); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", settings, err, want)
		}
	}
}

// The settings become options of the store.
func TestOptions(t *testing.T) {
	cfg, s, set := given(t, "store=rediss://user@there", "store-prefix=p:", "store-username=u",
		"store-password-file="+celldtest.TempFile(t, "hush\n"),
		"store-timeout=2s", "store-max-waiting=1mb", "store-denials=9", "store-failure=local", "store-local-share=7", "max-keys=11",
		"maxmemory=12mb", "store-tls-ca-cert-file=a", "store-tls-cert-file=b", "store-tls-key-file=c")
	if err := cfg.Load(set); err != nil {
		t.Fatal(err)
	}
	o := s.Options(cfg)
	if o.URL != "rediss://user@there" || o.Prefix != "p:" || o.Username != "u" || o.Password != "hush" || o.Timeout != 2*time.Second ||
		o.MaxWaiting != 1<<20 || o.Denials != 9 || o.LocalShare != 7 || o.LocalKeys != 11 || o.LocalBytes != 12<<20 ||
		o.TLSCACertFile != "a" || o.TLSCertFile != "b" || o.TLSKeyFile != "c" {
		t.Errorf("%+v", o)
	}
}

// Values are read to their ends.
func TestBounds(t *testing.T) {
	for setting, ok := range map[string]bool{
		"store-timeout=1ms": true, "store-timeout=999µs": false, "store-timeout=1m": true, "store-timeout=60001ms": false,
		"store-timeout=5": false, "store-failure=deny": true, "store-failure=maybe": false,
	} {
		name, value, _ := strings.Cut(setting, "=")
		if err := config.New((&Settings{}).Part()).Setting(name).Value.Set(value); (err == nil) != ok {
			t.Errorf("%s: %v", setting, err)
		}
	}
}

// --check finds a certificate that an engine would refuse, and other faults that remote.Check finds.
func TestCheckOfCertificates(t *testing.T) {
	authority := celldtest.NewAuthority(t)
	old, oldKey := authority.Sign("old", &x509.Certificate{NotAfter: time.Now().Add(-time.Hour)})
	good, goodKey := authority.Sign("good", &x509.Certificate{})
	for settings, want := range map[string]string{
		"": "",
		"store=redis:// store-tls-cert-file=" + good + " store-tls-key-file=" + goodKey: "",
		"store=redis:// store-tls-cert-file=" + old + " store-tls-key-file=" + oldKey:   "the engine refuses the certificate: " + old + ": it was valid until",
		"store=redis:// store-tls-cert-file=/none store-tls-key-file=/none":             "", // which load refuses, so that no engine is asked
		"store=rediss://h store-tls-cert-file=/none store-tls-key-file=" + goodKey:      "/none",
	} {
		cfg, s, _ := given(t, strings.Fields(settings)...)
		if _, _, err := s.check(cfg); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", settings, err, want)
		}
	}
}

// CONFIG SET store-failure takes effect at once: while the engine has never been there, calls are decided by it.
func TestConfigSetStoreFailure(t *testing.T) {
	cfg, s, _ := given(t, "store=unix:///no/such/engine", "store-timeout=1m")
	o := resp.Options{Config: cfg, Store: memory.New(memory.Options{Shards: 1})}
	if err := s.open(&o); err != nil {
		t.Fatal(err)
	}
	defer o.Engine.Close()
	set := func(mode string) error {
		err := cfg.Change([][]byte{[]byte("store-failure"), []byte(mode)})
		return err
	}
	for _, mode := range []string{"error", "allow", "deny", "local,api=allow"} {
		err := set(mode)
		if is := o.Engine.Facts().Mode; err != nil || is != strings.Split(mode, ",")[0] {
			t.Errorf("store-failure is %s, %v, and the mode %s", mode, err, is)
		}
	}
	if err := set("never"); err == nil || !strings.HasSuffix(err.Error(), "argument must be error, allow, deny or local, not 'never'") {
		t.Error(err)
	}
	if got := cfg.Setting("store-failure").Value.String(); got != "local,api=allow" {
		t.Error(got)
	}
}

// Without --store nothing is opened.
func TestNoEngine(t *testing.T) {
	cfg, s, _ := given(t)
	o := resp.Options{Config: cfg, Store: memory.New(memory.Options{Shards: 1})}
	if err := s.open(&o); err != nil || o.Engine != nil {
		t.Error(o.Engine, err)
	}
}
