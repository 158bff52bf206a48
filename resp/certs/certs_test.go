package certs

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"celld/internal/celldtest"

	"github.com/youmark/pkcs8"
)

// open puts a pair into files that a test may replace, and opens them.
func open(t *testing.T) (k *Keeper, ca *celldtest.Authority, files Files) {
	t.Helper()
	ca = celldtest.NewAuthority(t)
	dir := t.TempDir()
	files = Files{Cert: filepath.Join(dir, "crt"), Key: filepath.Join(dir, "key"), CADir: filepath.Join(dir, "ca"),
		Clients: tls.RequireAndVerifyClientCert}
	os.MkdirAll(filepath.Join(files.CADir, "..data"), 0o755)
	celldtest.WriteFile(t, celldtest.ReadFile(t, ca.File), files.CADir, "ca.pem")
	celldtest.WriteFile(t, "nothing of interest", files.CADir, "README")
	replace(t, ca, files, &x509.Certificate{})
	k, err := Open(files)
	if err != nil {
		t.Fatal(err)
	}
	return k, ca, files
}

func replace(t *testing.T, ca *celldtest.Authority, files Files, c *x509.Certificate) {
	t.Helper()
	cert, key := ca.Sign("x", c)
	celldtest.WriteFile(t, celldtest.ReadFile(t, cert), files.Cert)
	celldtest.WriteFile(t, celldtest.ReadFile(t, key), files.Key)
}

func reload(t *testing.T, k *Keeper, fails string) {
	t.Helper()
	if err := k.Reload(); (err == nil) != (fails == "") || err != nil && !strings.Contains(err.Error(), fails) {
		t.Errorf("%v, want %q", err, fails)
	}
}

// New connections get a new pair. A bad one leaves everything as it is.
func TestReload(t *testing.T) {
	k, ca, files := open(t)
	first := k.Config()
	until := time.Now().Add(time.Hour).Truncate(time.Second)
	replace(t, ca, files, &x509.Certificate{NotAfter: until})
	reload(t, k, "")
	second := k.Config()
	if second == first || !k.NotAfter().Equal(until) {
		t.Errorf("it ends %v, want %v", k.NotAfter(), until)
	}
	_, otherKey := ca.Sign("other", &x509.Certificate{})
	celldtest.WriteFile(t, celldtest.ReadFile(t, otherKey), files.Key)
	reload(t, k, "private key does not match")
	replace(t, ca, files, &x509.Certificate{NotAfter: time.Now().Add(-time.Second)})
	reload(t, k, "it was valid until")
	os.Remove(files.Key)
	reload(t, k, "read the key")
	if k.Config() != second {
		t.Error("a bad one is used")
	}
	replace(t, ca, files, &x509.Certificate{})
	reload(t, k, "")
	celldtest.WriteFile(t, celldtest.ReadFile(t, celldtest.NewAuthority(t).File), files.CADir, "another")
	third := k.Config()
	reload(t, k, "")
	if third.ClientCAs.Equal(k.Config().ClientCAs) {
		t.Error("another authority is not taken")
	}
	os.Remove(filepath.Join(files.CADir, "another"))
	os.Remove(filepath.Join(files.CADir, "ca.pem"))
	reload(t, k, "vouches for clients")
}

// A start takes a certificate whose time has not come or has passed, and says so. A renewal does not.
func TestValid(t *testing.T) {
	k, ca, files := open(t)
	now := time.Now().Truncate(time.Second)
	for _, test := range []struct {
		ends   time.Time // it begins 48 hours before
		passes bool
	}{
		{now.Add(72 * time.Hour), false}, {now.Add(-time.Hour), false}, {now.Add(time.Hour), true},
	} {
		replace(t, ca, files, &x509.Certificate{NotAfter: test.ends})
		fresh, err := Open(files)
		if err != nil {
			t.Fatal(err)
		}
		if err := k.Reload(); (err == nil) != test.passes {
			t.Errorf("ends %v: a reload: %v", test.ends, err)
		}
		pair, err := ReadPair(files.Cert, files.Key, "")
		if err != nil {
			t.Fatal(err)
		}
		begins := test.ends.Add(-48 * time.Hour)
		for at, valid := range map[time.Time]bool{
			now: test.passes, begins: true, begins.Add(-time.Second): false, test.ends: true, test.ends.Add(time.Second): false,
		} {
			err, same := fresh.Valid(at), Valid(pair, at)
			if (err == nil) != valid || (same == nil) != valid {
				t.Errorf("from %v to %v, at %v: %v, %v", begins, test.ends, at, err, same)
			}
			want := "it is valid from " + begins.UTC().Format(time.RFC3339) + " on"
			if at.After(begins) {
				want = "it was valid until " + test.ends.UTC().Format(time.RFC3339)
			}
			if err != nil && err.Error() != files.Cert+": "+want {
				t.Error(err)
			}
		}
		for at, soon := range map[time.Duration]bool{16 * time.Hour: false, 16*time.Hour - time.Second: true, -time.Hour: true} {
			if fresh.EndsSoon(test.ends.Add(-at)) != soon {
				t.Errorf("%v before its end: %v", at, !soon)
			}
		}
	}
	if s := (span{now, now.Add(90 * 24 * time.Hour)}); s.soon() != 14*24*time.Hour {
		t.Errorf("of 90 days, %v is soon", s.soon())
	}
}

// Of a chain, all must be valid.
func TestSpanOfAChain(t *testing.T) {
	ca := celldtest.NewAuthority(t)
	now := time.Now().Truncate(time.Second)
	var chain tls.Certificate
	for _, ends := range []time.Duration{30, 40, 20, 25} {
		cert, _ := ca.Sign("x", &x509.Certificate{NotAfter: now.Add(ends * time.Hour)})
		block, _ := pem.Decode([]byte(celldtest.ReadFile(t, cert)))
		chain.Certificate = append(chain.Certificate, block.Bytes)
	}
	if s, err := spanOf(chain); err != nil || !s.notBefore.Equal(now.Add(-8*time.Hour)) || !s.notAfter.Equal(now.Add(20*time.Hour)) {
		t.Errorf("%v to %v, %v", s.notBefore, s.notAfter, err)
	}
	if _, err := spanOf(tls.Certificate{Certificate: [][]byte{[]byte("x")}}); err == nil {
		t.Error("it has no bad certificate")
	}
	if Valid(tls.Certificate{Certificate: [][]byte{[]byte("x")}}, now) == nil {
		t.Error("a bad certificate is valid")
	}
}

// Each file that cannot be read is named, with what it is for.
func TestFilesThatCannotBeRead(t *testing.T) {
	_, _, files := open(t)
	for want, spoil := range map[string]func(f *Files){
		"read the certificate: ":                       func(f *Files) { f.Cert = "/none" },
		"read the key: ":                               func(f *Files) { f.Key = "/none" },
		"read the certificates that vouch for clients": func(f *Files) { f.CADir, f.CA = "", "/none" },
		"read the certificates that vouch for client":  func(f *Files) { f.CADir = "/none" },
		"it has no certificate in PEM":                 func(f *Files) { f.CADir, f.CA = "", files.Key },
		"there is no certificate that":                 func(f *Files) { f.CADir = "" },
		files.Cert + " and " + files.Cert + ": ":       func(f *Files) { f.Key = files.Cert },
	} {
		f := files
		spoil(&f)
		if _, err := Open(f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for _, f := range []Files{{Cert: "/none", Key: files.Key}, {Cert: files.Cert, Key: files.Cert}} {
		if pair, err := ReadPair(f.Cert, f.Key, ""); err == nil || pair.Certificate != nil {
			t.Errorf("%+v: %v", f, err)
		}
	}
	files.Clients, files.CADir = tls.NoClientCert, ""
	if _, err := Open(files); err != nil {
		t.Error(err)
	}
}

// Those of a file and of a directory vouch for clients.
func TestAuthorities(t *testing.T) {
	_, _, files := open(t)
	other := celldtest.NewAuthority(t)
	files.CA = other.File
	files.Versions, files.Ciphers = [2]uint16{tls.VersionTLS12, tls.VersionTLS13}, []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}
	k, err := Open(files)
	if err != nil {
		t.Fatal(err)
	}
	want := x509.NewCertPool()
	for _, path := range []string{other.File, filepath.Join(files.CADir, "ca.pem")} {
		want.AppendCertsFromPEM([]byte(celldtest.ReadFile(t, path)))
	}
	c := k.Config()
	if !c.ClientCAs.Equal(want) || c.MinVersion != tls.VersionTLS12 || c.MaxVersion != tls.VersionTLS13 || len(c.CipherSuites) != 1 ||
		c.ClientAuth != files.Clients {
		t.Errorf("%+v", c)
	}
}

// A key may have a passphrase. No error shows it.
func TestPassphrase(t *testing.T) {
	_, _, files := open(t)
	block, _ := pem.Decode([]byte(celldtest.ReadFile(t, files.Key)))
	key, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	der, err := pkcs8.MarshalPrivateKey(key, []byte("sesame"), nil)
	if err != nil {
		t.Fatal(err)
	}
	celldtest.WriteFile(t, string(pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: der})), files.Key)
	for pass, want := range map[string]string{"sesame": "", "wrong-one": "does not open the key", "": "no tls-key-file-pass"} {
		files.Passphrase = pass
		_, err := Open(files)
		if (err == nil) != (want == "") ||
			err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "wrong-one")) {
			t.Errorf("passphrase %q: %v", pass, err)
		}
	}
	celldtest.WriteFile(t,
		"-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nAAAA\n-----END EC PRIVATE KEY-----\n",
		files.Key)
	if _, err := Open(files); err == nil || !strings.Contains(err.Error(), "openssl pkcs8") {
		t.Error(err)
	}
}

// FuzzFiles tries any bytes as each file. Bad ones are errors.
func FuzzFiles(f *testing.F) {
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
		[]byte("-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"))
	f.Fuzz(func(t *testing.T, cert, key []byte) {
		p := &parts{cert: cert, key: key, cas: []part{{"x", cert, false}}}
		if _, err := p.pair("x"); err == nil {
			t.Error("it is taken for a certificate and its key")
		}
		_, _ = p.authorities()
	})
}
