package transport

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// stuck holds commits until the outcome of each is sent, or all are released.
func stuck(t *testing.T, c *carried) (disk chan error, release func()) {
	t.Helper()
	eventually(t, "end of all rounds", func() bool { return c.commits.Load()+c.leaves.Load() == c.begins.Load() })
	disk = make(chan error)
	c.gate.Store(&disk)
	release = sync.OnceFunc(func() { close(disk) })
	t.Cleanup(release)
	return disk, release
}

// standIn lets a peer write, and returns when the commit of that stands.
func standIn(t *testing.T, c *carried, who peer, line string) {
	t.Helper()
	commits := c.commits.Load()
	who.send(line)
	eventually(t, "commit", func() bool { return c.commits.Load() > commits })
}

// While the disk is slow, who has written nothing is answered, and who has written waits for the outcome of his own commit.
func TestASlowDisk(t *testing.T) {
	eachCarrier(t, func(c *carried) { c.Sync = true }, func(t *testing.T, c *carried) {
		writer, late, prober := c.dial(t), c.dial(t), c.dial(t)
		writer.ask("a\n", "a\n")
		prober.ask("look\n", "look\n")
		_, release := stuck(t, c)
		standIn(t, c, writer, "b\nlook\n")
		for range 3 {
			prober.ask("look\n", "look\n")
			c.dial(t).ask("look\nlook\n", "look\nlook\n")
		}
		late.send("c\nlook\n")
		prober.ask("look\n", "look\n")
		writer.send("d\n")
		writer.wantNothing()
		late.wantNothing()
		release()
		writer.want("b\nlook\nd\n")
		late.want("c\nlook\n")

		disk, release := stuck(t, c)
		standIn(t, c, writer, "e\n")
		prober.ask("look\n", "look\n")
		answered := make(chan bool)
		var refusing sync.WaitGroup
		refusing.Go(func() {
			for {
				select {
				case disk <- errors.New("full"): // perhaps to a round that has written nothing
				case <-answered:
					return
				}
			}
		})
		writer.want("full\n")
		close(answered)
		refusing.Wait()
		release()
		writer.ask("f\n", "f\n")
	})
}

// A connection that waits for a slow disk can be killed. One that is woken or closed first gets its replies, as do all when the transport
// stops.
func TestWhoWaitsForASlowDisk(t *testing.T) {
	var served sync.Map // by server: how many lines
	eachCarrier(t, func(c *carried) {
		c.Sync = true
		n := &atomic.Int64{}
		served.Store(c, n)
		c.handle = func(*fakeSession, string) bool { n.Add(1); return false }
		c.onWake = func(s *fakeSession) { s.reply("woken\n") }
	}, func(t *testing.T, c *carried) {
		var peers [4]peer
		for i := range peers {
			peers[i] = c.dial(t)
			peers[i].ask("look\n", "look\n")
		}
		sessions := c.all()
		_, release := stuck(t, c)
		for _, p := range peers {
			p.send("a\n")
		}
		n, _ := served.Load(c)
		eventually(t, "call", func() bool { return n.(*atomic.Int64).Load() == 8 })
		sessions[0].conn.Wake()
		sessions[1].conn.Close(false)
		sessions[2].conn.Close(true)
		if c.byLoops() {
			peers[2].wantClosed()
		}
		c.dial(t).ask("look\n", "look\n") // in a round that sees what was asked for
		stopped := make(chan bool)
		go func() { c.stop(); close(stopped) }()
		if c.byLoops() {
			for _, l := range c.carrier.(*epollCarrier).loops {
				l.askStop() // now, and not when that goroutine comes to it
			}
		}
		release()
		<-stopped
		for i, p := range peers {
			if got, err := io.ReadAll(p); i != 2 && c.byLoops() && !strings.HasPrefix(string(got), "a\n") {
				t.Errorf("%d: %q, %v", i, got, err)
			}
		}
	})
}

// The memory that waits for a slow disk is bounded: first the input of writers waits in their sockets, and at last that of all.
func TestHowMuchWaitsForASlowDisk(t *testing.T) {
	l := loopOf(t, &carried{})
	for _, test := range []struct {
		kept  int
		wrote bool
		off   bool
	}{
		{0, true, false}, {roundBytes/2 - 1, true, false}, {roundBytes / 2, true, true}, {roundBytes / 2, false, false},
		{roundBytes - 1, false, false}, {roundBytes, false, true}, {roundBytes, true, true},
	} {
		l.disk.ahead, l.disk.keptBytes = &standing{}, test.kept
		c := &epollConn{wrote: test.wrote}
		if got := l.disk.putsOff(c); got != test.off || c.held != test.off {
			t.Errorf("%+v: %v", test, got)
		}
		if l.disk.ahead = nil; l.disk.putsOff(c) {
			t.Errorf("%+v: put off though no disk is slow", test)
		}
	}
}

// Each connection gets its replies in order, whatever the disk takes for each write.
func TestOrderOnASlowDisk(t *testing.T) {
	t.Parallel()
	eachCarrier(t, func(c *carried) { c.Sync = true }, func(t *testing.T, c *carried) {
		disk, release := stuck(t, c)
		var asking, committing sync.WaitGroup
		done := make(chan struct{})
		committing.Go(func() { // one outcome for each look: some commits stand, and some do not
			prober := c.dial(t)
			for {
				select {
				case <-done:
					release()
					return
				case disk <- nil:
					prober.ask("look\n", "look\n")
				}
			}
		})
		for i := range 8 {
			p := c.dial(t)
			asking.Go(func() {
				for n := range 20 {
					text := strings.Repeat(fmt.Sprintf("%d:%d\nlook\n", i, n), 1+(i+n)%3)
					p.ask(text, text)
				}
			})
		}
		asking.Wait()
		close(done)
		committing.Wait()
	})
}

// A loop that is to end is not taken over any more: peers who write all the time would keep it from ending.
func TestTheEndOnASlowDisk(t *testing.T) {
	c := &carried{Options: Options{Sync: true}}
	disk := make(chan error)
	c.gate.Store(&disk)
	l := loopOf(t, c)
	l.askStop()
	l.drainInbox()
	l.doChores(false)
	go l.run()
	eventually(t, "commit", func() bool { return c.commits.Load() == 1 })
	if l.disk.stands.Load() != 0 {
		t.Error("another goroutine may take the loop over")
	}
	disk <- nil
	<-l.over
}

// A loop runs on when its first goroutine has ended and the next has not begun yet, so stop waits for it.
func TestALoopBetweenTwoGoroutines(t *testing.T) {
	c := &carried{Options: Options{Sync: true}}
	disk := make(chan error)
	c.gate.Store(&disk)
	l := loopOf(t, c)
	e := &epollCarrier{loops: []*epollLoop{l}, ended: make(chan struct{})}
	first := make(chan bool)
	go func() { l.run(); close(first) }()
	l.post(nil)
	eventually(t, "commit", func() bool { return l.disk.stands.Swap(0) != 0 })
	disk <- nil
	<-first
	select {
	case <-l.over:
		t.Error("stop does not wait for the loop")
	default:
	}
	stopped := make(chan bool)
	go func() { e.stop(); close(stopped) }()
	go l.takeOver()
	for ended := false; !ended; { // a commit or two
		select {
		case disk <- nil:
		case <-stopped:
			ended = true
		}
	}
}

// A session that has written, waits, and is woken while the disk is slow goes on when the disk has what it wrote.
func TestWhoIsWokenWhileTheDiskIsSlow(t *testing.T) {
	eachCarrier(t, func(c *carried) {
		c.Sync = true
		c.handle = func(s *fakeSession, line string) bool {
			if line == "wait" {
				s.wait(false, "done\n")
			}
			return line == "wait"
		}
	}, func(t *testing.T, c *carried) {
		writer := c.dial(t)
		writer.ask("look\n", "look\n")
		session := c.all()[0]
		prober := c.dial(t)
		prober.ask("look\n", "look\n")
		_, release := stuck(t, c)
		standIn(t, c, writer, "a\nwait\n")
		prober.ask("look\n", "look\n") // another goroutine has the loop
		session.finish()
		prober.ask("look\n", "look\n")
		writer.wantNothing()
		release()
		writer.want("a\ndone\n")
	})
}

// A round that lands in the middle of another is taken up, though that one has emptied the inbox: its clients waited for the next event of
// their loop before, for a minute where nobody else called.
func TestARoundLandsInAnother(t *testing.T) {
	l, err := newEpollLoop(&Transport{synced: true}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	round := l.disk.standAside()
	l.disk.land() // as a round begins
	round.land(l, nil)
	l.drainInbox() // as it goes on
	if !l.busy() {
		t.Error("the loop sleeps, and nothing will wake it")
	}
	if l.disk.land(); l.busy() || l.disk.ahead != nil {
		t.Error("it has not landed")
	}
}
