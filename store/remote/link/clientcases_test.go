package link

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
)

// certificate writes a certificate and its key.
func certificate(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	for name, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// What a URL and the settings beside it make of a connection.
func TestSettingsOfAConnection(t *testing.T) {
	s := New(Options{URL: "redis://u:p@h:1,h:2?master=m&sentinel-username=su&sentinel-password=sp", Timeout: 3 * time.Second,
		Username: "other", Password: "word"})
	o, err := s.prepare()
	a := s.address
	if err != nil || a.Master != "m" {
		t.Fatal(a, err)
	}
	credentials := func(isSentinel bool) string {
		t.Helper()
		c, err := o.AuthCredentialsFn(rueidis.AuthCredentialsContext{Address: peer{isSentinel: isSentinel}})
		if err != nil {
			t.Error(err)
		}
		return c.Username + ":" + c.Password
	}
	if credentials(false) != "u:p" || credentials(true) != "su:sp" || o.ConnWriteTimeout != 3*time.Second || o.TLSConfig != nil ||
		strings.Join(o.InitAddress, " ") != "h:1 h:2" || o.ClientName != "celld" {
		t.Errorf("%+v", o)
	}
	if !o.DisableCache || !o.DisableRetry || o.PipelineMultiplex != -1 || o.Dialer.Timeout != dialTimeout ||
		o.Dialer.KeepAlive != aliveInterval || o.DialCtxFn == nil {
		t.Errorf("%+v", o)
	}
	if w := o.Sentinel; w.MasterSet != "m" || w.Dialer.Resolver != ofSentinels || w.ClientName != "celld" ||
		w.TopologyRefreshInterval != sentinelInterval || w.Dialer.Timeout != dialTimeout || w.TLSConfig != nil {
		t.Errorf("%+v", w)
	}
	s.options.URL, s.options.Timeout = "redis://h:1/4", time.Millisecond
	o, err = s.prepare()
	if err != nil || credentials(false) != "other:word" || o.ConnWriteTimeout != leastWriteTimeout || o.SelectDB != 4 ||
		o.Sentinel.MasterSet != "" {
		t.Errorf("%+v, %v", o, err)
	}
	s.UsePassword("new")
	if got := credentials(false); got != "other:new" {
		t.Error(got)
	}
	for text, want := range map[string]string{"http://h": "the engine's URL: it must start with", "redis://h": ""} {
		if err := Check(Options{URL: text}); (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Certificates are for rediss. A client's needs its key, and what cannot be read is named.
func TestCertificatesOfAConnection(t *testing.T) {
	dir := t.TempDir()
	cert, key := certificate(t, dir)
	other, missing := filepath.Join(dir, "other"), filepath.Join(dir, "missing")
	if err := os.WriteFile(other, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		url           string
		ca, cert, key string
		want          string
	}{
		{"redis://h", "", "", "", ""},
		{"redis://h", cert, "", "", "certificates are for rediss://"},
		{"redis://h", "", cert, "", "certificates are for rediss://"},
		{"redis://h", "", "", key, "certificates are for rediss://"},
		{"rediss://h", "", "", "", ""},
		{"rediss://h", cert, cert, key, ""},
		{"rediss://h", missing, "", "", "the engine's TLS: the CA certificates: open " + missing},
		{"rediss://h", other, "", "", "the engine's TLS: the CA certificates: " + other + ": it has no certificate in PEM"},
		{"rediss://h", "", cert, "", "the engine's TLS: a client certificate needs two files"},
		{"rediss://h", "", "", key, "the engine's TLS: a client certificate needs two files"},
		{"rediss://h", "", missing, key, "the engine's TLS: the client certificate: read the certificate: open " + missing},
		{"rediss://h", "", cert, missing, "the engine's TLS: the client certificate: read the key: open " + missing},
		{"rediss://h", "", cert, other, "the engine's TLS: the client certificate: tls: failed to find any PEM data in key input"},
	} {
		s := New(Options{URL: c.url + "?server-name=n", TLSCACertFile: c.ca, TLSCertFile: c.cert, TLSKeyFile: c.key})
		if !strings.HasPrefix(c.url, "rediss") {
			s.options.URL = c.url
		}
		o, err := s.prepare()
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%d: %v", i, err)
			continue
		}
		if tlsOf := o.TLSConfig; err == nil {
			if (tlsOf != nil) != strings.HasPrefix(c.url, "rediss") {
				t.Errorf("%d: %v", i, tlsOf)
			} else if tlsOf != nil && (tlsOf.MinVersion != tls.VersionTLS12 || tlsOf.ServerName != "n" ||
				(tlsOf.RootCAs != nil) != (c.ca != "") || len(tlsOf.Certificates) != len(c.cert)/max(len(c.cert), 1)) {
				t.Errorf("%d: %+v", i, tlsOf)
			}
		}
	}
}

// With server-name=* an engine may have any name, but not anybody's certificate.
func TestAnyServerName(t *testing.T) {
	dir := t.TempDir()
	cert, key := certificate(t, dir)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	other, _ := certificate(t, t.TempDir())
	for ca, want := range map[string]bool{cert: true, other: false} {
		for name, passes := range map[string]bool{"*": want, "nobody": false} {
			s := New(Options{URL: "rediss://h?server-name=" + name, TLSCACertFile: ca})
			o, err := s.prepare()
			if err != nil {
				t.Fatal(err)
			}
			ours, theirs := net.Pipe()
			go func() {
				_ = tls.Server(theirs, &tls.Config{Certificates: []tls.Certificate{pair}}).Handshake()
				theirs.Close()
			}()
			err = tls.Client(ours, o.TLSConfig).Handshake()
			if ours.Close(); (err == nil) != passes {
				t.Errorf("%s with %s: %v", name, ca, err)
			}
		}
	}
}

// closes counts how often a connection is closed.
type closes struct {
	net.Conn
	n int
}

func (c *closes) Close() error {
	c.n++
	return net.ErrClosed
}

// A connection counts as open until it is closed, once. Nothing was sent where none was open and none has been made.
func TestOpenConnections(t *testing.T) {
	var l Link
	for _, c := range []struct {
		open, made int64
		then       func()
		unsent     bool
	}{
		{0, 0, func() {}, true},
		{0, 5, func() {}, true},
		{1, 5, func() {}, false},
		{0, 5, func() { l.made.Add(1) }, false},
		{1, 5, func() { l.open.Add(-1) }, false},
	} {
		l.open.Store(c.open)
		l.made.Store(c.made)
		unsent := l.unsent()
		if c.then(); unsent() != c.unsent {
			t.Errorf("%+v: unsent is %v", c, unsent())
		}
	}
	l.open.Store(2)
	inner := &closes{}
	conn := &openConn{Conn: inner, open: &l.open}
	for range 2 {
		if err := conn.Close(); err != net.ErrClosed {
			t.Error(err)
		}
	}
	if l.open.Load() != 1 || inner.n != 2 {
		t.Errorf("%d are open, closed %d times", l.open.Load(), inner.n)
	}
}

// A connection that is made is counted and its node is looked at. One that is not made is an error that says so.
func TestDialing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := newLink(Options{})
	s.address.Unix = true
	conn, err := s.Dial(context.Background(), path, &net.Dialer{}, nil)
	if err != nil || s.made.Load() != 1 || s.open.Load() != 1 || strings.Join(s.dialed.drain(), " ") != path {
		t.Errorf("%v, %d made, %d open", err, s.made.Load(), s.open.Load())
	}
	conn.Close()
	listener.Close()
	_, err = s.Dial(context.Background(), path, &net.Dialer{}, nil)
	if d := (*dialError)(nil); !errors.As(err, &d) || s.made.Load() != 1 || s.open.Load() != 0 || len(s.dialed.drain()) != 0 {
		t.Errorf("%v, %d made, %d open", err, s.made.Load(), s.open.Load())
	}
}

// A pause ends by itself, or with what goes on in the background, which ends once.
func TestPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, began := New(Options{}), time.Now()
		if !s.pause(time.Second) || time.Since(began) != time.Second {
			t.Error(time.Since(began))
		}
		time.AfterFunc(time.Second, s.stop)
		if s.pause(time.Minute) || time.Since(began) != 2*time.Second {
			t.Error(time.Since(began))
		}
		s.stop()
		if s.pause(time.Minute) || time.Since(began) != 2*time.Second {
			t.Error(time.Since(began))
		}
	})
}

// An engine is away by what was found when it was last asked; a Cluster by what its nodes say; one that was asked lately by its calls.
func TestAway(t *testing.T) {
	s, _ := byItself(t)
	if s.Away() != nil {
		t.Error(s.Away())
	}
	s.pipelines.all[0].breaker.open(testDown, "k")
	if err := s.Away(); err == nil || err.Error() != testDown.Cause {
		t.Error(err)
	}
	s.cluster.Store(true)
	if s.Away() != nil {
		t.Error(s.Away())
	}
	if s.setAway("asleep"); s.Away() == nil || s.Away().Error() != "asleep" {
		t.Error(s.Away())
	}
}

// What may go away by itself lasts from its first moment on, for longer than a bound.
func TestHowLongTroubleLasts(t *testing.T) {
	var w trouble
	at := time.Unix(1000, 0)
	why := errors.New("why")
	if w.lastsLonger(0, at) {
		t.Error("there is none")
	}
	w.note(why, at)
	w.note(why, at.Add(time.Second))
	if w.lastsLonger(time.Second, at.Add(time.Second)) || !w.lastsLonger(time.Second, at.Add(time.Second+1)) || w.why != why {
		t.Error(w)
	}
	w.note(nil, at.Add(time.Second))
	if w.lastsLonger(time.Second, at.Add(time.Hour)) || w.why != nil {
		t.Error("it is over", w)
	}
	w.note(why, at.Add(time.Hour))
	if w.lastsLonger(time.Second, at.Add(time.Hour+time.Second)) {
		t.Error("it is another")
	}
}

// CLUSTER INFO has the state and two numbers, or is not understood. Nodes that cannot be read do not count where another can.
func TestReadingACoverage(t *testing.T) {
	for text, want := range map[string]clusterView{
		"cluster_state:ok\ncluster_slots_assigned:16384\ncluster_slots_fail:0":      {false, 0},
		"cluster_state:ok\ncluster_slots_assigned:16380\ncluster_slots_fail:3":      {false, 7},
		"cluster_state:fail\ncluster_slots_assigned:16384\ncluster_slots_fail:5000": {true, 5000},
	} {
		if v, err := viewOf(parseInfo(text)); err != nil || v != want {
			t.Errorf("%q: %+v, %v", text, v, err)
		}
	}
	for _, text := range []string{"", "cluster_state:ok\ncluster_slots_assigned:1", "cluster_slots_assigned:x\ncluster_slots_fail:1"} {
		if v, err := viewOf(parseInfo(text)); err == nil {
			t.Errorf("%q: %+v", text, v)
		}
	}
	c := &coverage{}
	at := time.Unix(1000, 0)
	c.now = func() time.Time { return at }
	c.known, c.down = true, true
	c.refuse()
	if c.known || c.down {
		t.Error(c.known, c.down)
	}
	at = at.Add(refusalLasts - 1)
	if !c.isRefused() {
		t.Error("it is asked again too soon")
	}
	if at = at.Add(1); c.isRefused() {
		t.Error("it is not asked again")
	}
}
