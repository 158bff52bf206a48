package link

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"celld/resp/certs"
)

const (
	// dialTimeout is for a connection, and again for the engine's first answer. When the engine's machine comes back, it is found
	// within that time and the next attempt: 3 s are promised.
	dialTimeout = 2 * time.Second

	// aliveInterval is how often an idle connection is asked for a PONG, and leastWriteTimeout how long it may take at least. A
	// connection to a machine that has vanished is given up after both.
	aliveInterval     = time.Second
	leastWriteTimeout = time.Second

	// sentinelInterval is how often Sentinels are asked for the master. Their messages tell of a change at once; one may be lost.
	sentinelInterval = 5 * time.Second
)

// clientOptions returns the settings of rueidis. MaxFlushDelay stays 0, as pipelines gather already: a sleep of 50 µs takes 1 ms and more,
// so 4 callers got 8,000 answers a second and not 38,000, and each took the engine as much CPU.
func (l *Link) clientOptions(a address) (rueidis.ClientOption, error) {
	o := rueidis.ClientOption{
		InitAddress: a.Hosts, SelectDB: a.DB, ClientName: "celld",
		Dialer:            net.Dialer{Timeout: dialTimeout, KeepAlive: aliveInterval},
		ConnWriteTimeout:  max(l.options.Timeout, leastWriteTimeout),
		PipelineMultiplex: -1, // one connection to each node: so pipelines are long
		DisableCache:      true,
		DisableRetry:      true, // else what is marked as safe to repeat is sent again when a connection breaks
		ClientSetInfo:     rueidis.DisableClientSetInfo,
		DialCtxFn:         l.Dial,
	}
	o.AuthCredentialsFn = func(c rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) { // for each connection
		if to, ok := c.Address.(peer); ok && to.isSentinel {
			return rueidis.AuthCredentials{Username: a.SentinelUsername, Password: a.SentinelPassword}, nil
		}
		return rueidis.AuthCredentials{
			Username: cmp.Or(a.Username, l.options.Username), Password: cmp.Or(a.Password, *l.secret.Load()),
		}, nil
	}
	config, err := l.tlsConfig(a)
	if err != nil {
		return o, err
	}
	o.TLSConfig = config
	if a.Master != "" {
		o.Sentinel = rueidis.SentinelOption{
			MasterSet: a.Master, Dialer: o.Dialer, TLSConfig: config, ClientName: o.ClientName, TopologyRefreshInterval: sentinelInterval,
		}
		o.Sentinel.Dialer.Resolver = ofSentinels
	}
	return o, nil
}

// tlsConfig reads the files. It returns nil for a connection without TLS.
func (l *Link) tlsConfig(a address) (*tls.Config, error) {
	o := &l.options
	if !a.TLS {
		if o.TLSCACertFile+o.TLSCertFile+o.TLSKeyFile != "" {
			return nil, errors.New("certificates are for rediss://, and the engine's URL has another scheme")
		}
		return nil, nil
	}
	config, err := certs.Files{Cert: o.TLSCertFile, Key: o.TLSKeyFile, CA: o.TLSCACertFile}.Client(a.ServerName)
	if err != nil {
		return nil, fmt.Errorf("the engine's TLS: %w", err)
	}
	if a.ServerName == anyName {
		config.InsecureSkipVerify, config.VerifyConnection = true, verifiesChain(config.RootCAs)
	}
	return config, nil
}

// anyName is in place of the name that the engine's certificate must have.
const anyName = "*"

// verifiesChain verifies who vouches for a server, and not its name.
func verifiesChain(roots *x509.CertPool) func(tls.ConnectionState) error {
	return func(state tls.ConnectionState) error {
		between := x509.NewCertPool()
		for _, one := range state.PeerCertificates[1:] {
			between.AddCert(one)
		}
		_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between})
		return err
	}
}

// Dial connects to a node, which the next look checks. Clients that are given to Use must connect by it.
func (l *Link) Dial(ctx context.Context, to string, dialer *net.Dialer, config *tls.Config) (conn net.Conn, err error) {
	if l.address.Master != "" {
		defer func() {
			if err != nil {
				l.pace.failed(to)
			}
		}()
		if wait := l.pace.pause(to); wait > 0 && !l.pause(wait) {
			return nil, net.ErrClosed
		}
	}
	switch {
	case l.options.Dial != nil:
		conn, err = l.options.Dial(ctx, to)
	case l.address.Unix:
		conn, err = dialer.DialContext(ctx, "unix", to)
	case config != nil: // which has the server's name, or else that of to is used
		if renewed := l.renewed.Load(); renewed != nil {
			config = renewed
		}
		conn, err = (&tls.Dialer{NetDialer: dialer, Config: config}).DialContext(ctx, "tcp", to)
	default:
		conn, err = dialer.DialContext(ctx, "tcp", to)
	}
	if err != nil {
		return nil, &dialError{err}
	}
	l.dialed.add(to)
	l.made.Add(1)
	l.open.Add(1)
	counted := &openConn{Conn: conn, open: &l.open, to: to, made: time.Now(), isSentinel: dialer != nil && dialer.Resolver == ofSentinels}
	if l.address.Master != "" {
		counted.pace = &l.pace
	}
	return counted, nil
}

// openConn is a connection that counts as open until it is closed.
type openConn struct {
	net.Conn
	open *atomic.Int64
	once sync.Once

	pace *pace // nil: it does not matter how soon it is closed
	to   string
	made time.Time

	isSentinel bool
}

// ofSentinels resolves as nil does. It marks connections to Sentinels, for which rueidis asks for credentials as for others.
var ofSentinels = &net.Resolver{}

// peer is the address of the other end.
type peer struct {
	net.Addr
	isSentinel bool
}

func (c *openConn) RemoteAddr() net.Addr { return peer{c.Conn.RemoteAddr(), c.isSentinel} }

func (c *openConn) Close() error {
	c.once.Do(func() {
		c.open.Add(-1)
		if c.pace != nil && time.Since(c.made) < paceInterval {
			c.pace.failed(c.to)
		}
	})
	return c.Conn.Close()
}

// unsent returns a function that reports whether nothing can have been sent since: there was no connection, and none has been made.
func (l *Link) unsent() func() bool {
	made, open := l.made.Load(), l.open.Load()
	return func() bool { return open == 0 && l.made.Load() == made }
}

// refusal returns what a node says of celld's certificate. In TLS 1.3 it says so after the handshake, and resets the connection if it has
// received something meanwhile: so the alert is often lost. refusal sends nothing.
func (l *Link) refusal(o rueidis.ClientOption) error {
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	conn, err := l.Dial(ctx, o.InitAddress[0], &o.Dialer, o.TLSConfig)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(dialTimeout / 2))
	_, err = conn.Read(make([]byte, 1))
	return err
}
