package transport

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// eachTLS runs a test with connections that loops and goroutines carry, by both versions of TLS. wrap, if it is not nil, changes how the
// client's bytes go to its socket.
func eachTLS(t *testing.T, wrap func(*net.TCPConn) net.Conn, set func(c *carried), test func(t *testing.T, c *carried, p peer)) {
	for _, byLoops := range []bool{false, true} {
		if byLoops && !HasLoops {
			continue
		}
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			t.Run(fmt.Sprintf("loops=%v/%s", byLoops, tls.VersionName(version)), func(t *testing.T) {
				t.Parallel()
				c := secured(t, func(c *carried) {
					if byLoops {
						c.Loops = 2
					}
					if set != nil {
						set(c)
					}
				})
				var socket net.Conn = dial(t, c.addr).socket()
				if wrap != nil {
					socket = wrap(socket.(*net.TCPConn))
				}
				config := &tls.Config{InsecureSkipVerify: true, MinVersion: version, MaxVersion: version, DynamicRecordSizingDisabled: true}
				test(t, c, newPeer(t, tls.Client(socket, config)))
			})
		}
	}
}

// The last command of a peer that says its farewell in the same breath is answered.
func TestTLSFarewellWithACommand(t *testing.T) {
	eachTLS(t, nil, nil, func(t *testing.T, _ *carried, p peer) {
		p.ask("a\n", "a\n")
		p.send("b\n")
		_ = p.Conn.(*tls.Conn).CloseWrite()
		p.want("b\n")
		if _, err := p.ReadByte(); err != io.EOF { // not an end without a word, which would be io.ErrUnexpectedEOF
			t.Error(err)
		}
	})
}

// atOnce sends nothing before its owner waits for an answer.
type atOnce struct {
	*net.TCPConn
	kept []byte
}

func (a *atOnce) Write(p []byte) (int, error) {
	a.kept = append(a.kept, p...)
	return len(p), nil
}

func (a *atOnce) SetWriteDeadline(time.Time) error { return nil } // with which a farewell would end what is kept

func (a *atOnce) Read(p []byte) (int, error) {
	if len(a.kept) > 0 {
		if _, err := a.TCPConn.Write(a.kept); err != nil {
			return 0, err
		}
		a.kept = nil
	}
	return a.TCPConn.Read(p)
}

// A server that ends a connection says so, though the peer still sends, and the peer gets the last reply.
func TestTLSFarewellOfTheServer(t *testing.T) {
	eachTLS(t, func(socket *net.TCPConn) net.Conn { return &atOnce{TCPConn: socket} }, func(c *carried) {
		c.handle = func(s *fakeSession, line string) bool {
			s.ending = line == "bye"
			return false
		}
	}, func(t *testing.T, c *carried, p peer) {
		p.send("a\nbye\n" + strings.Repeat("more\n", 10_000))
		p.want("a\nbye\n")
		if _, err := p.ReadByte(); err != io.EOF {
			t.Error(err)
		}
		p.Close()
		eventually(t, "end", func() bool { return c.left.Load() == 1 })
	})
}

// Commands that come with the end of the handshake are answered, though nothing follows them.
func TestTLSCommandsWithTheHandshake(t *testing.T) {
	for _, n := range []int{1, 1000, 20_000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			eachTLS(t, func(socket *net.TCPConn) net.Conn { return &atOnce{TCPConn: socket} }, nil, func(_ *testing.T, _ *carried, p peer) {
				commands := strings.Repeat("some\n", n)
				p.ask(commands, commands)
				p.ask("a\n", "a\n")
			})
		})
	}
}

// A session that answers them bit by bit is asked to go on, though nothing follows them.
func TestTLSManySteps(t *testing.T) {
	eachTLS(t, func(socket *net.TCPConn) net.Conn { return &atOnce{TCPConn: socket} }, func(c *carried) {
		c.handle = func(s *fakeSession, _ string) bool {
			s.rest = true
			return false
		}
	}, func(_ *testing.T, _ *carried, p peer) {
		commands := strings.Repeat("some\n", 100)
		p.ask(commands, commands)
	})
}

// A farewell that comes with the end of the handshake is met, though nothing follows it.
func TestTLSFarewellWithTheHandshake(t *testing.T) {
	eachTLS(t, func(socket *net.TCPConn) net.Conn { return &atOnce{TCPConn: socket} }, nil, func(t *testing.T, _ *carried, p peer) {
		p.send("a\n")
		_ = p.Conn.(*tls.Conn).CloseWrite()
		p.want("a\n")
		if _, err := p.ReadByte(); err != io.EOF {
			t.Error(err)
		}
	})
}

// Whose certificate has been verified is told to the session, and of others nothing.
func TestTLSIdentifies(t *testing.T) {
	eachTLS(t, nil, func(c *carried) {
		config := c.tls.Config().Clone()
		config.ClientAuth, config.ClientCAs = tls.VerifyClientCertIfGiven, poolOf(t, config.Certificates[0])
		c.tls.Config = func() *tls.Config { return config }
	}, func(t *testing.T, c *carried, p peer) {
		p.ask("a\n", "a\n")
		if n := c.identified.Load(); n != 0 {
			t.Errorf("%d without a certificate were identified", n)
		}
		named := tls.Client(dial(t, c.addr).socket(), &tls.Config{InsecureSkipVerify: true, Certificates: c.tls.Config().Certificates})
		newPeer(t, named).ask("a\n", "a\n")
		if n := c.identified.Load(); n != 1 {
			t.Errorf("%d were identified", n)
		}
	})
}

// A connection that another closes while its session learns whose it is ends after that.
func TestTLSClosedWhileItIsIdentified(t *testing.T) {
	eachTLS(t, nil, func(c *carried) {
		config := c.tls.Config().Clone()
		config.ClientAuth, config.ClientCAs = tls.VerifyClientCertIfGiven, poolOf(t, config.Certificates[0])
		c.tls.Config = func() *tls.Config { return config }
		c.onIdentify = func(s *fakeSession) {
			s.conn.Close(true)
			c.Settle(t.Context()) // in which a loop would close it
		}
	}, func(t *testing.T, c *carried, p peer) {
		named := tls.Client(dial(t, c.addr).socket(), &tls.Config{InsecureSkipVerify: true, Certificates: c.tls.Config().Certificates})
		q := newPeer(t, named)
		_, _ = io.WriteString(q.Conn, "a\n")
		q.wantClosed()
		p.ask("a\n", "a\n")
	})
}

func poolOf(t *testing.T, cert tls.Certificate) *x509.CertPool {
	leaf, err := x509.ParseCertificate(cert.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return pool
}

// pieces sends what it is given in so many bytes at a time.
type pieces struct {
	*net.TCPConn
	size int
}

func (s pieces) Write(p []byte) (n int, err error) {
	for err == nil && n < len(p) {
		var more int
		more, err = s.TCPConn.Write(p[n:min(len(p), n+s.size)])
		n += more
	}
	return n, err
}

// Records may arrive in any pieces.
func TestTLSInPieces(t *testing.T) {
	for size, commands := range map[int]int{1: 300, 3: 1000, 1000: 20_000, 16_411: 60_000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			eachTLS(t, func(socket *net.TCPConn) net.Conn { return pieces{socket, size} }, nil, func(_ *testing.T, _ *carried, p peer) {
				for range 3 {
					commands := strings.Repeat("some\n", commands)
					go func() { _, _ = io.WriteString(p.Conn, commands) }()
					p.want(commands)
				}
			})
		})
	}
}

// A peer that reads nothing, and only changes its keys, has TLS answer no more than fits a bound.
func TestWhatTLSAnswersIsBounded(t *testing.T) {
	b := &below{gather: true}
	answer := bytes.Repeat([]byte("x"), 1000)
	for n := 0; n <= mostSealed+len(answer); n += len(answer) {
		if _, err := b.Write(answer); err == errReadsNothing {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
	t.Errorf("%d bytes wait for the peer", len(b.toWrite))
}
