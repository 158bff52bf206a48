package harness

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ReplyTimeout is how long a reply may take on a loaded machine.
const ReplyTimeout = 3 * time.Minute

// Conn is a connection that sees replies byte for byte.
type Conn struct {
	net.Conn
	T testing.TB
	R *bufio.Reader // of the Conn
}

// Dial connects to host:port, or to unix:/path.
func Dial(t testing.TB, addr string) *Conn {
	t.Helper()
	network := "tcp"
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		network, addr = "unix", path
	}
	c, err := net.DialTimeout(network, addr, ReplyTimeout)
	if err != nil {
		t.Fatalf("dial %s: %v", addr, err)
	}
	t.Cleanup(func() { c.Close() })
	return &Conn{Conn: c, T: t, R: bufio.NewReader(c)}
}

// Frame is a command as clients send it, an array of bulk strings.
func Frame(args ...string) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, arg := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return b
}

// Do sends a command and returns its raw reply.
func (c *Conn) Do(args ...string) string {
	c.T.Helper()
	c.Send(Frame(args...))
	return c.Reply()
}

// TryDo sends a command and reads a reply. A connection that the peer has closed meanwhile is io.EOF.
func (c *Conn) TryDo(args []string) (string, error) {
	c.SetWriteDeadline(time.Now().Add(ReplyTimeout))
	if _, err := c.Write(Frame(args...)); err != nil {
		return "", io.EOF
	}
	return c.TryReply(ReplyTimeout)
}

// Send sends bytes as they are.
func (c *Conn) Send(p []byte) {
	c.T.Helper()
	c.SetWriteDeadline(time.Now().Add(ReplyTimeout))
	if _, err := c.Write(p); err != nil {
		c.T.Fatalf("send %.100q: %v", p, err)
	}
}

// Reply reads one whole reply.
func (c *Conn) Reply() string {
	c.T.Helper()
	got, err := c.TryReply(ReplyTimeout)
	if err != nil {
		c.T.Fatalf("read a reply: %v after %.200q", err, got)
	}
	return got
}

// TryReply reads one whole reply within a time. io.EOF stands for a connection that was closed, however abruptly.
func (c *Conn) TryReply(timeout time.Duration) (string, error) {
	c.SetReadDeadline(time.Now().Add(timeout))
	var raw bytes.Buffer
	err := CopyReply(&raw, c.R)
	if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return raw.String(), err
}

// Expect fails the test unless these bytes come.
func (c *Conn) Expect(want string) {
	c.T.Helper()
	c.SetReadDeadline(time.Now().Add(ReplyTimeout))
	got := make([]byte, len(want))
	if n, err := io.ReadFull(c.R, got); err != nil || string(got) != want {
		c.T.Fatalf("read %.200q, %v; want %.200q", got[:n], err, want)
	}
}

// Closed fails the test unless the peer closes the connection without another byte.
func (c *Conn) Closed() {
	c.T.Helper()
	if got, err := c.TryReply(ReplyTimeout); err != io.EOF || got != "" {
		c.T.Fatalf("read %q, %v; want a closed connection", got, err)
	}
}
