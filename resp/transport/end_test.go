package transport

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// big is more than sockets hold: Linux keeps 4 MB to be sent. With the race detector copies of 16 MB took most of these tests' time.
var big = strings.Repeat(strings.Repeat("x", 60_000)+"\n", 90)

// ends are lines that end the connection, and those that do much.
func ends(s *fakeSession, line string) bool {
	switch line {
	case "big":
		s.reply(big)
	case "last":
		s.ending = true
		s.reply("end\n")
	case "slice": // the session leaves the rest for its next turn
		s.rest = true
		s.reply("slice\n")
	default:
		return false
	}
	return true
}

// stuckConn counts the writes that its peer did not let end in time.
type stuckConn struct {
	*net.TCPConn
	stuck *atomic.Int64
}

func (c stuckConn) Write(p []byte) (int, error) {
	n, err := c.TCPConn.Write(p)
	if err != nil {
		c.stuck.Add(1)
	}
	return n, err
}

// A connection that is closed in the middle of its batch gets the replies of all of it.
func TestClosedWithinABatch(t *testing.T) {
	eachCarrier(t, func(c *carried) {
		c.handle = func(s *fakeSession, line string) bool {
			if line == "close" {
				s.conn.Close(false)
				s.reply(strings.Repeat("x", 70_000) + "\n") // which leaves at once
				s.flush()
				return true
			}
			return false
		}
	}, func(t *testing.T, c *carried) {
		p := c.dial(t)
		p.ask("close\na\n", strings.Repeat("x", 70_000)+"\na\n")
		p.wantClosed()
	})
}

// The replies of a connection of any age leave before it closes, to a peer that reads late.
func TestALateReader(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]struct{ raw, reply string }{
		"a last command": {"big\nlast\n", "end\n"},
		"half a close":   {"big\na\n", "a\n"},
		"another's":      {"big\n", ""}, // ends it
	} {
		t.Run(name, func(t *testing.T) {
			var stuck atomic.Int64
			eachCarrier(t, func(c *carried) {
				c.handle = ends
				c.listener = wrapping(func(conn net.Conn) net.Conn { return stuckConn{conn.(*net.TCPConn), &stuck} })
			}, func(t *testing.T, c *carried) {
				p := c.dial(t)
				p.ask("a\n", "a\n")
				c.skew(time.Hour)
				p.send(end.raw)
				// not of the first reply, which may have been noted late
				eventually(t, "wait for the peer", func() bool { return c.unsent() > 1000 })
				if name == "another's" {
					c.skew(time.Hour)
					c.all()[0].conn.Close(false)
				} else {
					p.closeWrite()
				}
				if c.byLoops() {
					time.Sleep(2 * lingerLook) // in which it is looked at
				} else {
					eventually(t, "several tries to write", func() bool { return stuck.Load() > 3 })
				}
				p.want(big + end.reply)
				p.wantClosed()
			})
		})
	}
}

// A connection that ends and whose peer reads nothing of what it was sent is closed after a while.
func TestNobodyReadsTheEnd(t *testing.T) {
	t.Parallel()
	for _, sync := range []bool{false, true} {
		t.Run(fmt.Sprintf("sync=%v", sync), func(t *testing.T) {
			eachCarrier(t, func(c *carried) { c.handle, c.Sync = ends, sync }, func(t *testing.T, c *carried) {
				c.dial(t).send("big\nlast\n")
				eventually(t, "wait for the peer", func() bool { return c.unsent() > 0 })
				eventually(t, "end", func() bool {
					c.skew(time.Second)
					return len(c.all()) == 0
				})
			})
		})
	}
}

// A peer that breaks its connection is gone, whether it was sent something or not.
func TestAPeerThatBreaksItsConnection(t *testing.T) {
	for name, raw := range map[string]string{"idle": "a\n", "deaf": "a\nbig\n"} {
		t.Run(name, func(t *testing.T) {
			eachCarrier(t, func(c *carried) { c.handle = ends }, func(t *testing.T, c *carried) {
				p := c.dial(t)
				p.send(raw)
				p.want("a\n")
				if name == "deaf" {
					eventually(t, "wait for the peer", func() bool { return c.unsent() > 0 })
				}
				_ = p.socket().SetLinger(0)
				p.Close()
				eventually(t, "end", func() bool { return len(c.all()) == 0 })
			})
		})
	}
}

// A connection that is to end now does, whatever its peer has not taken.
func TestCutWhileThePeerReadsNothing(t *testing.T) {
	eachCarrier(t, func(c *carried) {
		c.handle = ends
		c.still.Store(true) // so that no patience ends it
	}, func(t *testing.T, c *carried) {
		c.dial(t).send("big\n")
		eventually(t, "wait for the peer", func() bool { return c.unsent() > 0 })
		s := c.all()[0]
		s.conn.Close(false)
		s.conn.Close(true) // though it has begun to end
		eventually(t, "end", func() bool { return len(c.all()) == 0 })
	})
}

// One whose peer takes nothing is closed when its session finds that it is idle.
func TestAnIdlePeerThatTakesNothing(t *testing.T) {
	t.Parallel()
	eachCarrier(t, func(c *carried) {
		c.handle = ends
		c.onWake = func(s *fakeSession) {
			if c.overdue.Load() {
				s.conn.Close(true)
			}
		}
	}, func(t *testing.T, c *carried) {
		c.dial(t).send("big\n")
		eventually(t, "wait for the peer", func() bool { return c.unsent() > 0 })
		c.overdue.Store(true)
		for _, s := range c.all() {
			s.conn.Wake()
		}
		eventually(t, "end", func() bool { return len(c.all()) == 0 })
	})
}

// Input that arrives before the peer closes its half is answered, in however many rounds.
func TestAnswersBeforeTheEnd(t *testing.T) {
	for name, test := range map[string]struct{ send, want string }{
		"slices":             {strings.Repeat("slice\n", 20) + "a\n", strings.Repeat("slice\n", 20) + "a\n"},
		"half a line":        {"slice\na\nhal", "slice\na\n"},
		"more than one read": {strings.Repeat("slice\n"+strings.Repeat("y", 20_000)+"\n", 20), strings.Repeat("slice\n"+strings.Repeat("y", 20_000)+"\n", 20)},
	} {
		t.Run(name, func(t *testing.T) {
			eachCarrier(t, func(c *carried) { c.handle = ends }, func(t *testing.T, c *carried) {
				p := c.dial(t)
				p.ask("a\n", "a\n")
				p.send(test.send)
				p.closeWrite()
				p.want(test.want)
				p.wantClosed()
			})
		})
	}
}

// No reply leaves before its round is on the disk, however long it is and whatever ends the connection.
func TestRepliesWaitForTheDisk(t *testing.T) {
	many := strings.Repeat(strings.Repeat("x", 1000)+"\n", 200) // several times what else leaves at once
	for name, test := range map[string]struct {
		raw, want string
		half      bool
	}{
		"a line":         {"a\n", "a\n", false},
		"many":           {"many\n", many, false},
		"a last command": {"many\nlast\n", many + "end\n", false},
		"half a close":   {"a\nmany\n", "a\n" + many, true},
	} {
		t.Run(name, func(t *testing.T) {
			eachCarrier(t, func(c *carried) {
				c.Sync = true
				c.handle = func(s *fakeSession, line string) bool {
					if line != "many" {
						return ends(s, line)
					}
					for part := range strings.SplitAfterSeq(many, "\n") {
						s.reply(part)
						s.flush()
					}
					return true
				}
			}, func(t *testing.T, c *carried) {
				p := c.dial(t)
				p.ask("b\n", "b\n")
				gate := make(chan error)
				before := c.commits.Load()
				c.gate.Store(&gate)
				p.send(test.raw)
				if test.half {
					p.closeWrite()
				}
				eventually(t, "commit", func() bool { return c.commits.Load() > before })
				p.wantNothing()
				c.gate.Store(nil)
				close(gate)
				p.want(test.want)
				if test.half || strings.HasSuffix(test.raw, "last\n") {
					p.wantClosed()
				}
			})
		})
	}
}

// After a failed write an error replaces the replies that depended on it, and these alone.
func TestADiskThatFails(t *testing.T) {
	eachCarrier(t, func(c *carried) { c.Sync = true }, func(t *testing.T, c *carried) {
		p := c.dial(t)
		p.ask("a\n", "a\n")
		gate := make(chan error)
		c.gate.Store(&gate)
		var failing sync.WaitGroup
		failing.Go(func() { gate <- errors.New("no space") })
		p.ask("b\n", "no space\n")
		failing.Wait()
		c.gate.Store(nil)
		close(gate)
		p.ask("c\n", "c\n")
	})
}

// Where replies wait for the disk a round does not read without an end, as much more is held of each byte until the commit. Who was
// not read is the first in the next.
func TestARoundEndsAfterSomeBytes(t *testing.T) {
	t.Parallel()
	const clients = 200
	line := strings.Repeat("x", 60_000) + "\n"
	eachCarrier(t, func(c *carried) { c.Sync = true }, func(t *testing.T, c *carried) {
		var peers []peer
		for range clients {
			p := c.dial(t)
			p.ask("a\n", "a\n")
			peers = append(peers, p)
		}
		gate := make(chan error)
		c.gate.Store(&gate)
		before := c.commits.Load()
		peers[0].send("a\n")
		eventually(t, "commit", func() bool { return c.commits.Load() > before })
		for _, p := range peers[1:] {
			p.send(line)
		}
		c.gate.Store(nil)
		close(gate)
		peers[0].want("a\n")
		for _, p := range peers[1:] {
			p.want(line)
		}
		if commits := c.commits.Load() - before; c.byLoops() && commits < 5 {
			t.Errorf("%d commits of 12 MB by two loops", commits)
		}
	})
}
