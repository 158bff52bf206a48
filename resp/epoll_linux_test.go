package resp

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
