package tls

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

var versions = []uint16{tls.VersionTLS12, tls.VersionTLS13}

// sign makes a client's certificate with a common name and URIs, and returns what shows it.
func (w *world) sign(t *testing.T, by *celldtest.Authority, name string, uris ...string) *tls.Config {
	t.Helper()
	c := &x509.Certificate{ExtKeyUsage: forClients}
	for _, text := range uris {
		uri, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		c.URIs = append(c.URIs, uri)
	}
	cert, key := by.Sign(name, c)
	return w.ca.Client(cert, key)
}

// as connects, and reports as whom: its user, or why it may do nothing.
func as(t *testing.T, addr string, config *tls.Config, version uint16) (*harness.Conn, string) {
	t.Helper()
	config.MinVersion, config.MaxVersion = version, version
	c, err := dial(t, addr, config)
	if err != nil {
		return nil, "nobody"
	}
	got, err := c.TryDo([]string{"ACL", "WHOAMI"})
	switch {
	case err != nil:
		return nil, "nobody"
	case strings.HasPrefix(got, "$"):
		return c, strings.Split(got, "\r\n")[1]
	}
	return c, strings.Fields(got)[0]
}

// TestUsersOfCertificates connects with certificates that name users, users who are off, and nobody. Only certificates that TLS has
// verified count.
func TestUsersOfCertificates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acl := t.TempDir() + "/users.acl"
	celldtest.WriteFile(t, "user default on >sesame ~* +@all\nuser app on ~app:* +cl.take +acl|whoami +client +ping +info\nuser gone off >x +@all ~*\nuser spiffe://x/app on +@all ~*\nuser spiffe://x/gone off +@all\n", acl)
	both := []string{"spiffe://x/nobody", "spiffe://x/gone", "spiffe://x/app", "spiffe://x/default"}
	for _, test := range []struct {
		field, clients string
		want           map[string]string
	}{
		{"CN", "yes", map[string]string{"app": "app", "gone": "-NOAUTH", "none": "-NOAUTH", "uris": "-NOAUTH", "stranger": "nobody", "expired": "nobody", "default": "default"}},
		{"uri", "optional", map[string]string{"app": "-NOAUTH", "uris": "spiffe://x/app", "offs": "-NOAUTH", "stranger": "nobody", "bare": "-NOAUTH"}},
		{"off", "optional", map[string]string{"app": "-NOAUTH", "uris": "-NOAUTH", "bare": "-NOAUTH"}},
	} {
		configs := map[string]*tls.Config{
			"bare": w.ca.Client("", ""), "expired": w.ca.Client(w.old, w.oldKey),
			"stranger": w.sign(t, w.stranger, "app", both...), "uris": w.sign(t, w.ca, "uris", both...),
			"offs": w.sign(t, w.ca, "offs", both[:2]...),
		}
		for _, name := range []string{"app", "gone", "none", "default"} {
			configs[name] = w.sign(t, w.ca, name)
		}
		_, addr := w.start(t, "--aclfile", acl, "--tls-auth-clients", test.clients, "--tls-auth-clients-user", test.field)
		for name, want := range test.want {
			for _, version := range versions {
				if _, got := as(t, addr, configs[name], version); got != want {
					t.Errorf("%s by %s, %s: it is %s, want %s", name, test.field, tls.VersionName(version), got, want)
				}
			}
		}
	}
}

// TestAUserOfACertificate checks that a connection may do what its user may, and that it can become another.
func TestAUserOfACertificate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	srv, addr := w.start(t, "--tls-auth-clients-user", "CN", "--requirepass", "sesame")
	admin := harness.Dial(t, srv.Addr)
	expect(admin, "+OK\r\n", "AUTH", "sesame")
	expect(admin, "+OK\r\n", "ACL", "SETUSER", "app", "on", "~app:*", "+cl.take", "+acl|whoami", "+client|info", "+ping")
	config := w.sign(t, w.ca, "app")
	for _, version := range versions {
		c, who := as(t, addr, config, version)
		if who != "app" {
			t.Fatalf("%s: it is %s", tls.VersionName(version), who)
		}
		if got := c.Do("CL.TAKE", "app:1", "100/1m"); got[0] != '*' {
			t.Errorf("%q", got)
		}
		for _, call := range [][]string{{"CL.TAKE", "other", "100/1m"}, {"GET", "app:1"}} {
			if got := c.Do(call...); !strings.HasPrefix(got, "-NOPERM ") {
				t.Errorf("%q: %q", call, got)
			}
		}
		if got := c.Do("CLIENT", "INFO"); !strings.Contains(got, " user=app ") {
			t.Errorf("%q", got)
		}
		if got := admin.Do("CLIENT", "LIST"); !strings.Contains(got, " user=app ") {
			t.Errorf("%q", got)
		}
		if got := c.Do("HELLO", "3"); got[0] != '%' {
			t.Errorf("HELLO: %q", got)
		}
		if got := c.Do("HELLO", "2", "AUTH", "default", "sesame"); got[0] != '*' {
			t.Errorf("HELLO with a password: %q", got)
		}
		expect(c, "$7\r\ndefault\r\n", "ACL", "WHOAMI")
		expect(c, "+RESET\r\n", "RESET")
		if got := c.Do("PING"); !strings.HasPrefix(got, "-NOAUTH ") {
			t.Errorf("after RESET: %q", got)
		}
		expect(c, "+OK\r\n", "AUTH", "sesame")
	}
}

// TestUsersOfCertificatesEnd removes users and switches them off. Their connections are closed, and others stay.
func TestUsersOfCertificatesEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	srv, addr := w.start(t, "--tls-auth-clients-user", "CN")
	admin := harness.Dial(t, srv.Addr)
	config, other := w.sign(t, w.ca, "app"), w.sign(t, w.ca, "other")
	for _, end := range [][]string{{"ACL", "DELUSER", "app"}, {"ACL", "SETUSER", "app", "off"}} {
		for _, name := range []string{"app", "other"} {
			expect(admin, "+OK\r\n", "ACL", "SETUSER", name, "on", "+@all", "~*", ">x")
		}
		c, who := as(t, addr, config, tls.VersionTLS13)
		stays, alsoWho := as(t, addr, other, tls.VersionTLS13)
		if who != "app" || alsoWho != "other" {
			t.Fatalf("they are %s and %s", who, alsoWho)
		}
		byPassword := harness.Dial(t, srv.Addr)
		expect(byPassword, "+OK\r\n", "AUTH", "app", "x")
		if got := admin.Do(end...); got != ":1\r\n" && got != "+OK\r\n" {
			t.Fatalf("%q", got)
		}
		c.Closed()
		expect(stays, "+PONG\r\n", "PING")
		if end[1] == "DELUSER" {
			byPassword.Closed()
		} else {
			expect(byPassword, "+PONG\r\n", "PING") // as in Redis
		}
		if _, who := as(t, addr, config, tls.VersionTLS13); who != "default" {
			t.Errorf("then it is %s", who)
		}
	}
	expect(admin, "+OK\r\n", "ACL", "SETUSER", "app", "on", "+@all", "~*")
	c, _ := as(t, addr, config, tls.VersionTLS13)
	expect(c, "+OK\r\n", "ACL", "SETUSER", "app", "off") // gets its reply
	c.Closed()
}

// TestRefusedCertificatesAreLogged names the first name of a certificate that gives its connection no user.
func TestRefusedCertificatesAreLogged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	srv, addr := w.start(t, "--tls-auth-clients-user", "URI")
	if _, who := as(t, addr, w.sign(t, w.ca, "none", "spiffe://x/none", "spiffe://x/also"), tls.VersionTLS13); who != "default" {
		t.Fatalf("it is %s", who)
	}
	if _, who := as(t, addr, w.sign(t, w.ca, "bare"), tls.VersionTLS13); who != "default" { // names nobody at all
		t.Fatalf("it is %s", who)
	}
	admin := harness.Dial(t, srv.Addr)
	log := admin.Do("ACL", "LOG")
	want := "*1\r\n*14\r\n$5\r\ncount\r\n:1\r\n$6\r\nreason\r\n$8\r\ntls-cert\r\n$7\r\ncontext\r\n$8\r\ntoplevel\r\n$6\r\nobject\r\n$0\r\n\r\n$8\r\nusername\r\n$15\r\nspiffe://x/none\r\n"
	if !strings.HasPrefix(log, want) || !regexp.MustCompile(`addr=127\.0\.0\.1:\d+ .* cmd=NULL user=default `).MatchString(log) {
		t.Errorf("%q", log)
	}
	if got := harness.InfoSections(admin.Do("INFO"))["Stats"]["acl_access_denied_tls_cert"]; got != "1" {
		t.Errorf("INFO counts %s", got)
	}
}

// TestResumedSessionsHaveTheirUser connects again without a whole handshake, also after the user has come or gone.
func TestResumedSessionsHaveTheirUser(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	srv, addr := w.start(t, "--tls-auth-clients-user", "CN")
	admin := harness.Dial(t, srv.Addr)
	for _, version := range versions {
		config := w.sign(t, w.ca, "app")
		config.ServerName, config.ClientSessionCache = "127.0.0.1", tls.NewLRUClientSessionCache(1)
		for i, want := range []string{"default", "app", "app", "default"} {
			if i == 1 {
				expect(admin, "+OK\r\n", "ACL", "SETUSER", "app", "on", "+@all")
			} else if i == 3 {
				expect(admin, ":1\r\n", "ACL", "DELUSER", "app")
			}
			c, who := as(t, addr, config, version)
			if resumed := c.Conn.(*tls.Conn).ConnectionState().DidResume; who != want || resumed != (i > 0) {
				t.Errorf("connection %d, %s: it is %s, resumed: %v", i, tls.VersionName(version), who, resumed)
			}
			c.Close()
		}
	}
}

// TestProbesWithACertificate turns the default user off. The user that the certificate names answers for the server.
func TestProbesWithACertificate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acl := t.TempDir() + "/users.acl"
	celldtest.WriteFile(t, "user default off\nuser app on +ping +info\n", acl)
	_, addr := w.start(t, "--port", "0", "--aclfile", acl, "--tls-auth-clients-user", "CN")
	_, port := harness.HostPort(addr)
	for _, command := range []string{"ping", "ready"} {
		out, stderr, code := harness.RunToEnd(t, nil, command, "--port", "0", "--tls-port", port, "--tls-cert-file", w.mine,
			"--tls-key-file", w.myKey)
		if got := fmt.Sprint(code, out, stderr); got != "0" {
			t.Errorf("celld %s: %s", command, got)
		}
	}
}

func expect(c *harness.Conn, reply string, call ...string) {
	c.T.Helper()
	if got := c.Do(call...); got != reply {
		c.T.Errorf("%q: %q, want %q", call, got, reply)
	}
}
