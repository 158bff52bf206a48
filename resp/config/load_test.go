package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"

	"celld/internal/celldtest"
)

// given returns a configuration with these settings, and whether one is set.
func given(t *testing.T, settings ...string) (*Config, func(name string) bool) {
	t.Helper()
	cfg, set := New(door()), map[string]bool{}
	for _, setting := range settings {
		name, value, _ := strings.Cut(setting, "=")
		set[name] = true
		if err := cfg.Setting(name).Value.Set(value); err != nil {
			t.Fatalf("%s: %v", setting, err)
		}
	}
	return cfg, func(name string) bool { return set[name] }
}

// Settings that do not go together are errors that name them.
func TestSettingsThatDoNotGoTogether(t *testing.T) {
	word, empty := celldtest.TempFile(t, " warning\r\n"), celldtest.TempFile(t, "\r\n")
	for settings, want := range map[string]string{
		"":                                          "",
		"requirepass=x requirepass-file=" + word:    "requirepass and requirepass-file are both set; give one",
		"requirepass-file=" + empty:                 "read the password: " + empty + " is empty",
		"loglevel=debug loglevel-file=" + word:      "loglevel and loglevel-file are both set; give one",
		"loglevel-file=/none":                       "read the loglevel: ",
		"loglevel-file=" + empty:                    "read the loglevel: " + empty + ": ",
		"tls-cert-file=x":                           "--tls-cert-file is for --tls-port or --door-tls, which are not set",
		"tls-key-file=x":                            "--tls-key-file is for --tls-port or --door-tls, which are not set",
		"door-tls=yes tls-key-file=x":               "--door-tls needs --tls-cert-file and --tls-ca-cert-file",
		"door-tls=yes tls-port=1":                   "--tls-port needs ",
		"door-fails=now door-tls=yes":               "now\n--door-tls needs ",
		"tls-port=1":                                "--tls-port needs --tls-cert-file and --tls-key-file and --tls-ca-cert-file (or --tls-ca-cert-dir, or --tls-auth-clients no)",
		"tls-port=1 tls-cert-file=x":                "--tls-port needs --tls-key-file and --tls-ca-cert-file (or",
		"tls-port=1 tls-cert-file=x tls-key-file=x": "--tls-port needs --tls-ca-cert-file (or --tls-ca-cert-dir, or --tls-auth-clients no)",
		"tls-port=1 tls-cert-file=x tls-key-file=x tls-auth-clients=optional":                                         "--tls-port needs --tls-ca-cert-file",
		"tls-port=1 tls-cert-file=/x tls-key-file=x tls-ca-cert-file=x":                                               "TLS: read the certificate",
		"tls-port=1 tls-cert-file=/x tls-key-file=x tls-ca-cert-dir=x":                                                "TLS: read the certificate",
		"tls-port=1 tls-cert-file=x tls-key-file=x tls-auth-clients=no tls-auth-clients-user=CN":                      "--tls-auth-clients-user needs certificates",
		"tls-port=1 tls-cert-file=x tls-key-file=x tls-auth-clients=no tls-client-cert-file=x":                        "--tls-client-cert-file and --tls-client-key-file must be given together",
		"tls-port=1 tls-cert-file=/x tls-key-file=x tls-auth-clients=no tls-client-cert-file=x tls-client-key-file=x": "TLS: read the certificate",
	} {
		cfg, set := given(t, strings.Fields(settings)...)
		if err := cfg.Load(set); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", settings, err, want)
		}
	}
}

// The contents of files become settings, and from there options of other packages.
func TestOptions(t *testing.T) {
	cfg, set := given(t, "loglevel-file="+celldtest.TempFile(t, "debug\n"))
	if err := cfg.Load(set); err != nil {
		t.Fatal(err)
	}
	if got := cfg.LogLevel.Get(); got != "debug" {
		t.Error(got)
	}
	path := cfg.LogLevelFile.Get()
	for _, step := range []struct {
		text, level string
		ok          bool
	}{{"warning", "warning", true}, {"warning ", "warning", true}, {"loud", "warning", false}} {
		if err := os.WriteFile(path, []byte(step.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if level, err := cfg.ReloadLogLevel(); level != step.level || (err == nil) != step.ok {
			t.Errorf("%q: %s, %v", step.text, level, err)
		}
	}
	_ = os.Remove(path)
	if _, err := cfg.ReloadLogLevel(); err == nil {
		t.Error("a level is read from no file")
	}
	cfg, _ = given(t, "dir=d", "dbfilename=r", "appendonly=yes", "appendfilename=a", "aof-load-truncated=no", "dir-lock-wait=3",
		"save=60 2", "auto-aof-rewrite-percentage=50", "auto-aof-rewrite-min-size=1mb")
	p := cfg.Persistence()
	if p.Dir != "d" || p.DBFilename != "r" || !p.AppendOnly || p.AppendFilename != "a" || p.LoadTruncated || p.LockWait != 3*time.Second ||
		len(p.SavePoints()) != 1 || p.RewritePercentage() != 50 || p.RewriteMinSize() != 1<<20 {
		t.Errorf("%+v", p)
	}
}

// Ranges, addresses and names are read to their ends.
func TestBounds(t *testing.T) {
	for setting, ok := range map[string]bool{
		"bind=A.z_Z-a": true, "bind=zZ9": true, "bind=a@b": false, "bind=a[b": false, "bind=a`b": false, "bind=a{b": false,
		"bind=a/b": false, "bind=a:b": false, "bind=9a0": true, "bind=.a": false, "bind=127.0.0.256": false,
		"proto-max-bulk-len=1kb": true, "proto-max-bulk-len=1023": false, "acllog-max-len=1024": true, "acllog-max-len=1025": false,
		"acllog-max-len=0":      true,
		"tls-protocols=TLSv1.3": true, "tls-protocols=tlsv1.2 TLSV1.3": true, "tls-protocols=": true, "tls-protocols=TLSv1.1": false,
		"tls-ciphersuites=": true, "tls-ciphersuites=x": false, "tls-ciphers=ecdhe-rsa-aes128-sha:ECDHE-ECDSA-AES256-SHA": true,
		"tls-ciphers=RC4": false, "protected-mode=YES": true,
	} {
		name, value, _ := strings.Cut(setting, "=")
		if err := New().Setting(name).Value.Set(value); (err == nil) != ok {
			t.Errorf("%s: %v", setting, err)
		}
	}
	for text, want := range map[string][2]uint16{
		"": {0x303, 0x304}, "TLSv1.2": {0x303, 0x303}, "TLSv1.3": {0x304, 0x304}, "TLSv1.3 TLSv1.2": {0x303, 0x304},
		"TLSv1.2 TLSv1.3": {0x303, 0x304},
	} {
		if got, _ := parseProtocols(text); got != want {
			t.Errorf("%s: %x", text, got)
		}
	}
	for settings, want := range map[string]bool{
		"port=0": true, "port=1": true, "port=0 unixsocket=x": false, "port=0 tls-port=1": false, "port=1 tls-port=1 unixsocket=x": true,
	} {
		if cfg, _ := given(t, strings.Fields(settings)...); cfg.PlainTCP() != want {
			t.Errorf("%s: TCP without TLS is %v", settings, !want)
		}
	}
	for n, want := range map[int64]string{
		0: "0", 1: "1", 1023: "1023", 1 << 10: "1kb", 3 << 19: "1536kb", 1 << 20: "1mb", 5 << 30: "5gb", 1e6: "1000000",
	} {
		if got := sizeText(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
	if cfg, _ := given(t, "maxmemory-policy=noeviction"); !cfg.NoEviction() || New().NoEviction() {
		t.Error("the policy is not read")
	}
}

// A check finds certificates that others would refuse, and says so of each.
func TestCheckOfCertificates(t *testing.T) {
	old, good := pairOf(t, time.Now().Add(-time.Hour)), pairOf(t, time.Now().Add(90*24*time.Hour))
	soon := pairOf(t, time.Now().Add(time.Minute))
	client := func(path string) string { return "tls-client-cert-file=" + path + " tls-client-key-file=" + path }
	server := func(path string) string {
		return "tls-port=1 tls-auth-clients=no tls-cert-file=" + path + " tls-key-file=" + path + " "
	}
	for settings, want := range map[string]string{
		"":                          "",
		client(good):                "",
		client(old):                 "celld ready fails with the certificate of --tls-client-cert-file: " + old + ": it was valid until",
		client("/none"):             "celld ready fails with the certificate of --tls-client-cert-file: /none: ",
		server(good):                "",
		server(good) + client(good): "",
		server(good) + client(old):  "celld ready fails",
		server(old):                 "TLS: clients refuse the certificate: " + old + ": it was valid until",
	} {
		cfg, _ := given(t, strings.Fields(settings)...)
		if err := cfg.TLS.load(nil); err != nil && strings.HasPrefix(settings, "tls-port") {
			t.Fatal(err)
		}
		if err := cfg.checkCertificates(time.Now()); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", settings, err, want)
		}
		warns := strings.HasPrefix(settings, "tls-port") && strings.Contains(settings, old) && !strings.Contains(settings, good)
		if lines := cfg.warnings(); len(lines) > 0 != warns {
			t.Errorf("%s: %q", settings, lines)
		}
	}
	cfg, _ := given(t, strings.Fields(server(soon))...)
	if err := cfg.TLS.load(nil); err != nil {
		t.Fatal(err)
	}
	if lines := cfg.warnings(); len(lines) != 1 || !strings.HasPrefix(lines[0], "the certificate ends soon: "+soon+" is valid until ") {
		t.Errorf("%q", lines)
	}
}

// pairOf writes a certificate that is valid until then, and its key, into one file.
func pairOf(t *testing.T, until time.Time) (path string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-100 * 24 * time.Hour), NotAfter: until}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return celldtest.TempFile(t, block("CERTIFICATE", cert)+block("PRIVATE KEY", secret))
}

// A process that starts waits longer for the directory than the one before it may take to stop.
func TestDirLockWaitIsLongEnough(t *testing.T) {
	if c := New(); c.DirLockWait.Get() <= c.ShutdownTimeout.Get()+5 {
		t.Errorf("it waits for %d s, and stopping takes up to %d s and the last write", c.DirLockWait.Get(), c.ShutdownTimeout.Get())
	}
}
