package world

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"celld/integration_test/simulation/network"
	"celld/resp/config"
	"celld/resp/transport"
	"celld/resp/web"
)

// The password, which is the token of HTTP, too, and the certificate change. Who connects needs the password of its turn, and sees its
// certificate, and whoever was connected before stays so.

const (
	passwordFile = "password"
	certFile     = "server.pem"
)

func passwordOf(turn int) string { return fmt.Sprint("password-", turn) }

func drawSecrets(p *plan) {
	if p.has("guest") { // whose file has the default user, too
		p.without("secrets")
		return
	}
	p.set("requirepass-file", p.folder+"/"+passwordFile)
	p.set("tls-port", "6380")
	p.set("tls-auth-clients", "no")
	p.set("tls-cert-file", p.folder+"/"+certFile)
	p.set("tls-key-file", p.folder+"/"+certFile)
}

// auth is the command that a connection begins with; nil: there is no password.
func (w *world) auth(c *caller) []string {
	if !w.plan.has("secrets") {
		return nil
	}
	return []string{"AUTH", passwordOf(w.turnOf(c, 2))}
}

// token is what stands before a host in an address of HTTP.
func (w *world) token(c *caller) string {
	if !w.plan.has("secrets") {
		return ""
	}
	return "any:" + passwordOf(w.turnOf(c, 2)) + "@"
}

// turnOf is the turn of the newest password or of one before it, of so many.
func (w *world) turnOf(c *caller, of int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return max(0, w.secret-c.rnd.IntN(of))
}

// http are the options of the HTTP port.
func (w *world) http(ln net.Listener) web.Options {
	o := web.Options{Inherited: []net.Listener{ln}, MaxConnections: 100}
	if w.plan.has("secrets") {
		text, _ := os.ReadFile(filepath.Join(w.plan.folder, passwordFile))
		o.Token, o.TokenFile = strings.TrimSpace(string(text)), filepath.Join(w.plan.folder, passwordFile)
	}
	return o
}

func (m *machine) tls() string { return m.addr + ":6380" }

// listenTLS serves by TLS.
func (m *machine) listenTLS(cfg *config.Config, listen func(string) (*network.Listener, error)) transport.Listener {
	ln, err := listen(m.tls())
	if err != nil {
		panic(err)
	}
	return transport.Listener{Listener: ln, TLS: &transport.TLS{Config: cfg.TLS.Keeper.Config, Most: func() int64 { return 100 }}}
}

// writeSecrets writes those of a turn.
func (w *world) writeSecrets(turn int) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(int64(turn)), Subject: pkix.Name{CommonName: strconv.Itoa(turn)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, public, private)
	if err != nil {
		panic(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		panic(err)
	}
	w.mu.Lock()
	w.secret = turn
	w.mu.Unlock()
	w.write(certFile, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))+
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})))
	w.write(passwordFile, passwordOf(turn)+"\n")
}

func runSecrets(w *world) {
	t := &turns{w: w}
	t.change(func() {}) // the machines have read the files at their start
	var all sync.WaitGroup
	for n := range 2 {
		c := w.caller(fmt.Sprintf("visitor %d", n), 215+n)
		all.Go(func() {
			for range c.rounds(w.plan.calls/4, w.plan.think+10*time.Millisecond) {
				c.knocks(t)
			}
		})
	}
	t.until(&all, w.plan.chance("turns of secrets"), func(turn int) {
		if turn%3 == 0 {
			w.wrongFile(passwordFile, "\n", passwordOf(turn-1)+"\n")
		}
		w.writeSecrets(turn)
		if turn%4 == 3 { // celld looks at them every two seconds, and believes what it has seen twice
			time.Sleep(6 * time.Second)
			return
		}
		for _, m := range w.all {
			m.reload()
		}
	})
}

// knocks connects with the password of a turn that may be over, by one of the doors.
func (c *caller) knocks(t *turns) {
	turn := c.w.turnOf(c, 3)
	m := c.w.all[c.rnd.IntN(len(c.w.all))]
	a := answer{began: c.w.event(c.name, "knocks at %s with the password of turn %d", m.addr, turn)}
	switch door := c.rnd.IntN(3); {
	case door == 0:
		conn, err := c.w.network.Dial(c.addr, m.tls())
		if err != nil {
			return
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		safe := tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
		if err := safe.Handshake(); err != nil {
			return
		}
		a.value = safe.ConnectionState().PeerCertificates[0].Subject.CommonName
		a.ended = c.w.event(c.name, "sees the certificate %v", a.value)
		t.obeys(c, a, func(turn int) bool { return strconv.Itoa(turn) == a.value })
	case door == 1 && c.w.plan.has("http"):
		conn, err := c.w.network.Dial(c.addr, m.http())
		if err != nil {
			return
		}
		client := browser(func() (net.Conn, error) { return conn, nil })
		got, err := client.Get("http://any:" + passwordOf(turn) + "@" + m.http() + "/metrics")
		if err != nil {
			return
		}
		got.Body.Close()
		a.ended = c.w.event(c.name, "gets %s by HTTP", got.Status)
		t.obeys(c, a, func(is int) bool { return is == turn == (got.StatusCode == http.StatusOK) })
	default:
		one := c.w.caller(c.name, 217)
		one.only, one.rnd, one.hello = m, c.rnd, []string{}
		if one.do("PING").value == "PONG" {
			c.w.wrong("%s is served without a password", c.name)
		}
		auth := one.do("AUTH", passwordOf(turn))
		if auth.began = a.began; auth.value == "OK" || strings.HasPrefix(auth.failed(), "WRONGPASS") {
			t.obeys(c, auth, func(is int) bool { return is == turn == (auth.value == "OK") })
		}
		one.hangUp()
	}
	c.w.count("knocked")
}
