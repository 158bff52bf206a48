package integration_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// replyTimeout is how long a reply may take on a loaded machine.
const replyTimeout = time.Minute

// conn is a connection that sees replies byte for byte.
type conn struct {
	net.Conn
	t testing.TB
	r *bufio.Reader
}

// dial connects to host:port, or to unix:/path.
func dial(t testing.TB, addr string) *conn {
	t.Helper()
	network := "tcp"
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		network, addr = "unix", path
	}
	c, err := net.DialTimeout(network, addr, replyTimeout)
	if err != nil {
		t.Fatalf("dial %s: %v", addr, err)
	}
	t.Cleanup(func() { c.Close() })
	return &conn{Conn: c, t: t, r: bufio.NewReader(c)}
}

// frame is a command as clients send it, an array of bulk strings.
func frame(args ...string) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, arg := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return b
}

// do sends a command and returns its raw reply.
func (c *conn) do(args ...string) string {
	c.t.Helper()
	c.send(frame(args...))
	return c.reply()
}

func (c *conn) send(p []byte) {
	c.t.Helper()
	c.SetWriteDeadline(time.Now().Add(replyTimeout))
	if _, err := c.Write(p); err != nil {
		c.t.Fatalf("send %.100q: %v", p, err)
	}
}

// reply reads one whole reply.
func (c *conn) reply() string {
	c.t.Helper()
	got, err := c.tryReply(replyTimeout)
	if err != nil {
		c.t.Fatalf("read a reply: %v after %.200q", err, got)
	}
	return got
}

// tryReply reads one whole reply within a time. io.EOF stands for a connection that was closed, however abruptly.
func (c *conn) tryReply(timeout time.Duration) (string, error) {
	c.SetReadDeadline(time.Now().Add(timeout))
	var raw bytes.Buffer
	err := copyReply(&raw, c.r)
	if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return raw.String(), err
}

// expect fails the test unless these bytes come.
func (c *conn) expect(want string) {
	c.t.Helper()
	c.SetReadDeadline(time.Now().Add(replyTimeout))
	got := make([]byte, len(want))
	if n, err := io.ReadFull(c.r, got); err != nil || string(got) != want {
		c.t.Fatalf("read %.200q, %v; want %.200q", got[:n], err, want)
	}
}

// closed fails the test unless the peer closes the connection without another byte.
func (c *conn) closed() {
	c.t.Helper()
	if got, err := c.tryReply(replyTimeout); err != io.EOF || got != "" {
		c.t.Fatalf("read %q, %v; want a closed connection", got, err)
	}
}

// copyReply moves one reply of RESP2 or RESP3, with all that is nested in it, from r to raw.
func copyReply(raw *bytes.Buffer, r *bufio.Reader) error {
	line, err := r.ReadBytes('\n')
	raw.Write(line)
	if err != nil {
		return err
	}
	if len(line) < 3 {
		return fmt.Errorf("a reply line of %q", line)
	}
	var children int
	switch line[0] {
	case '+', '-', ':', '_', '#', ',', '(':
		return nil
	}
	n, err := strconv.Atoi(string(line[1 : len(line)-2]))
	if err != nil {
		return fmt.Errorf("a reply line of %q", line)
	}
	switch line[0] {
	case '$', '=', '!':
		if n < 0 {
			return nil
		}
		_, err := io.CopyN(raw, r, int64(n)+2)
		return err
	case '*', '~', '>':
		children = n
	case '%':
		children = 2 * n
	case '|':
		children = 2*n + 1
	default:
		return fmt.Errorf("a reply line of %q", line)
	}
	for range children {
		if err := copyReply(raw, r); err != nil {
			return err
		}
	}
	return nil
}

// fiveInts reads the reply of CL.THROTTLE: limited, limit, remaining, retry after, reset after.
func fiveInts(raw string) (ints [5]int64, ok bool) {
	lines := strings.Split(raw, "\r\n")
	if len(lines) != 7 || lines[0] != "*5" || lines[6] != "" {
		return ints, false
	}
	for i := range ints {
		n, err := strconv.ParseInt(strings.TrimPrefix(lines[i+1], ":"), 10, 64)
		if err != nil || lines[i+1][0] != ':' {
			return ints, false
		}
		ints[i] = n
	}
	return ints, true
}

// throttle calls CL.THROTTLE and returns its five integers.
func (c *conn) throttle(args ...string) [5]int64 {
	c.t.Helper()
	raw := c.do(append([]string{"CL.THROTTLE"}, args...)...)
	ints, ok := fiveInts(raw)
	if !ok {
		c.t.Fatalf("CL.THROTTLE %q: %q", args, raw)
	}
	return ints
}

// bulk is the text of a bulk string, and whether it is one.
func bulk(raw string) (string, bool) {
	head, rest, found := strings.Cut(raw, "\r\n")
	if !found || !strings.HasPrefix(head, "$") || head == "$-1" {
		return "", false
	}
	return strings.TrimSuffix(rest, "\r\n"), true
}

// containsLine says whether a bulk reply of lines has this one.
func containsLine(raw, line string) bool { return strings.Contains(raw, "\n"+line+"\r\n") }
