package certs

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"celld/persistence/regular"

	"github.com/youmark/pkcs8"
)

// parts are the contents of Files.
type parts struct {
	cert, key []byte
	cas       []part
}

type part struct {
	path string
	text []byte
	many bool // one of a directory's, which may have others than certificates
}

func (f *Files) read() (*parts, error) {
	p := &parts{}
	var err error
	if p.cert, err = regular.ReadFile(f.Cert); err != nil {
		return nil, fmt.Errorf("read the certificate: %w", err)
	}
	if p.key, err = regular.ReadFile(f.Key); err != nil {
		return nil, fmt.Errorf("read the key: %w", err)
	}
	if p.cas, err = f.readCAs(); err != nil {
		return nil, fmt.Errorf("read the certificates that vouch for clients: %w", err)
	}
	return p, nil
}

func (f *Files) readCAs() (cas []part, err error) {
	if f.CA != "" {
		cas = append(cas, part{path: f.CA})
	}
	if f.CADir != "" {
		entries, err := os.ReadDir(f.CADir)
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			path := filepath.Join(f.CADir, entry.Name())
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() { // Kubernetes puts directories beside the files
				cas = append(cas, part{path: path, many: true})
			}
		}
	}
	for i := range cas {
		if cas[i].text, err = regular.ReadFile(cas[i].path); err != nil {
			return nil, err
		}
	}
	return cas, nil
}

// pair returns the certificate with its key. The error says nothing of the key's content.
func (p *parts) pair(passphrase string) (tls.Certificate, error) {
	key, err := openKey(p.key, passphrase)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(p.cert, key)
}

// openKey decrypts a key in PKCS #8 that has a passphrase. It returns others as they are.
func openKey(text []byte, passphrase string) ([]byte, error) {
	block, _ := pem.Decode(text)
	switch {
	case block == nil:
		return text, nil
	case block.Headers["DEK-Info"] != "":
		return nil, errors.New("the key is encrypted in an old format: convert it with openssl pkcs8 -topk8")
	case block.Type != "ENCRYPTED PRIVATE KEY":
		return text, nil
	case passphrase == "":
		return nil, errors.New("the key is encrypted, and there is no tls-key-file-pass")
	}
	key, err := pkcs8.ParsePKCS8PrivateKey(block.Bytes, []byte(passphrase))
	if err != nil {
		return nil, errors.New("tls-key-file-pass does not open the key")
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// authorities returns nil if the files name none.
func (p *parts) authorities() (*x509.CertPool, error) {
	var pool *x509.CertPool
	for _, ca := range p.cas {
		one := x509.NewCertPool()
		switch {
		case one.AppendCertsFromPEM(ca.text):
			if pool == nil {
				pool = x509.NewCertPool()
			}
			pool.AppendCertsFromPEM(ca.text)
		case !ca.many:
			return nil, fmt.Errorf("%s: it has no certificate in PEM", ca.path)
		}
	}
	return pool, nil
}

func spanOf(pair tls.Certificate) (s span, err error) {
	for i, der := range pair.Certificate {
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return s, err
		}
		if i == 0 || cert.NotBefore.After(s.notBefore) {
			s.notBefore = cert.NotBefore
		}
		if i == 0 || cert.NotAfter.Before(s.notAfter) {
			s.notAfter = cert.NotAfter
		}
	}
	return s, nil
}

// Valid returns an error if the other end refuses a certificate that ReadPair has returned at that time.
func Valid(pair tls.Certificate, at time.Time) error {
	s, err := spanOf(pair)
	if err == nil {
		err = s.valid(at)
	}
	return err
}

// ReadPair returns a certificate with its key, as a client shows it.
func ReadPair(certFile, keyFile, passphrase string) (tls.Certificate, error) {
	p, err := (&Files{Cert: certFile, Key: keyFile}).read()
	if err != nil {
		return tls.Certificate{}, err
	}
	return p.pair(passphrase)
}
