package session

import (
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"celld/resp/session/sessiontest"
	"celld/store"
	"celld/store/storetest"
)

// laterWorld is a world whose limiter answers when a test has it.
func laterWorld(t testing.TB, settings ...string) (*world, *storetest.Later) {
	w := newWorld(t, settings...)
	return w, answersLater(w.Service)
}

func answersLater(srv *Service) *storetest.Later {
	l := &storetest.Later{Of: srv.Store}
	srv.Limiter = l
	return l
}

// settle answers all that wait, in an order by chance, and returns what the peer is sent.
func (p *peer) settle(l *storetest.Later) string {
	for wakes := -1; l.Waiting() > 0 || p.tr.Wakes != wakes; {
		wakes = p.tr.Wakes
		if n := l.Waiting(); n > 0 {
			l.Answer(rand.IntN(n))
		}
		p.Serve(nil)
	}
	return p.tr.Take()
}

const laterCall = "CL.THROTTLE k 4 1 60"

// A session that waits serves nothing and reads nothing, and goes on where it was.
func TestASessionWaits(t *testing.T) {
	w, l := laterWorld(t)
	p := w.connect()
	if got := p.send("PING\r\n" + laterCall + "\r\nPING\r\n"); got != "+PONG\r\n" || !p.tr.Paused || l.Waiting() != 1 {
		t.Fatalf("%q, paused %v, %d wait", got, p.tr.Paused, l.Waiting())
	}
	if got := p.send("ECHO hi\r\n") + p.send(""); got != "" || !p.tr.Paused {
		t.Fatalf("%q while it waits", got)
	}
	if l.Answer(0); p.tr.Wakes != 1 {
		t.Fatalf("woken %d times", p.tr.Wakes)
	}
	if got := p.send(""); got != "*5\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:60\r\n+PONG\r\n$2\r\nhi\r\n" || p.tr.Paused {
		t.Fatalf("%q, paused %v", got, p.tr.Paused)
	}
	p.want("PING", "+PONG\r\n")
}

// An answer that comes before the call returns is as good as one that comes at once.
func TestAnAnswerThatComesAtOnce(t *testing.T) {
	w, l := laterWorld(t)
	l.Tell(func() { l.Answer(0) })
	p := w.connect()
	if got := p.send(laterCall + "\r\nPING\r\n"); got != "*5\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:60\r\n+PONG\r\n" || p.tr.Paused {
		t.Fatalf("%q, paused %v", got, p.tr.Paused)
	}
	p.Serve(nil)
	p.want("PING", "+PONG\r\n")
}

// Sessions that wait are answered each with its own, whatever the order.
func TestAnswersInAnyOrder(t *testing.T) {
	w, l := laterWorld(t)
	var peers []*peer
	for i := range 50 {
		p := w.connect()
		p.send(sessiontest.Frame("CL.THROTTLE", fmt.Sprint("key", i), strconv.Itoa(i), "1", "60"))
		peers = append(peers, p)
	}
	for l.Waiting() > 0 {
		l.Answer(rand.IntN(l.Waiting()))
	}
	for i, p := range peers {
		if got, want := p.send(""), fmt.Sprintf("*5\r\n:0\r\n:%d\r\n:%d\r\n:-1\r\n:60\r\n", i+1, i); got != want {
			t.Fatalf("%d: %q, want %q", i, got, want)
		}
	}
}

// A call that waits is answered as what it was, however many others are read meanwhile.
func TestFormsThatAreForgottenWhileTheyWait(t *testing.T) {
	w, l := laterWorld(t)
	p, inline, other := w.connect(), w.connect(), w.connect()
	p.send(sessiontest.Frame("CL.THROTTLE", "a", "4", "1", "60") + sessiontest.Frame("CL.THROTTLE", "a", "4", "1", "60"))
	inline.send("CL.THROTTLE a 4 1 60\r\n")
	for i := range 1000 {
		other.send(sessiontest.Frame("CL.THROTTLE", "b", strconv.Itoa(10_000+i), "1", "60") + "CL.THROTTLE b 20000 1 60\r\n")
		for l.Waiting() > 2 {
			l.Answer(2)
			other.Serve(nil)
		}
	}
	l.Answer(0)
	l.Answer(0)
	const first, second = "*5\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:60\r\n", "*5\r\n:0\r\n:5\r\n:3\r\n:-1\r\n:120\r\n"
	if got := p.send(""); got != first+second {
		t.Errorf("%q", got)
	}
	if got := inline.send(""); got != "*5\r\n:0\r\n:5\r\n:2\r\n:-1\r\n:180\r\n" {
		t.Errorf("%q", got)
	}
}

// A session that waits is not idle. It may be killed, or go, and then its answer is nobody's.
func TestWaitingEnds(t *testing.T) {
	w, l := laterWorld(t, "timeout", "1")
	p := w.connect()
	p.send(laterCall + "\r\n")
	w.sleepMS(5000)
	if p.look(w); p.tr.Closed {
		t.Fatal("closed as idle while it waits")
	}
	if got := p.settle(l); !strings.HasPrefix(got, "*5\r\n:0\r\n:5\r\n:4\r\n") || p.tr.Closed {
		t.Fatalf("%q, closed %v", got, p.tr.Closed)
	}
	w.sleepMS(1001)
	if p.look(w); !p.tr.Closed {
		t.Error("not closed when it is idle")
	}

	killed, killer := w.connect(), w.connect()
	killed.send(laterCall + "\r\nPING\r\n")
	killer.want(fmt.Sprint("CLIENT KILL ID ", killed.client.ID), ":1\r\n")
	if killed.Serve(nil); !killed.tr.Closed {
		t.Error("not closed when it was killed")
	}
	gone := w.connect()
	gone.send(laterCall + "\r\nPING\r\n")
	gone.Closed()
	for l.Waiting() > 0 {
		l.Answer(0)
	}
	if got := killed.send("") + gone.send(""); got != "" {
		t.Errorf("%q", got)
	}
	killer.want("PING", "+PONG\r\n")
}

// Nothing may wait in a transaction or a script, so the keys decide there, and a limiter that answers later is not asked.
func TestNothingWaitsInTransactionsAndScripts(t *testing.T) {
	w, l := laterWorld(t)
	p := w.connect()
	for _, call := range []string{laterCall, "CL.TAKE k 5/1m", "CL.MTAKE 1 k 5/1m", "CL.GIVE k 5/1m 1"} {
		p.want("MULTI", "+OK\r\n")
		p.want(call, "+QUEUED\r\n")
		if got := p.do("EXEC"); !strings.HasPrefix(got, "*1\r\n") || strings.Contains(got, "-ERR") {
			t.Errorf("%s in MULTI: %q", call, got)
		}
		script := "return redis.call('" + strings.Join(strings.Fields(call), "','") + "')"
		if got := p.do("EVAL", script, "0"); !strings.HasPrefix(got, "*") && !strings.HasPrefix(got, ":") {
			t.Errorf("%s in a script: %q", call, got)
		}
		p.do("DEL", "k") // the next one is of another kind
	}
	if l.Waiting() > 0 {
		t.Error("it was asked")
	}
	other := w.connect()
	p.send(laterCall + "\r\n")
	other.want("MULTI", "+OK\r\n")
	other.want("DBSIZE", "+QUEUED\r\n")
	other.want("EXEC", "*1\r\n:0\r\n") // which waits for nobody
}

// onLater runs a test with each carrier.
func onLater(t *testing.T, settings []string, test func(t *testing.T, srv *Service, l *storetest.Later, addr string)) {
	carrierTest{settings: settings, later: true}.run(t, func(t *testing.T, srv *Service, addr string) {
		test(t, srv, srv.Limiter.(*storetest.Later), addr)
	})
}

// Long pipelines are answered in order, from any goroutine, and hold no more than what was read of them.
func TestLongPipelinesWait(t *testing.T) {
	t.Parallel()
	onLater(t, nil, func(t *testing.T, srv *Service, l *storetest.Later, addr string) {
		var most sync.Mutex
		biggest := int64(0)
		l.Tell(func() {
			go func() {
				most.Lock()
				for _, c := range srv.Clients.All() {
					biggest = max(biggest, c.QueryBytes.Load())
				}
				most.Unlock()
				l.Answer(0)
			}()
		})
		const calls = 4000 // 200 KB
		var conns sync.WaitGroup
		for i := range 4 {
			c := sessiontest.Dial(t, addr)
			conns.Go(func() {
				var pipeline strings.Builder
				for j := range calls { // keys that are new, as what is left of them does not depend on the time
					pipeline.WriteString(sessiontest.Frame("CL.THROTTLE", fmt.Sprint("key", i, ":", j), fmt.Sprint(j%100), "1", "86400"))
				}
				go c.Write([]byte(pipeline.String()))
				for j := range calls {
					c.Ask("", fmt.Sprintf("*5\r\n:0\r\n:%d\r\n:%d\r\n:-1\r\n:86400\r\n", j%100+1, j%100))
				}
			})
		}
		conns.Wait()
		most.Lock()
		defer most.Unlock()
		if biggest > 1<<17 {
			t.Errorf("%d bytes of a pipeline are held", biggest)
		}
	})
}

// Who is killed, or resets the connection, waits no longer; others are served meanwhile.
func TestClientsThatGoWhileTheyWait(t *testing.T) {
	onLater(t, nil, func(t *testing.T, srv *Service, l *storetest.Later, addr string) {
		killed, closes, half, other := sessiontest.Dial(t, addr), sessiontest.Dial(t, addr), sessiontest.Dial(t, addr),
			sessiontest.Dial(t, addr)
		for i, c := range []sessiontest.Client{killed, closes, half} {
			c.Send(laterCall + "\r\nPING\r\n")
			eventually(t, "question", func() bool { return l.Waiting() == i+1 })
		}
		other.Ask("CLIENT KILL ADDR "+killed.LocalAddr().String()+"\r\n", ":1\r\n")
		killed.WantClosed()
		_ = half.Conn.(*net.TCPConn).CloseWrite() // it may still read
		_ = closes.Conn.(*net.TCPConn).SetLinger(0)
		closes.Close()
		eventually(t, "end", func() bool { return srv.Clients.Count() == 2 })
		for l.Waiting() > 0 {
			l.Answer(0)
		}
		half.Ask("", "*5\r\n:0\r\n:5\r\n:2\r\n:-1\r\n:180\r\n+PONG\r\n")
		half.WantClosed()
		other.Ask("PING\r\n", "+PONG\r\n")
	})
}

// An answer that came from elsewhere waits for the disk, too.
func TestALateAnswerWaitsForTheDisk(t *testing.T) {
	disk := &sessiontest.Disk{}
	carrierTest{files: disk, later: true}.run(t, func(t *testing.T, srv *Service, addr string) {
		l := srv.Limiter.(*storetest.Later)
		c := sessiontest.Dial(t, addr)
		c.Send(laterCall + "\r\n")
		eventually(t, "question", func() bool { return l.Waiting() == 1 })
		disk.Holds(c, func() { l.Answer(0) })
		c.Ask("", "*5\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:60\r\n")
	})
}

// A lease that was to end with its session ends where the session has gone before the answer, and no other does. What its call took of
// other limits stays taken.
func TestLeasesOfWhoGoesBeforeTheAnswer(t *testing.T) {
	for options, held := range map[string]bool{"BIND": false, "BIND ID x": false, "ID x": true, "": true, "BIND LEASE 1000": false} {
		w, l := laterWorld(t)
		limits := []string{"2/1h,algo=window", "1/1h,algo=conc"}
		if strings.Contains(options, "LEASE") {
			limits = []string{"1/1h"}
		}
		p, other := w.connect(), w.connect()
		p.do(append(append([]string{"CL.TAKE", "k"}, limits...), strings.Fields(options)...)...)
		p.Closed()
		l.Answer(0)
		eventually(t, "end of what is given back", func() bool { return !w.Later.GivesBack() })
		other.do("CL.TAKE", "k", limits[len(limits)-1], "PEEK")
		if got := other.settle(l); strings.HasPrefix(got[4:], ":1\r\n") != held {
			t.Errorf("%q: %q", options, got)
		}
		if len(limits) == 2 {
			other.do("CL.TAKE", "k", limits[0], "PEEK")
			if got := other.settle(l); !strings.HasPrefix(got, "*7\r\n:0\r\n:2\r\n:1\r\n") {
				t.Errorf("%q: the window has %q", options, got)
			}
		}
	}
}

// A call with WAIT that comes after SIGTERM is answered when an engine has decided, and waits for nothing else.
func TestAWaitAtTheEndIsAnswered(t *testing.T) {
	w, l := laterWorld(t)
	m := &storetest.Modes{Limiter: l}
	w.Limiter = m
	p := w.connect()
	w.RefuseWaiting()
	if got := p.send("CL.TAKE k 1/1h WAIT 1000\r\n") + p.settle(l); !granted(got) {
		t.Errorf("one that need not wait: %q", got)
	}
	if got := p.send("CL.TAKE k 1/1h WAIT 1000\r\n") + p.settle(l); got == "" || granted(got) {
		t.Errorf("one that would: %q", got)
	}
	if !slices.Equal(m.Seen, []store.WaitMode{store.DontWait, store.DontWait}) { // else an engine denies the first
		t.Errorf("they wait as %v", m.Seen)
	}
}
