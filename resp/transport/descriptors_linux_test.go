package transport

import (
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Loops that the limit on open files does not allow are an error, and leave none open.
func TestLoopsWithoutDescriptors(t *testing.T) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	defer syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
	var files []int
	defer func() {
		for _, fd := range files {
			unix.Close(fd)
		}
	}()
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: min(300, limit.Max), Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	fill := func() (opened int) {
		for {
			fd, err := unix.Dup(0)
			if err != nil {
				return opened
			}
			files = append(files, fd)
			opened++
		}
	}
	fill()
	c := &carried{}
	for free, want := range []string{"epoll_create: ", "eventfd: ", "epoll_create: ", "eventfd: "} {
		for range free {
			unix.Close(files[len(files)-1])
			files = files[:len(files)-1]
		}
		if _, err := New(&c.fakeServer, Options{Loops: 2}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("with %d descriptors: %v, want %s", free, err, want)
		}
		if left := fill(); left != free {
			t.Errorf("%d of %d descriptors are left", left, free)
		}
	}
}

// A session hears how much its peer has not taken.
func TestSendSaysWhatIsPending(t *testing.T) {
	c := &carried{}
	const large = 8 << 20 // more than a socket holds
	var pending []int
	c.handle = func(s *fakeSession, line string) bool {
		s.reply(strings.Repeat("x", large))
		pending = append(pending, s.flush())
		return true
	}
	l := loopOf(t, c)
	defer l.closeAll()
	conn, peer := carry(t, c, l)
	round(t, l, func() {})
	peer.send("a\n")
	round(t, l, func() {})
	unsent := conn.session.(*fakeSession).unsent.Load()
	if len(pending) != 1 || pending[0] < 1<<20 || pending[0] > large || unsent < 1<<20 || unsent > int64(pending[0]) {
		t.Errorf("%d pending, %d unsent", pending, unsent)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		peer.want(strings.Repeat("x", large))
	}()
	for {
		round(t, l, func() {})
		select {
		case <-done:
			round(t, l, func() {})
			if n := conn.session.(*fakeSession).unsent.Load(); n != 0 {
				t.Errorf("%d unsent, and the peer has all", n)
			}
			return
		default:
		}
	}
}
