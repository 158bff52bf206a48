package engine

import (
	"crypto/x509"
	"fmt"
	"net"
	"testing"

	"celld/integration_test/harness"
	"celld/integration_test/harness/engines"
	"celld/internal/celldtest"
)

// TestStoreTLS keeps limits on engines that speak TLS, with and without certificates of clients.
func TestStoreTLS(t *testing.T) {
	t.Parallel()
	ca, stranger := celldtest.NewAuthority(t), celldtest.NewAuthority(t)
	cert, key := ca.Sign("server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"cache.test"}})
	usage := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	mine, myKey := ca.Sign("celld", &x509.Certificate{ExtKeyUsage: usage})
	other, otherKey := stranger.Sign("celld", &x509.Certificate{ExtKeyUsage: usage})
	engine := func(clients string) (url string) {
		port := harness.FreePort(t)
		engines.StartEngine(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", ca.File,
			"--tls-auth-clients", clients)
		return "rediss://127.0.0.1:" + port
	}
	open, closed := engine("no"), engine("yes")
	trust := []string{"--store-tls-ca-cert-file", ca.File}
	own := append([]string{"--store-tls-cert-file", mine, "--store-tls-key-file", myKey}, trust...)
	cluster := engines.Redis(t).Cluster(t, "--tls-cluster", "yes", "--tls-replication", "yes",
		"--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", ca.File, "--tls-auth-clients", "optional")
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
		{"celld refuses the engine's certificate: x509: certificate signed by unknown authority", []string{"--store", open}},
		{"celld refuses the engine's certificate: x509: certificate signed by unknown", []string{"--store", open, "--store-tls-ca-cert-file", stranger.File}},
		{"valid for cache.test, not elsewhere.test", append([]string{"--store", open + "?server-name=elsewhere.test"}, trust...)},
		{"the engine refuses the connection", append([]string{"--store", closed}, trust...)},
		{"the engine refuses the connection", append([]string{"--store", closed, "--store-tls-cert-file", other, "--store-tls-key-file", otherKey}, trust...)},
		{"it has no certificate in PEM", []string{"--store", open, "--store-tls-ca-cert-file", key}},
		{"client certificate", append([]string{"--store", closed, "--store-tls-cert-file", mine, "--store-tls-key-file", otherKey}, trust...)},
	} {
		doesNotStart(t, 1, test.words, nil, test.args...)
	}
}
