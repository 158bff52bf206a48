package transport

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// carrySecurely is carry with TLS, whose handshake is done. The peer's Conn is a *tls.Conn.
func carrySecurely(t *testing.T, c *carried, l *epollLoop) (*epollConn, peer) {
	t.Helper()
	fd, far := socketEnds(t)
	client := tls.Client(far.Conn, &tls.Config{InsecureSkipVerify: true})
	shaken := make(chan error)
	go func() { shaken <- client.Handshake() }()
	below := &below{Conn: connOf(t, fd)}
	over := &secure{Conn: tls.Server(below, newTLS(t).Config()), below: below}
	if err := errors.Join(over.Handshake(), <-shaken); err != nil {
		t.Fatal(err)
	}
	near, err := detach(below.Conn)
	if err != nil {
		t.Fatal(err)
	}
	below.gather, below.inLoop, below.Conn, below.spares = true, true, nil, &l.spares
	conn := &epollConn{loop: l, stream: stream{secure: over}, fd: near}
	conn.session, _, _ = c.Admit(&net.UnixAddr{}, nil)
	conn.session.Open(conn, conn.fd)
	l.post(conn)
	round(t, l, func() {})
	return conn, newPeer(t, client)
}

// A loop that has said its farewell reads what still comes until its peer has ended, too. Otherwise the kernel would break the
// connection, and some peers would lose what they have not read.
func TestALoopReadsToTheEndAfterItsFarewell(t *testing.T) {
	c := &carried{}
	c.handle = func(s *fakeSession, line string) bool {
		s.ending = line == "bye"
		return false
	}
	l := loopOf(t, c)
	defer l.closeAll()
	conn, p := carrySecurely(t, c, l)
	p.send("bye\n" + strings.Repeat("more\n", 20_000))
	round(t, l, func() {})
	p.want("bye\n")
	if _, err := p.ReadByte(); err != io.EOF {
		t.Errorf("no farewell: %v", err)
	}
	round(t, l, func() {})
	if left, _ := unix.IoctlGetInt(conn.fd, unix.TIOCINQ); left > 0 || conn.at() == gone {
		t.Errorf("%d bytes are left, phase %d", left, conn.at())
	}
	p.Close()
	round(t, l, func() {}) // which meets its farewell
	round(t, l, func() {})
	if conn.at() != gone {
		t.Error("it is not closed when its peer has ended")
	}
}

// The farewell of a peer ends a connection that waits and would be abandoned, as the end of TCP does, and at once: it waits for no end of
// the peer's, as its session may be granted meanwhile what it has waited for.
func TestAFarewellToAPausedLoopConnection(t *testing.T) {
	for _, abandons := range []bool{false, true} {
		c := &carried{}
		c.handle = func(s *fakeSession, line string) bool {
			s.wait(abandons, "done\n")
			return true
		}
		l := loopOf(t, c)
		conn, p := carrySecurely(t, c, l)
		p.send("wait\n")
		round(t, l, func() {})
		_ = p.Conn.(*tls.Conn).CloseWrite()
		round(t, l, func() {})
		round(t, l, func() {})
		if ends := conn.at() == gone; ends != abandons || !ends && conn.at() >= closing {
			t.Errorf("abandons %v: phase %d", abandons, conn.at())
		}
		if !abandons {
			conn.session.(*fakeSession).finish()
			for range 3 { // the wait, the farewell, and the end
				round(t, l, func() {})
			}
			p.want("done\n")
			if _, err := p.ReadByte(); err != io.EOF {
				t.Errorf("after the reply: %v", err)
			}
		}
		l.closeAll()
	}
}

// Of a peer whose session waits, so much is read and no more.
func TestALoopReadsLittleBehindAWait(t *testing.T) {
	c := &carried{}
	c.handle = waiting(func(*fakeSession) {})
	l := loopOf(t, c)
	defer l.closeAll()
	conn, p := carrySecurely(t, c, l)
	p.send("leave\n")
	round(t, l, func() {})
	p.send(strings.Repeat("now\n", 25_000))
	for range 10 {
		round(t, l, func() {})
	}
	if n := len(conn.secure.behind); n < mostBehind || n > 2*mostBehind+18<<10 {
		t.Errorf("%d bytes are held", n)
	}
}

// A server that stops owes answers to what was read while a session waited.
func TestALoopOwesWhatCameBehindAWait(t *testing.T) {
	c := &carried{}
	c.handle = waiting(func(*fakeSession) {})
	l := loopOf(t, c)
	defer l.closeAll()
	conn, p := carrySecurely(t, c, l)
	for _, line := range []string{"leave\n", "now\n"} {
		p.send(line)
		round(t, l, func() {})
	}
	conn.session.(*fakeSession).finish()
	round(t, l, func() {})
	if p.want("leave\n"); !l.owes() {
		t.Error("nothing is owed")
	}
	round(t, l, func() {})
	if p.want("now\n"); l.draining {
		for range 2 { // at the first look the peer's kernel may not know
			l.owes()
		}
		if l.owes() {
			t.Error("something is owed for ever")
		}
	}
}

// The answers of TLS itself leave with the round, though the session says nothing.
func TestALoopSendsWhatTLSAnswers(t *testing.T) {
	c := &carried{}
	l := loopOf(t, c)
	defer l.closeAll()
	conn, p := carrySecurely(t, c, l)
	p.send("half a line")
	conn.secure.below.toWrite = append(conn.secure.below.toWrite, "answer"...) // as a change of keys does within the read
	round(t, l, func() {})
	got := make([]byte, 6)
	if _, err := io.ReadFull(p.Conn.(*tls.Conn).NetConn(), got); err != nil || string(got) != "answer" {
		t.Errorf("%q, %v", got, err)
	}
}

// Bytes that the socket does not take leave when its peer reads, even if all of them are sealed, and the session knows how many they are.
func TestALoopKeepsWhatIsSealed(t *testing.T) {
	c := &carried{}
	reply := strings.Repeat("x", writeSize-1) + "\n"
	c.handle = func(s *fakeSession, _ string) bool {
		s.reply(reply)
		return true
	}
	l := loopOf(t, c)
	defer l.closeAll()
	conn, p := carrySecurely(t, c, l)
	if err := unix.SetsockoptInt(conn.fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 4096); err != nil {
		t.Fatal(err)
	}
	p.send("a\n")
	round(t, l, func() {})
	unsent := conn.session.(*fakeSession).unsent.Load()
	if unsent == 0 || unsent != int64(len(conn.secure.sealed())) || len(conn.out) != conn.sent {
		t.Fatalf("%d bytes unsent, %d sealed, %d of %d replies", unsent, len(conn.secure.sealed()), conn.sent, len(conn.out))
	}
	all := make(chan struct{})
	go func() {
		defer close(all)
		if got, err := p.ReadString('\n'); got != reply {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	}()
	for waits := true; waits; {
		round(t, l, func() {})
		select {
		case <-all:
			waits = false
		default:
		}
	}
	if unsent := conn.session.(*fakeSession).unsent.Load(); unsent != 0 || conn.secure.below.toWrite != nil {
		t.Errorf("%d bytes unsent; a buffer stays: %v", unsent, conn.secure.below.toWrite != nil)
	}
}

// inPlace is a session that serves what it is given where it lies.
type inPlace struct {
	*fakeSession
	serve func(data []byte)
}

func (s inPlace) Serve(data []byte) bool       { s.serve(data); return false }
func (s inPlace) Identify(_ *x509.Certificate) {}

// Others that are served in the middle of a long command leave its input as it is.
func TestInputOfALongCommandWithTLS(t *testing.T) {
	c := &carried{}
	l := loopOf(t, c)
	defer l.closeAll()
	long, p := carrySecurely(t, c, l)
	_, other := carrySecurely(t, c, l)
	served := false
	long.session = inPlace{long.session.(*fakeSession), func(data []byte) {
		before := bytes.Clone(data)
		other.send("other\n")
		for len(l.other.plain) == 0 {
			long.ServeOthers(false)
		}
		if served = true; !bytes.Equal(data, before) {
			t.Errorf("%q became %q", before, data)
		}
	}}
	p.send("long command\n")
	round(t, l, func() {})
	if other.want("other\n"); !served {
		t.Error("it was not served")
	}
}
