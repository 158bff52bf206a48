package engine

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"path/filepath"
	"testing"
	"time"

	"celld/integration_test/harness"
)

// authority signs certificates for a test.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // its certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.file, _ = a.sign("ca", &x509.Certificate{
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	return a
}

// sign writes a certificate and its key. The authority's first is its own.
func (a *authority) sign(name string, c *x509.Certificate) (certFile, keyFile string) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c.SerialNumber, c.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	if a.cert == nil {
		a.cert, a.key = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(a.dir, name+".crt"), filepath.Join(a.dir, name+".key")
	harness.WriteFile(a.t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), certFile)
	harness.WriteFile(a.t, string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})), keyFile)
	return certFile, keyFile
}

// TestStoreTLS keeps limits on engines that speak TLS, with and without certificates of clients.
func TestStoreTLS(t *testing.T) {
	t.Parallel()
	ca, stranger := newAuthority(t), newAuthority(t)
	cert, key := ca.sign("server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"cache.test"}})
	usage := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	mine, myKey := ca.sign("celld", &x509.Certificate{ExtKeyUsage: usage})
	other, otherKey := stranger.sign("celld", &x509.Certificate{ExtKeyUsage: usage})
	engine := func(clients string) (url string) {
		port := harness.FreePort(t)
		harness.StartEngine(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", ca.file, "--tls-auth-clients", clients)
		return "rediss://127.0.0.1:" + port
	}
	open, closed := engine("no"), engine("yes")
	trust := []string{"--store-tls-ca-cert-file", ca.file}
	own := append([]string{"--store-tls-cert-file", mine, "--store-tls-key-file", myKey}, trust...)
	cluster := harness.Redis(t).Cluster(t, "--tls-cluster", "yes", "--tls-replication", "yes",
		"--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", ca.file, "--tls-auth-clients", "optional")
	onCluster := harness.Start(t, append([]string{"--store", cluster.URL}, trust...)...)
	for i := range 10 { // in slots of all masters
		decides(t, onCluster, fmt.Sprint("k", i))
	}
	for name, args := range map[string][]string{
		"open":        append([]string{"--store", open}, trust...),
		"server-name": append([]string{"--store", open + "?server-name=cache.test"}, trust...),
		"closed":      append([]string{"--store", closed}, own...),
	} {
		decides(t, harness.Start(t, args...), name)
	}
	for _, test := range []struct {
		words string
		args  []string
	}{
		{"certificate is refused: x509: certificate signed by unknown authority", []string{"--store", open}},
		{"certificate is refused: x509: certificate signed by unknown", []string{"--store", open, "--store-tls-ca-cert-file", stranger.file}},
		{"valid for cache.test, not elsewhere.test", append([]string{"--store", open + "?server-name=elsewhere.test"}, trust...)},
		{"the engine refuses the connection", append([]string{"--store", closed}, trust...)},
		{"the engine refuses the connection", append([]string{"--store", closed, "--store-tls-cert-file", other, "--store-tls-key-file", otherKey}, trust...)},
		{"has none in PEM", []string{"--store", open, "--store-tls-ca-cert-file", key}},
		{"client certificate", append([]string{"--store", closed, "--store-tls-cert-file", mine, "--store-tls-key-file", otherKey}, trust...)},
	} {
		doesNotStart(t, 1, test.words, nil, test.args...)
	}
}
