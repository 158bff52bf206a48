// Package certs keeps the certificates of a server up to date while it runs. It knows no connections.
//
//	files, err := certs.Open(certs.Files{Cert: "server.crt", Key: "server.key"})
//	err = files.Valid(time.Now()) // clients refuse it where this is an error
//	files.Config()                // of a new connection
//	err = files.Reload()          // when they have changed
package certs

import (
	"crypto/tls"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Files names what a server's TLS is made of, all in PEM. The zero value of a field leaves it out.
type Files struct {
	Cert, Key  string // the certificate with those that vouch for it, and its key
	Passphrase string // of the key
	CA, CADir  string // who vouches for clients: a file, and a directory of files
	Clients    tls.ClientAuthType
	Versions   [2]uint16 // least and highest
	Ciphers    []uint16  // of TLS 1.2; nil: Go's choice
}

// Keeper keeps what the files held when they were last whole. Any goroutine may call its methods.
type Keeper struct {
	files   Files
	current atomic.Pointer[generation]
}

// generation is one content of the files. Each has a Config of its own, and so its own keys for resumed sessions: a client whose
// authority has left the files cannot resume.
type generation struct {
	config *tls.Config
	span
}

// span is when all certificates of a chain are valid.
type span struct{ notBefore, notAfter time.Time }

func (s span) valid(at time.Time) error {
	switch {
	case at.After(s.notAfter):
		return fmt.Errorf("it was valid until %s", s.notAfter.UTC().Format(time.RFC3339))
	case at.Before(s.notBefore):
		return fmt.Errorf("it is valid from %s on", s.notBefore.UTC().Format(time.RFC3339))
	}
	return nil
}

// soon is how long before its end a certificate should have been renewed: 14 days, or a third of its time where that is less. Most are
// renewed before that by themselves.
func (s span) soon() time.Duration { return min(14*24*time.Hour, s.notAfter.Sub(s.notBefore)/3) }

// Open reads the files. The error names the file. A certificate that is not valid today is none: see Valid.
func Open(files Files) (*Keeper, error) {
	k := &Keeper{files: files}
	g, err := k.read(false)
	if err != nil {
		return nil, err
	}
	k.current.Store(g)
	return k, nil
}

// Client is for a client of a server with this name. It reads the files: Cert and Key, or neither; without CA, the system knows who vouches
// for the server.
func (f Files) Client(name string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: name}
	cas, err := f.readCAs()
	if err == nil {
		config.RootCAs, err = (&parts{cas: cas}).authorities()
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("the CA certificates: %w", err)
	case (f.Cert == "") != (f.Key == ""):
		return nil, errors.New("a client certificate needs two files: the certificate and its key")
	case f.Cert != "":
		pair, err := ReadPair(f.Cert, f.Key, f.Passphrase)
		if err != nil {
			return nil, fmt.Errorf("the client certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// Config is for a new connection. Nobody may change it.
func (k *Keeper) Config() *tls.Config { return k.current.Load().config }

// NotAfter is when the first of the server's certificates ends.
func (k *Keeper) NotAfter() time.Time { return k.current.Load().notAfter }

// Valid returns an error if a client refuses the server's certificates at that time.
func (k *Keeper) Valid(at time.Time) error {
	if err := k.current.Load().valid(at); err != nil {
		return fmt.Errorf("%s: %w", k.files.Cert, err)
	}
	return nil
}

// EndsSoon reports whether a certificate ends soon after that time, and should have been renewed.
func (k *Keeper) EndsSoon(at time.Time) bool {
	g := k.current.Load()
	return g.notAfter.Sub(at) < g.soon()
}

// Reload reads the files again. New connections get what they hold from now on. A content that is bad, or has a certificate that is not
// valid today, is an error, and leaves everything as it is.
func (k *Keeper) Reload() error {
	g, err := k.read(true)
	if err == nil {
		k.current.Store(g)
	}
	return err
}

// read makes a generation of what the files have.
func (k *Keeper) read(valid bool) (*generation, error) {
	parts, err := k.files.read()
	if err != nil {
		return nil, err
	}
	pair, err := parts.pair(k.files.Passphrase)
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", k.files.Cert, k.files.Key, err)
	}
	clients, err := parts.authorities()
	if err != nil {
		return nil, err
	}
	if k.files.Clients != tls.NoClientCert && clients == nil {
		return nil, errors.New("there is no certificate that vouches for clients")
	}
	g := &generation{}
	if g.span, err = spanOf(pair); err == nil && valid {
		err = g.valid(time.Now())
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", k.files.Cert, err)
	}
	g.config = &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientAuth: k.files.Clients, ClientCAs: clients,
		MinVersion: k.files.Versions[0], MaxVersion: k.files.Versions[1], CipherSuites: k.files.Ciphers,
	}
	return g, nil
}
