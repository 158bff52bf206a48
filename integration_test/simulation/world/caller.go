package world

import (
	"bufio"
	"fmt"
	"iter"
	"math/rand/v2"
	"strconv"
	"time"

	"celld/integration_test/simulation/network"
	"celld/resp/wire"
)

// caller connects to a machine, and again when the connection has ended.
type caller struct {
	w     *world
	host  int    // no other caller has it
	name  string // in the trace
	addr  string // it connects from there
	rnd   *rand.Rand
	only  *machine // that it connects to; nil: any
	hello []string // the command that each connection begins with; nil: AUTH, where there is a password; empty: none

	of     *machine // that it is connected to
	conn   *network.Conn
	reader *bufio.Reader
}

// caller returns one that connects from an address of its own.
func (w *world) caller(name string, host int) caller {
	return caller{w: w, host: host, name: name, addr: fmt.Sprintf("127.0.1.%d:0", host), rnd: w.plan.chance(name)}
}

// rounds yields each number below n that is not left out, each after a pause, which is less than most. A round draws from a source of its
// own. So it does the same, at the same time, without the others.
func (c *caller) rounds(n int, most time.Duration) iter.Seq[int] {
	c.mayLeaveOut(n)
	return func(yield func(int) bool) {
		for i := range n {
			c.rnd = c.w.plan.chance(c.name + " " + strconv.Itoa(i))
			time.Sleep(time.Duration(c.rnd.Int64N(int64(most))))
			if c.leavesOut(i) {
				time.Sleep(4 * c.w.plan.latency) // what it would have asked takes as long, or longer
			} else if !yield(i) {
				return
			}
		}
	}
}

// mayLeaveOut notes how many rounds there are.
func (c *caller) mayLeaveOut(rounds int) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.w.rounds[c.host] = rounds
}

func (c *caller) leavesOut(round int) bool { return c.w.plan.masked[MaskCalls*c.host+round] }

// connect returns when there is a connection, or false if nobody has served for long.
func (c *caller) connect() bool {
	for c.conn == nil {
		c.of = c.only
		if c.of == nil {
			c.of = c.w.all[c.rnd.IntN(len(c.w.all))]
		}
		conn, err := c.w.network.Dial(c.addr, c.of.serves())
		if err == nil {
			c.conn, c.reader = conn, bufio.NewReader(conn)
			hello := c.hello
			if hello == nil {
				hello = c.w.auth(c)
			}
			if len(hello) == 0 || c.write(wire.AppendCommand(nil, hello...)) == nil && c.greeted(hello) {
				break
			}
			c.hangUp()
		}
		time.Sleep(time.Duration(1+c.rnd.IntN(200)) * time.Millisecond)
		if c.w.since() > longest/2 {
			c.w.wrong("%s: nobody serves: %v", c.name, err)
			return false
		}
	}
	return true
}

// greeted reads the answer to hello.
func (c *caller) greeted(hello []string) bool {
	value, err := readValue(c.reader)
	if value != "OK" {
		c.w.event(c.name, "is answered %v, %v to %q", value, err, hello)
	}
	return value == "OK"
}

func (c *caller) write(raw []byte) error {
	_ = c.conn.SetDeadline(time.Now().Add(longest / 4))
	_, err := c.conn.Write(raw)
	return err
}

// hangUp ends the connection, and returns when celld has ended it, too: a call that it has read may be decided until then.
func (c *caller) hangUp() {
	if c.conn != nil {
		c.conn.Reset()
		c.conn.AwaitPeer(longest / 4)
		c.conn = nil
	}
}

// answer is what came back, and between which events.
type answer struct {
	value        any // int64, string, failure, []any, or nil
	none         bool
	began, ended int64
}

// failure is an error that a command was answered.
type failure string

// failed is the error of an answer, "" where it is none.
func (a answer) failed() string {
	text, _ := a.value.(failure)
	return string(text)
}

// do asks a command. There is no answer if the connection has ended.
func (c *caller) do(words ...string) (a answer) {
	a.none = true
	if !c.connect() {
		return a
	}
	a.began = c.w.event(c.name, "asks %q", words)
	err := c.write(wire.AppendCommand(nil, words...))
	if err == nil {
		a.value, err = readValue(c.reader)
	}
	if err != nil {
		c.hangUp()
		a.ended = c.w.event(c.name, "has no answer: %v", err)
		return a
	}
	a.none = false
	a.ended = c.w.event(c.name, "is answered %v", a.value)
	return a
}

// readValue reads a reply of RESP2.
func readValue(r *bufio.Reader) (any, error) {
	reply, err := wire.ReadReply(r)
	if err != nil {
		return nil, err
	}
	if reply.Null {
		return nil, nil
	}
	switch reply.Kind {
	case '-':
		return failure(reply.Text), nil
	case ':':
		return strconv.ParseInt(string(reply.Text), 10, 64)
	case '*':
		values := make([]any, reply.N)
		for i := range values {
			if values[i], err = readValue(r); err != nil {
				return nil, err
			}
		}
		return values, nil
	case '$', '+':
		return string(reply.Text), nil
	}
	return nil, fmt.Errorf("a reply begins with %q", reply.Kind)
}
