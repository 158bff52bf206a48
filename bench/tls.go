//go:build linux

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// takesTLS tells that the peer is asked in the rows about TLS.
func (p *peer) takesTLS() bool { return p.isCelld() || p.name == "redis-cell" || p.pings() }

// tlsArgs are the flags of celld and of redis-server about TLS.
func tlsArgs(s *server) []string {
	if !s.room.tls {
		return nil
	}
	return []string{"--tls-port", strconv.Itoa(s.otherPort), "--tls-cert-file", s.certPath(), "--tls-key-file", s.certPath(),
		"--tls-auth-clients", "no"}
}

// certPath is the file of the server's certificate and its key.
func (s *server) certPath() string { return filepath.Join(s.dir, "server.pem") }

// writeCertificate makes a certificate that vouches for itself.
func (s *server) writeCertificate() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	keyDER, err2 := x509.MarshalPKCS8PrivateKey(key)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})...)
	return os.WriteFile(s.certPath(), text, 0o600)
}
