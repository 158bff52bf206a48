package enginetest

import (
	"io"
	"net"
	"slices"

	"celld/resp/wire"
)

// client is a connection to a node. All but in is under the Engine's lock.
type client struct {
	node   *Node
	conn   net.Conn
	in     []byte
	frames wire.FrameReader

	id       int64
	out      []byte
	more     chan struct{} // has a value when out has grown, or ending is set
	ending   bool          // after out is sent
	ended    bool
	authed   bool
	resp3    bool
	asking   bool
	db       int
	channels []string
}

const readBytes = 16 << 10

var limits = wire.Limits{MaxArgs: 1 << 20, MaxBulk: 512 << 20, Authed: true}

// Serve serves a connection to the node at an address until it ends.
func (e *Engine) Serve(addr string, conn net.Conn) error {
	defer conn.Close()
	n := e.At(addr)
	e.mu.Lock()
	if n == nil || !n.up {
		e.mu.Unlock()
		return ErrDown
	}
	e.ids++
	c := &client{node: n, conn: conn, id: e.ids, more: make(chan struct{}, 1), authed: e.options.Password == "" || n.sentinel}
	n.clients = append(n.clients, c)
	e.mu.Unlock()
	written := make(chan struct{})
	go func() { defer close(written); c.write() }()
	err := c.read()
	e.mu.Lock()
	c.ending = true
	c.signal()
	n.clients = slices.DeleteFunc(n.clients, func(other *client) bool { return other == c })
	e.mu.Unlock()
	<-written
	return err
}

// read runs the commands that arrive.
func (c *client) read() error {
	var args [][]byte
	for {
		from := len(c.in)
		c.in = slices.Grow(c.in, readBytes)
		count, err := c.conn.Read(c.in[from : from+readBytes])
		c.in = c.in[:from+count]
		if err != nil {
			if err == io.EOF {
				err = nil
			}
			return err
		}
		for start := 0; ; {
			found, size, err := c.frames.Next(c.in[start:], args[:0], limits)
			if err != nil {
				c.send(wire.AppendError(nil, err.Error()))
				return err
			}
			if size == 0 && c.frames.Gathering() {
				continue
			}
			if size == 0 {
				c.in = append(c.in[:0], c.in[start:]...)
				break
			}
			start += size
			if args = found; len(args) > 0 && !c.node.serve(c, args) {
				return nil
			}
		}
	}
}

// write sends what out has, until the connection ends.
func (c *client) write() {
	mu := &c.node.engine.mu
	for range c.more {
		mu.Lock()
		out, last := c.out, c.ending || c.ended
		c.out = nil
		mu.Unlock()
		if len(out) > 0 {
			if _, err := c.conn.Write(out); err != nil {
				last = true
			}
		}
		if last {
			c.conn.Close()
			return
		}
	}
}

func (c *client) signal() {
	select {
	case c.more <- struct{}{}:
	default:
	}
}

func (c *client) send(bytes []byte) {
	c.node.engine.mu.Lock()
	defer c.node.engine.mu.Unlock()
	c.push(bytes)
}

// push sends bytes. The lock is held.
func (c *client) push(bytes []byte) {
	c.out = append(c.out, bytes...)
	c.signal()
}

// cut ends the connection at once. What has not been sent is lost.
func (c *client) cut() {
	c.out, c.ended = nil, true
	c.conn.Close()
	c.signal()
}

// serve runs a command, and reports whether the connection goes on.
func (n *Node) serve(c *client, args [][]byte) bool {
	e := n.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	for n.paused != nil && !c.ended {
		resumed := n.paused
		e.mu.Unlock()
		<-resumed
		e.mu.Lock()
	}
	if c.ended || c.ending {
		return false
	}
	n.catchUp()
	x := &call{node: n, client: c, db: &n.data[c.db], dbIndex: c.db, args: args, nowNS: n.nowNS(), resp3: c.resp3}
	if applied := n.perform(x); applied && n.drops > 0 {
		n.drops--
		c.ending = true
		c.signal()
		return false
	}
	c.push(x.out)
	return true
}
