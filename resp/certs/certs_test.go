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

	"celld/integration_test/harness"

	"github.com/youmark/pkcs8"
)

// open puts a pair into files that a test may replace, and opens them.
func open(t *testing.T) (k *Keeper, ca *harness.Authority, files Files) {
	t.Helper()
	ca = harness.NewAuthority(t)
	dir := t.TempDir()
	files = Files{Cert: filepath.Join(dir, "crt"), Key: filepath.Join(dir, "key"), CADir: filepath.Join(dir, "ca"), Clients: tls.RequireAndVerifyClientCert}
	os.MkdirAll(filepath.Join(files.CADir, "..data"), 0o755)
	harness.WriteFile(t, harness.ReadFile(t, ca.File), files.CADir, "ca.pem")
	harness.WriteFile(t, "nothing of interest", files.CADir, "README")
	replace(t, ca, files, &x509.Certificate{})
	k, err := Open(files)
	if err != nil {
		t.Fatal(err)
	}
	return k, ca, files
}

func replace(t *testing.T, ca *harness.Authority, files Files, c *x509.Certificate) {
	t.Helper()
	cert, key := ca.Sign("x", c)
	harness.WriteFile(t, harness.ReadFile(t, cert), files.Cert)
	harness.WriteFile(t, harness.ReadFile(t, key), files.Key)
}

func look(t *testing.T, k *Keeper, want bool, fails string) {
	t.Helper()
	taken, err := k.Look()
	if taken != want || (err == nil) != (fails == "") || err != nil && !strings.Contains(err.Error(), fails) {
		t.Errorf("a look: %v, %v; want %v and %q", taken, err, want, fails)
	}
}

// A new pair is taken at once. A bad one is an error once, when it has been there for two looks.
func TestLook(t *testing.T) {
	k, ca, files := open(t)
	first := k.Config()
	look(t, k, false, "")
	until := time.Now().Add(time.Hour).Truncate(time.Second)
	replace(t, ca, files, &x509.Certificate{NotAfter: until})
	look(t, k, true, "")
	look(t, k, false, "")
	second := k.Config()
	if second == first || !k.NotAfter().Equal(until) {
		t.Errorf("it ends %v, want %v", k.NotAfter(), until)
	}
	_, otherKey := ca.Sign("other", &x509.Certificate{})
	harness.WriteFile(t, harness.ReadFile(t, otherKey), files.Key)
	look(t, k, false, "") // half of a change, perhaps
	look(t, k, false, "private key does not match")
	look(t, k, false, "")
	replace(t, ca, files, &x509.Certificate{NotAfter: time.Now().Add(-time.Second)})
	look(t, k, false, "")
	look(t, k, false, "it is valid from")
	look(t, k, false, "")
	os.Remove(files.Key)
	look(t, k, false, "")
	look(t, k, false, "read the key")
	if k.Config() != second {
		t.Error("a bad one is used")
	}
	replace(t, ca, files, &x509.Certificate{})
	look(t, k, true, "")
	harness.WriteFile(t, harness.ReadFile(t, harness.NewAuthority(t).File), files.CADir, "another")
	look(t, k, true, "")
	os.Remove(filepath.Join(files.CADir, "another"))
	os.Remove(filepath.Join(files.CADir, "ca.pem"))
	look(t, k, false, "")
	look(t, k, false, "vouches for clients")
}

// A key may have a passphrase. No error shows it.
func TestPassphrase(t *testing.T) {
	_, _, files := open(t)
	block, _ := pem.Decode([]byte(harness.ReadFile(t, files.Key)))
	key, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	der, err := pkcs8.MarshalPrivateKey(key, []byte("sesame"), nil)
	if err != nil {
		t.Fatal(err)
	}
	harness.WriteFile(t, string(pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: der})), files.Key)
	for pass, want := range map[string]string{"sesame": "", "wrong-one": "does not open the key", "": "no tls-key-file-pass"} {
		files.Passphrase = pass
		_, err := Open(files)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "wrong-one")) {
			t.Errorf("passphrase %q: %v", pass, err)
		}
	}
	harness.WriteFile(t, "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nAAAA\n-----END EC PRIVATE KEY-----\n", files.Key)
	if _, err := Open(files); err == nil || !strings.Contains(err.Error(), "openssl pkcs8") {
		t.Error(err)
	}
}

// FuzzFiles has whatever for each file. Bad ones are errors.
func FuzzFiles(f *testing.F) {
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), []byte("-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"))
	f.Fuzz(func(t *testing.T, cert, key []byte) {
		p := &parts{cert: cert, key: key, cas: []part{{"x", cert, false}}}
		if _, err := p.pair("x"); err == nil {
			t.Error("it is taken for a certificate and its key")
		}
		_, _ = p.authorities()
	})
}
