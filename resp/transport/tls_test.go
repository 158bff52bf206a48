package transport

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	mathbig "math/big"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// newTLS is TLS with a certificate that no client verifies.
func newTLS(t *testing.T) *TLS {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: mathbig.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	return &TLS{Config: func() *tls.Config { return config }, Most: func() int64 { return 1000 }, Plainly: "TLS only\n"}
}

// secured starts a server with TLS.
func secured(t *testing.T, set func(c *carried)) *carried {
	t.Helper()
	c := &carried{tls: newTLS(t)}
	if set != nil {
		set(c)
	}
	c.start(t)
	c.addr = c.listen(t, "tcp")
	return c
}

// A peer that speaks no TLS is told so. One that only looks whether the port is open is no failure.
func TestPlainBytesOnTLS(t *testing.T) {
	c := secured(t, nil)
	look := dial(t, c.addr)
	look.Close()
	eventually(t, "end of the look", func() bool { return c.left.Load() == 1 })
	if c.failed.Load() != nil {
		t.Error("a look counts as a failure")
	}
	p := dial(t, c.addr)
	p.ask("*1\r\n$4\r\nPING\r\n", "TLS only\n")
	eventually(t, "failure", func() bool { return c.failed.Load() != nil })
	silent := strings.Repeat("\x16\x03\x01\x40\x00"+strings.Repeat("x", 1000), 20)
	q := dial(t, c.addr)
	_, _ = io.WriteString(q, silent)
	_, _ = io.Copy(io.Discard, q)
	c.dial(t).ask("a\n", "a\n")
}

// One unfinished handshake too many ends the oldest, and no other.
func TestTheOldestHandshakeGoes(t *testing.T) {
	c := secured(t, func(c *carried) { c.tls.Most = func() int64 { return 3 } })
	served := c.dial(t)
	served.ask("a\n", "a\n")
	var half []peer
	for i := range 6 {
		half = append(half, dial(t, c.addr))
		half[i].send("\x16\x03\x01")
		eventually(t, "handshake", func() bool {
			c.tls.mu.Lock()
			defer c.tls.mu.Unlock()
			return c.tls.ongoing.Len() == min(i+1, 3)
		})
	}
	for _, p := range half[:3] {
		p.wantClosed()
	}
	for _, p := range half[3:] {
		p.wantNothing()
	}
	eventually(t, "end of the oldest", func() bool { return c.left.Load() == 3 })
	if err := c.failed.Load(); err == nil || !errors.Is(*err, errOldest) {
		t.Error("the failure is not that it was the oldest")
	}
	c.dial(t).ask("a\n", "a\n") // in the place of the next
	served.ask("a\n", "a\n")
}

// A handshake that was the oldest before its goroutine has run is counted, too. On a loaded machine that were 275 of 3,000.
func TestTheOldestHasNotRun(t *testing.T) {
	f, by := &fakeServer{}, newTLS(t)
	by.Most = func() int64 { return 1 }
	var all [2]*handshake
	for i := range all {
		conn, peer := net.Pipe()
		defer peer.Close()
		all[i] = &handshake{Conn: conn, t: &Transport{server: f}, by: by}
		all[i].session, _, _ = f.Admit(conn.RemoteAddr(), conn.LocalAddr())
		by.begin(all[i])
	}
	all[0].run()
	if err := f.failed.Load(); err == nil || !errors.Is(*err, errOldest) {
		t.Error("the failure is not that it was the oldest")
	}
	all[1].giveUp() // as a server that stops does, which is no failure
	f.failed.Store(nil)
	all[1].run()
	if err := f.failed.Load(); err != nil || f.left.Load() != 2 {
		t.Errorf("%v; %d have left", err, f.left.Load())
	}
}

// A refused connection gets the refusal in TLS. Few connections end before they get it.
func TestRefusedInTLS(t *testing.T) {
	c := secured(t, func(c *carried) { c.denied = "not you\n" })
	p := c.dial(t)
	p.want("not you\n")
	p.wantClosed()
	eventually(t, "end", func() bool { return !c.handshakes.any() })
	for range mostRefusing {
		dial(t, c.addr).send("\x16\x03\x01")
	}
	eventually(t, "many handshakes", func() bool {
		c.tls.mu.Lock()
		defer c.tls.mu.Unlock()
		return c.tls.refusing == mostRefusing
	})
	dial(t, c.addr).wantClosed()
}

// readConn counts the reads that have begun.
type readConn struct {
	*net.TCPConn
	reads *atomic.Int64
}

func (c readConn) Read(p []byte) (int, error) {
	c.reads.Add(1)
	return c.TCPConn.Read(p)
}

// No more handshakes compute at a time than have turns. Those that wait for their peer have none.
func TestHandshakesTakeTurns(t *testing.T) {
	var mu sync.Mutex
	computing, most := 0, 0
	leave := make(chan bool)
	var reads atomic.Int64
	c := secured(t, func(c *carried) {
		c.listener = wrapping(func(conn net.Conn) net.Conn { return readConn{conn.(*net.TCPConn), &reads} })
		config := c.tls.Config().Clone()
		config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
			mu.Lock()
			computing++
			most = max(most, computing)
			mu.Unlock()
			<-leave
			mu.Lock()
			defer mu.Unlock()
			computing--
			return nil, nil
		}
		c.tls.Config = func() *tls.Config { return config }
	})
	turns := &c.handshakes.permits
	turns.free = 2
	for range 5 {
		dial(t, c.addr).send("\x16\x03\x01") // half a handshake
	}
	eventually(t, "second read of each, for which it gives its turn back", func() bool { return reads.Load() == 10 })
	var peers []peer
	for range 5 {
		p := c.dial(t)
		peers = append(peers, p)
		go func() { _ = p.Conn.(*tls.Conn).Handshake() }()
	}
	eventually(t, "handshakes that wait for their turn", func() bool {
		mu.Lock()
		defer mu.Unlock()
		turns.mu.Lock()
		defer turns.mu.Unlock()
		return computing == 2 && len(turns.waiting[1]) == 3
	})
	close(leave)
	for _, p := range peers {
		p.ask("a\n", "a\n")
	}
	if most != 2 {
		t.Errorf("%d computed at a time", most)
	}
	eventually(t, "end of all turns", func() bool {
		turns.mu.Lock()
		defer turns.mu.Unlock()
		return turns.free == 2
	})
}

// A handshake that is ended while it waits for its turn computes nothing any more. Otherwise a flood would keep more of them than may
// be unfinished.
func TestNoTurnForWhoIsTooOld(t *testing.T) {
	var computed atomic.Int64
	leave := make(chan bool)
	c := secured(t, func(c *carried) {
		config := c.tls.Config().Clone()
		config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
			computed.Add(1)
			<-leave
			return nil, nil
		}
		c.tls.Config = func() *tls.Config { return config }
		c.tls.Most = func() int64 { return 3 }
	})
	turns := &c.handshakes.permits
	turns.free = 1
	for i := range 7 {
		p := c.dial(t)
		go func() { _ = p.Conn.(*tls.Conn).Handshake() }()
		eventually(t, "handshake", func() bool {
			turns.mu.Lock()
			defer turns.mu.Unlock()
			return computed.Load() == 1 && len(turns.waiting[1]) == i
		})
	}
	close(leave)
	eventually(t, "end of the first 4, and of the other handshakes", func() bool {
		c.tls.mu.Lock()
		defer c.tls.mu.Unlock()
		return c.left.Load() == 4 && c.tls.ongoing.Len() == 0
	})
	if n := computed.Load(); n != 4 {
		t.Errorf("%d handshakes were computed, want the first and the last 3", n)
	}
}

// A handshake that has begun gets the next permit.
func TestWhoHasBegunGoesFirst(t *testing.T) {
	turns := &permits{free: 1}
	turns.acquire(false)
	var order []bool
	var running sync.WaitGroup
	for i, begun := range []bool{false, false, true} {
		running.Go(func() {
			turns.acquire(begun)
			order = append(order, begun)
			turns.release()
		})
		eventually(t, "one more who waits", func() bool {
			turns.mu.Lock()
			defer turns.mu.Unlock()
			return len(turns.waiting[0])+len(turns.waiting[1]) == i+1
		})
	}
	turns.release()
	running.Wait()
	if !slices.Equal(order, []bool{true, false, false}) {
		t.Error(order)
	}
}
