package transport

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// loopOf returns a loop that a test drives by hand.
func loopOf(t *testing.T, c *carried) *epollLoop {
	t.Helper()
	c.confirming = c.Sync
	l, err := newEpollLoop(&Transport{server: &c.fakeServer, synced: c.Sync}, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.wantNoFaults(t) })
	return l
}

// socketEnds returns both ends of a connection.
func socketEnds(t *testing.T) (fd int, far peer) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	return fds[0], newPeer(t, connOf(t, fds[1]))
}

func connOf(t *testing.T, fd int) net.Conn {
	t.Helper()
	file := os.NewFile(uintptr(fd), "socket")
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// carry gives a loop a connection to take in at its next round, and returns both its ends.
func carry(t *testing.T, c *carried, l *epollLoop) (*epollConn, peer) {
	t.Helper()
	fd, far := socketEnds(t)
	conn := &epollConn{loop: l, fd: fd}
	conn.session, _, _ = c.Admit(&net.UnixAddr{}, nil)
	conn.session.Open(conn, conn.fd)
	l.post(conn)
	return conn, far
}

// round is one of a loop. between is done when its events are known.
func round(t *testing.T, l *epollLoop, between func()) {
	t.Helper()
	n, err := l.poll(0)
	if err != nil {
		t.Fatal(err)
	}
	between()
	l.serve(n)
	if l.synced {
		l.disk.commit(false)
	}
	l.send()
}

// owes looks at all connections at once.
func (l *epollLoop) owes() bool {
	defer func() { l.draining = true }()
	return l.owesTo(l.conns)
}

// A loop that cannot go on ends the process, as nobody would serve its connections.
func TestALoopThatCannotGoOn(t *testing.T) {
	for want, harm := range map[string]func(*epollLoop){
		"at the disco":      func(l *epollLoop) { l.postChore(chore{step: func() (more bool) { panic("at the disco") }}) },
		"epoll_wait failed": func(l *epollLoop) { unix.Close(l.epoll) },
	} {
		c, told := &carried{}, ""
		c.exit = func(text string) { told = text }
		l := loopOf(t, c)
		harm(l)
		l.run()
		if !strings.Contains(told, want) {
			t.Errorf("%q, want %s", told, want)
		}
	}
}

// A loop that has ended writes no more to its wake descriptor, whose number may be that of another file by then.
func TestAskAfterTheEnd(t *testing.T) {
	l := loopOf(t, &carried{})
	l.closeAll()
	path := filepath.Join(t.TempDir(), "f")
	for range 8 {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
	}
	l.post(nil)
	if text, _ := os.ReadFile(path); len(text) != 0 {
		t.Errorf("%q was written to a file", text)
	}
}

// A long command begins while its loop looks at who asked for it, and the others who did are served meanwhile.
func TestALongCommandAmongThoseThatAsked(t *testing.T) {
	c := &carried{}
	var ended atomic.Bool
	c.handle = func(s *fakeSession, line string) bool {
		switch line {
		case "long":
			for !ended.Load() {
				s.conn.ServeOthers(false)
			}
			s.conn.Resume()
		case "end":
			ended.Store(true)
		}
		return false
	}
	l := loopOf(t, c)
	defer l.closeAll()
	runs, runsPeer := carry(t, c, l)
	round(t, l, func() {})
	runs.Wake()
	_, comes := carry(t, c, l)
	var served sync.WaitGroup
	defer served.Wait()
	served.Go(func() { round(t, l, func() { runsPeer.send("long\n") }) })
	comes.ask("end\n", "end\n")
	runsPeer.want("long\n")
}

// The end of the input comes in the round that has replies, which wait for the disk: so does the end.
func TestTheEndOfInputWaitsForItsRound(t *testing.T) {
	c := &carried{Options: Options{Sync: true}}
	l := loopOf(t, c)
	conn, peer := carry(t, c, l)
	round(t, l, func() {})
	peer.send("a\n")
	conn.Wake() // so that it is read twice in this round
	n, err := l.poll(0)
	if err != nil {
		t.Fatal(err)
	}
	peer.closeWrite() // of which the events do not tell
	l.serve(n)
	if conn.at() < closing {
		t.Fatal("the end was not met")
	}
	peer.wantNothing()
	if l.synced {
		l.disk.commit(false)
	}
	l.send()
	peer.want("a\n")
	peer.wantClosed()
	l.closeAll()
}

// The acceptor waits for a loop that is busy, but not when the server stops, and a stopping server no longer than it is told to.
func TestNobodyWaitsForABusyLoop(t *testing.T) {
	busy := &epollCarrier{loops: []*epollLoop{loopOf(t, &carried{})}}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	busy.settle(ctx)
	if !busy.owes(time.Millisecond) {
		t.Error("a busy loop owes nothing")
	}
}

// The acceptor waits for two rounds, and for more while there is input, but not for ever.
func TestHowLongALoopSettles(t *testing.T) {
	for _, test := range []struct{ unread, late, want int }{{0, 0, 2}, {1, 0, mostSettling}, {0, 1, mostSettling}, {1, 1, mostSettling}} {
		l := loopOf(t, &carried{})
		l.unread, l.late = make([]*epollConn, test.unread), make([]*epollConn, test.late)
		var settling sync.WaitGroup
		settling.Go(func() { (&epollCarrier{loops: []*epollLoop{l}}).settle(t.Context()) })
		eventually(t, "chore", func() bool { l.drainInbox(); return len(l.chores) > 0 })
		rounds := 0
		for ; len(l.chores) > 0; rounds++ {
			l.doChores(false)
		}
		if settling.Wait(); rounds != test.want {
			t.Errorf("%+v: %d rounds", test, rounds)
		}
	}
}

// However a loop waits, it returns what has come, and nothing else but an error.
func TestALoopWaits(t *testing.T) {
	for _, spare := range []bool{false, true} {
		for _, naps := range []bool{false, true} {
			l := loopOf(t, &carried{})
			l.spare, l.naps.pay = spare, naps
			wait := func() {
				t.Helper()
				if n, err := l.wait(false); n != 1 || err != nil || int(l.events[0].Fd) != l.wakeFD {
					t.Errorf("spare %v, naps %v: %d events, %v", spare, naps, n, err)
				}
				l.drainInbox()
				l.naps.pay = naps
			}
			l.post(nil) // before
			wait()
			time.AfterFunc(5*time.Millisecond, func() { l.post(nil) }) // while it sleeps
			wait()
			unix.Close(l.epoll)
			if _, err := l.wait(false); err == nil {
				t.Errorf("spare %v, naps %v: no error", spare, naps)
			}
			unix.Close(l.wakeFD)
		}
	}
}

// A stopping server owes an answer to what had arrived when it was asked first, and to what follows that on its connection, up to a bound.
// Nothing has followed if nothing has come for two looks.
func TestWhatIsOwed(t *testing.T) {
	const nothing, something = "", "a\n"
	for name, test := range map[string]struct {
		sent []string // before each look; between looks it is answered
		owes []bool
	}{
		"nothing":            {[]string{nothing, nothing}, []bool{false, false}},
		"too late":           {[]string{nothing, something, nothing}, []bool{false, false, false}},
		"something":          {[]string{something, nothing, nothing, nothing}, []bool{true, true, false, false}},
		"more follows":       {[]string{something, something, nothing, something, nothing, nothing}, []bool{true, true, true, true, true, false}},
		"more, but too late": {[]string{something, nothing, nothing, something}, []bool{true, true, false, false}},
	} {
		c := &carried{}
		l := loopOf(t, c)
		_, p := carry(t, c, l)
		round(t, l, func() {})
		for i, sent := range test.sent {
			p.send(sent)
			if owes := l.owes(); owes != test.owes[i] {
				t.Errorf("%s, look %d: %v", name, i, owes)
			}
			round(t, l, func() {})
			p.want(sent)
		}
		l.closeAll()
	}
}

func TestWhatIsOwedIsBounded(t *testing.T) {
	c := &carried{}
	c.handle = func(*fakeSession, string) bool { return true }
	l := loopOf(t, c)
	defer l.closeAll()
	conn, p := carry(t, c, l)
	round(t, l, func() {})
	read, line := 0, strings.Repeat("x", 1<<10)+"\n"
	for p.send(line); l.owes(); p.send(line) {
		round(t, l, func() {})
		read += len(line)
	}
	if read < onItsWay || read > onItsWay+len(line) {
		t.Errorf("%d bytes are still answered", read)
	}
	conn.owed = 1
	if conn.reach(closing); l.owes() {
		t.Error("something is owed to a connection that ends")
	}
}

// Replies are owed until they have left, also if the kernel does not tell that it has room; and those that have room leave at the end.
func TestRepliesAreOwed(t *testing.T) {
	for _, stops := range []bool{false, true} {
		c := &carried{}
		c.handle = fills
		l := loopOf(t, c)
		conn, p := carry(t, c, l)
		round(t, l, func() {})
		const bytes = 1 << 20
		got := fill(t, l, conn, p, bytes)
		p.want(strings.Repeat("x", got))
		for looks := 0; !stops && l.owes(); looks++ {
			more := conn.sent - got
			if conn.sent == 0 {
				more = bytes - got
			}
			if looks > bytes {
				t.Fatal("nothing leaves")
			}
			p.want(strings.Repeat("x", more))
			got += more
		}
		l.closeAll()
		rest, _ := io.ReadAll(p)
		if got += len(rest); !stops && got != bytes || stops && len(rest) == 0 {
			t.Errorf("%d bytes have left, %d of them at the end", got, len(rest))
		}
	}
}

// fill asks for so many bytes as a connection's peer, and returns how many its socket took.
func fill(t *testing.T, l *epollLoop, conn *epollConn, p peer, bytes int) (took int) {
	t.Helper()
	p.send(fmt.Sprintln("fill", bytes))
	round(t, l, func() {})
	if !conn.full {
		t.Fatal("the socket takes all")
	}
	return conn.sent
}

func fills(s *fakeSession, line string) bool {
	var bytes int
	if _, err := fmt.Sscanf(line, "fill %d", &bytes); err != nil {
		return false
	}
	s.reply(strings.Repeat("x", bytes))
	return true
}

// A connection that is woken in a round has its earlier replies sent only with those of the round, which wait for the disk.
func TestAWokenConnectionAndTheDisk(t *testing.T) {
	c := &carried{Options: Options{Sync: true}}
	var conn *epollConn
	var slow peer
	took := 0
	c.handle = func(s *fakeSession, line string) bool {
		if line == "late" { // meanwhile the socket has room for all
			slow.want(strings.Repeat("x", took))
		}
		return fills(s, line)
	}
	l := loopOf(t, c)
	defer l.closeAll()
	other, otherPeer := carry(t, c, l)
	conn, slow = carry(t, c, l)
	round(t, l, func() {})
	bytes := fill(t, l, other, otherPeer, 1<<20) * 5 / 4
	took = fill(t, l, conn, slow, bytes)
	slow.send("late\n")
	conn.Wake()
	n, err := l.poll(0)
	if err != nil {
		t.Fatal(err)
	}
	l.serve(n)
	slow.wantNothing()
	if l.synced {
		l.disk.commit(false)
	}
	l.send()
	slow.want(strings.Repeat("x", bytes-took) + "late\n")
}

// Before a connection is closed as idle, it is seen whether its peer has taken something, which may be too little for the kernel to
// tell of it.
func TestAPeerThatTakesALittle(t *testing.T) {
	c := &carried{}
	c.handle = fills
	var unsent int64
	c.onWake = func(s *fakeSession) { unsent = s.unsent.Load() }
	l := loopOf(t, c)
	defer l.closeAll()
	conn, slow := carry(t, c, l)
	round(t, l, func() {})
	took := fill(t, l, conn, slow, 1<<20)
	fill(t, l, conn, slow, 1000)
	all := int64(1<<20 + 1000 - took)
	if told := conn.session.(*fakeSession).unsent.Load(); told != all {
		t.Errorf("%d bytes are told as unsent, want %d", told, all)
	}
	slow.want(strings.Repeat("x", took/2))
	conn.Wake()
	round(t, l, func() {})
	if unsent == 0 || unsent >= all {
		t.Errorf("%d bytes seem unsent", unsent)
	}
}

// A connection that ends at once in a round that has replies for it is told of nothing after its end.
func TestAnEndInARoundWithReplies(t *testing.T) {
	for _, sync := range []bool{false, true} {
		c := &carried{Options: Options{Sync: sync}}
		c.handle = func(s *fakeSession, line string) bool {
			if line == "cut" {
				s.conn.Close(true)
			}
			return fills(s, line)
		}
		l := loopOf(t, c)
		conn, p := carry(t, c, l)
		round(t, l, func() {})
		fill(t, l, conn, p, 1<<20)
		p.send("cut\n")
		round(t, l, func() {})
		if conn.at() != gone {
			t.Error("it has not ended")
		}
		l.closeAll()
	}
}

// A connection goes to the loop that has the fewest.
func TestLoopsShareTheConnections(t *testing.T) {
	c := &carried{Options: Options{Loops: 3}}
	c.start(t)
	addr := c.listen(t, "unix")
	has := func(want int64) func() bool {
		return func() bool {
			for _, l := range c.carrier.(*epollCarrier).loops {
				if l.count.Load() != want {
					return false
				}
			}
			return true
		}
	}
	for range 2 {
		var peers []peer
		for range 12 {
			p := dial(t, addr)
			p.ask("a\n", "a\n")
			peers = append(peers, p)
		}
		if !has(4)() {
			t.Error("three loops do not share 12 connections")
		}
		for _, p := range peers {
			p.Close()
		}
		eventually(t, "end of all", has(0))
	}
}

// A session confirms each round that it was served in, also if it has no replies.
func TestARoundWithoutReplies(t *testing.T) {
	c := &carried{Options: Options{Sync: true}}
	c.handle = func(*fakeSession, string) bool { return true }
	l := loopOf(t, c)
	defer l.closeAll()
	_, p := carry(t, c, l)
	round(t, l, func() {})
	before := c.confirms.Load()
	p.send("a\n")
	round(t, l, func() {})
	if n := c.confirms.Load() - before; n != 1 {
		t.Errorf("%d times it was to confirm", n)
	}
}

// A connection that ends is closed when its peer has taken nothing for a while, however long it has taken something before. What it
// sends meanwhile is dropped.
func TestAPeerThatTakesItsTimeAtTheEnd(t *testing.T) {
	c := &carried{}
	c.handle = func(s *fakeSession, line string) bool {
		if line == "late" {
			t.Error("it is served")
		}
		return fills(s, line)
	}
	c.still.Store(true)
	l := loopOf(t, c)
	defer l.closeAll()
	conn, slow := carry(t, c, l)
	round(t, l, func() {})
	took := fill(t, l, conn, slow, 8<<20)
	conn.Close(false)
	round(t, l, func() {})
	look := func(after time.Duration, there bool) {
		t.Helper()
		c.skew(after)
		conn.Wake()
		if round(t, l, func() {}); there != (conn.at() < gone) {
			t.Fatalf("after %v it is there: %v", after, !there)
		}
	}
	for range 3 {
		slow.send("late\n")
		slow.want(strings.Repeat("x", took/2))
		look(lingerNS-1, true)
	}
	look(lingerNS, true)
	look(1, false)
}

// A loop that does not go round in time may owe answers.
func TestALoopThatStandsOwes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stands := &epollCarrier{loops: []*epollLoop{loopOf(t, &carried{})}}
		begin := time.Now()
		if owes := stands.owes(time.Minute); !owes || time.Since(begin) != time.Minute {
			t.Errorf("owes %v after %v", owes, time.Since(begin))
		}
	})
}

// The buffer of a reply serves the next one, whoever gets it.
func TestALoopReusesItsBuffers(t *testing.T) {
	c := &carried{}
	l := loopOf(t, c)
	defer l.closeAll()
	for range 3 {
		conn, p := carry(t, c, l)
		round(t, l, func() {})
		p.send("a\n")
		round(t, l, func() {})
		if p.want("a\n"); conn.out != nil || len(l.spares) != 1 {
			t.Errorf("%d bytes of buffers, %d spare ones", cap(conn.out), len(l.spares))
		}
	}
}

// A poller that cannot ask the system says so.
func TestAPollerThatFails(t *testing.T) {
	p := poller{epoll: -1, events: make([]unix.EpollEvent, maxEvents)}
	if n, err := p.poll(0); n != 0 || err != unix.EBADF {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := p.wait(true); err != unix.EBADF {
		t.Error(err)
	}
}
