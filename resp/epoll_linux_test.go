package resp

import (
	"bufio"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A loop that cannot go on ends the process, as nobody would serve its connections.
func TestALoopThatCannotGoOn(t *testing.T) {
	for want, harm := range map[string]func(*epollLoop){
		"at the disco":      func(l *epollLoop) { l.chore(func() (more bool) { panic("at the disco") }) },
		"epoll_wait failed": func(l *epollLoop) { unix.Close(l.epoll) },
	} {
		w := newWorld(t)
		code := -1
		w.exit = func(c int) { code = c }
		l, err := newEpollLoop(w.Server)
		if err != nil {
			t.Fatal(err)
		}
		harm(l)
		l.run()
		if text := w.log.String(); code != 1 || !strings.Contains(text, want) {
			t.Errorf("%s: exit code %d, log %s", want, code, text)
		}
	}
}

// A loop that has ended writes no more to its wake descriptor, whose number may be that of another file by then.
func TestAskAfterTheEnd(t *testing.T) {
	l, err := newEpollLoop(newWorld(t).Server)
	if err != nil {
		t.Fatal(err)
	}
	l.closeAll()
	path := filepath.Join(t.TempDir(), "f")
	for range 8 {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
	}
	l.ask(nil)
	if text, _ := os.ReadFile(path); len(text) != 0 {
		t.Errorf("%q was written to a file", text)
	}
}

// A script begins while its loop looks at who asked for it, and the others who did are served meanwhile.
func TestAScriptBeginsAmongThoseThatAsked(t *testing.T) {
	w := newWorld(t, "lua-time-limit", "1")
	var nowNS atomic.Int64
	w.clock = func() int64 { return nowNS.Add(100_000) }
	l, err := newEpollLoop(w.Server)
	if err != nil {
		t.Fatal(err)
	}
	defer l.closeAll()
	carried := func() (*epollConn, testConn) {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		file := os.NewFile(uintptr(fds[1]), "peer")
		defer file.Close()
		peer, err := net.FileConn(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { peer.Close() })
		_ = peer.SetDeadline(time.Now().Add(patience))
		c := &epollConn{loop: l, fd: fds[0]}
		c.session, _ = w.NewSession(c, Peer{Remote: remoteAddr, Local: localAddr})
		c.session.Open(fds[0])
		l.ask(c)
		return c, testConn{peer, bufio.NewReader(peer), t}
	}
	round := func(between func()) {
		n, err := l.poll(0)
		if err != nil {
			t.Fatal(err)
		}
		between()
		l.serve(n)
		l.send()
	}
	runs, runsPeer := carried()
	round(func() {})
	runs.Wake()
	_, comes := carried()
	var served sync.WaitGroup
	defer served.Wait()
	served.Go(func() { round(func() { runsPeer.send(evalCall(endless)) }) })
	comes.ask("PING\r\nSCRIPT KILL\r\n", "-"+errBusy+"\r\n+OK\r\n")
	runsPeer.wantError(errScriptKilled)
}

// The acceptor waits for a loop that is busy, but not when the server stops.
func TestSettleEndsWithTheServer(t *testing.T) {
	busy, err := newEpollLoop(newWorld(t).Server)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	(&epollCarrier{loops: []*epollLoop{busy}}).settle(ctx)
}
