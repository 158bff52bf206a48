// Package certs keeps the certificates of a server up to date while it runs. It knows no connections.
//
//	files, err := certs.Open(certs.Files{Cert: "server.crt", Key: "server.key"})
//	err = files.Valid(time.Now()) // clients refuse it where this is an error
//	files.Config()                // of a new connection
//	err = files.Look()            // every few seconds
package certs

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
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

	mu       sync.Mutex        // one look at a time
	suspect  [sha256.Size]byte // the bad content of the last look
	reported [sha256.Size]byte // the bad content that Look has returned an error for
}

// generation is one content of the files. Each has a Config of its own, and so its own keys for resumed sessions: a client whose
// authority has left the files cannot resume.
type generation struct {
	digest [sha256.Size]byte
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

// Look reads the files again. It reports whether they have a new content that new connections get from now on. A content that is bad,
// or has a certificate that is not valid today, leaves everything as it is. It is an error if the look before has seen it, too: a pair may
// be just half written. Each bad content is an error once.
func (k *Keeper) Look() (taken bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	g, err := k.read(true)
	if err == nil {
		return k.adopt(g), nil
	}
	digest := g.digest
	first := digest != k.suspect
	k.suspect = digest
	if first || digest == k.reported {
		return false, nil
	}
	k.reported = digest
	return false, err
}

// Reload is Look for somebody who says that the files are whole: a bad content is an error at once, each time.
func (k *Keeper) Reload() (taken bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	g, err := k.read(true)
	if err != nil {
		k.suspect, k.reported = g.digest, g.digest // the looks that follow need not say it again
		return false, err
	}
	return k.adopt(g), nil
}

// adopt puts a good content to use, if it is new.
func (k *Keeper) adopt(g *generation) (taken bool) {
	k.suspect, k.reported = [sha256.Size]byte{}, [sha256.Size]byte{}
	if taken = g.digest != k.current.Load().digest; taken {
		k.current.Store(g)
	}
	return taken
}

// read makes a generation of what the files have. With an error, it has a digest only, of the content as far as it can be read.
func (k *Keeper) read(valid bool) (*generation, error) {
	g := &generation{}
	var content bytes.Buffer
	parts, err := k.files.read(&content)
	if err != nil {
		content.WriteString(err.Error())
	}
	g.digest = sha256.Sum256(content.Bytes())
	if err != nil {
		return g, err
	}
	if now := k.current.Load(); now != nil && now.digest == g.digest {
		return g, nil
	}
	pair, err := parts.pair(k.files.Passphrase)
	if err != nil {
		return g, fmt.Errorf("%s and %s: %w", k.files.Cert, k.files.Key, err)
	}
	clients, err := parts.authorities()
	if err != nil {
		return g, err
	}
	if k.files.Clients != tls.NoClientCert && clients == nil {
		return g, errors.New("there is no certificate that vouches for clients")
	}
	if g.span, err = spanOf(pair); err == nil && valid {
		err = g.valid(time.Now())
	}
	if err != nil {
		return g, fmt.Errorf("%s: %w", k.files.Cert, err)
	}
	g.config = &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientAuth: k.files.Clients, ClientCAs: clients,
		MinVersion: k.files.Versions[0], MaxVersion: k.files.Versions[1], CipherSuites: k.files.Ciphers,
	}
	return g, nil
}
