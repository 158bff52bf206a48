package tls

import (
	"bufio"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// copyOver replaces a file by another, as Kubernetes and certbot do.
func copyOver(t *testing.T, from, to string) {
	t.Helper()
	celldtest.WriteFile(t, celldtest.ReadFile(t, from), to+".new")
	if err := os.Rename(to+".new", to); err != nil {
		t.Fatal(err)
	}
}

// TestRenewal replaces the certificate while clients call on connections that stay and on new ones. No call fails, new connections see
// the new certificate, and a bad one is refused with one line.
func TestRenewal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, firstKey := w.cert, w.key
	second, secondKey := w.ca.Sign("second", serverCert())
	late := serverCert()
	late.NotAfter = time.Now().Add(-time.Minute)
	expired, expiredKey := w.ca.Sign("expired", late)
	dir := t.TempDir()
	w.cert, w.key = dir+"/tls.crt", dir+"/tls.key"
	copyOver(t, first, w.cert)
	copyOver(t, firstKey, w.key)
	srv, addr := w.start(t)
	config := w.ca.Client(w.mine, w.myKey)
	serving := func() string {
		c, err := dial(t, addr, config)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.Conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	refused := func() int { return strings.Count(srv.Log.String(), "a file is refused") }
	var calls, failed atomic.Int64
	var clients sync.WaitGroup
	stop := make(chan bool)
	for i := range 8 {
		clients.Go(func() {
			var stays *tls.Conn
			defer func() { stays.Close() }()
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				conn := stays
				if conn == nil || i%2 == 0 && n%20 == 0 {
					var err error
					if conn, err = tls.Dial("tcp", addr, config); err != nil {
						failed.Add(1)
						t.Error(err)
						return
					}
					if stays != nil {
						stays.Close()
					}
					stays = conn
				}
				c := &harness.Conn{Conn: conn, T: t, R: bufio.NewReader(conn)}
				got, err := c.TryDo([]string{"CL.THROTTLE", fmt.Sprint("k", i), "1000000", "1000000", "1"})
				if err != nil || !strings.HasPrefix(got, "*5") {
					failed.Add(1)
					t.Errorf("%q, %v", got, err)
					return
				}
				calls.Add(1)
			}
		})
	}
	if got := serving(); got != "server" {
		t.Errorf("it serves %s", got)
	}
	copyOver(t, second, w.cert)
	copyOver(t, secondKey, w.key)
	celldtest.Eventually(t, "the second certificate", func() bool { return serving() == "second" })
	for n, bad := range [][2]string{{expired, expiredKey}, {first, secondKey}, {w.ca.File, firstKey}} {
		copyOver(t, bad[0], w.cert)
		copyOver(t, bad[1], w.key)
		celldtest.Eventually(t, "a failure", func() bool { return refused() == n+1 })
		if got := serving(); got != "second" {
			t.Errorf("after a bad one it serves %s", got)
		}
	}
	os.Remove(w.key)
	celldtest.Eventually(t, "a failure", func() bool { return refused() == 4 })
	copyOver(t, firstKey, w.key)
	copyOver(t, first, w.cert)
	celldtest.Eventually(t, "the first certificate", func() bool { return serving() == "server" })
	close(stop)
	clients.Wait()
	if calls.Load() == 0 || failed.Load() > 0 {
		t.Errorf("%d calls, %d failed", calls.Load(), failed.Load())
	}
	for _, secret := range []string{"PRIVATE KEY", strings.Split(celldtest.ReadFile(t, firstKey), "\n")[1]} {
		if strings.Contains(srv.Log.String(), secret) {
			t.Error("the log shows a key")
		}
	}
}

// TestHalfHandshakes opens thousands of connections that begin a handshake and say no more. Clients with and without TLS are served
// meanwhile, and the unfinished ones stay bounded.
func TestHalfHandshakes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	srv, addr := w.start(t, "--tls-auth-clients", "no", "--tls-max-handshakes", "200")
	plain := harness.Dial(t, srv.Addr)
	secure, err := dial(t, addr, w.ca.Client("", ""))
	if err != nil {
		t.Fatal(err)
	}
	longest := time.Duration(0)
	for i := range 3000 {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.Write([]byte("\x16\x03\x01\x02\x00\x01\x00"))
		if i%50 == 0 {
			begin := time.Now()
			for _, c := range []*harness.Conn{plain, secure} {
				if got := c.Do("CL.THROTTLE", "k", "15", "30", "60"); !strings.HasPrefix(got, "*5") {
					t.Fatalf("%q", got)
				}
			}
			longest = max(longest, time.Since(begin))
		}
	}
	t.Logf("two calls took %v at most", longest)
	if err := ping(t, addr, w.ca.Client("", "")); err != nil {
		t.Errorf("a new client: %v", err)
	}
	celldtest.Eventually(t, "2,800 have gone", func() bool {
		n, _ := strconv.Atoi(harness.InfoSections(plain.Do("INFO"))["Stats"]["tls_handshake_failures"])
		return n >= 2800
	})
}

// TestRandomRecords sends what is no TLS, or is until it breaks.
func TestRandomRecords(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	srv, addr := w.start(t, "--tls-auth-clients", "no")
	config := w.ca.Client("", "")
	random := make([]byte, 4096)
	for i := range 300 {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		rand.Read(random)
		prefix := "\x16\x03" + string(random[:i%5])
		if i%3 == 0 { // within a connection
			c := tls.Client(conn, config)
			c.SetDeadline(time.Now().Add(harness.ReplyTimeout))
			config.ServerName = "127.0.0.1"
			if err := c.Handshake(); err != nil {
				t.Fatal(err)
			}
			prefix = "\x17\x03\x03" + string(random[:i%4])
		}
		conn.Write([]byte(prefix))
		conn.Write(random[:1+i*13])
		conn.(*net.TCPConn).CloseWrite()
		conn.SetReadDeadline(time.Now().Add(harness.ReplyTimeout))
		if _, err := io.Copy(io.Discard, conn); os.IsTimeout(err) {
			t.Errorf("connection %d stays open", i)
		}
		conn.Close()
	}
	if err := ping(t, addr, config); err != nil {
		t.Error(err)
	}
	srv.Alive()
}
