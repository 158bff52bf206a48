package sessiontest

import (
	"bufio"
	"io"
	"net"
	"testing"
	"time"

	"celld/internal/celldtest"
	"celld/resp/wire"
)

// Patience is how long a test waits for what must come.
const Patience = celldtest.Patience

type Client struct {
	net.Conn
	*bufio.Reader
	T *testing.T
}

func (c Client) Read(p []byte) (int, error) { return c.Reader.Read(p) }

func Dial(t *testing.T, addr string) Client {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(Patience))
	return Client{conn, bufio.NewReader(conn), t}
}

// Ask waits for as long as Patience, however long the connection has been open.
func (c Client) Ask(raw, want string) {
	c.T.Helper()
	c.Send(raw)
	_ = c.SetReadDeadline(time.Now().Add(Patience))
	got := make([]byte, len(want))
	if n, err := io.ReadFull(c, got); err != nil || string(got) != want {
		c.T.Fatalf("%.40q: %q, %v; want %q", raw, got[:n], err, want)
	}
}

func (c Client) Send(raw string) {
	c.T.Helper()
	if raw == "" {
		return
	}
	_ = c.SetWriteDeadline(time.Now().Add(Patience))
	if _, err := io.WriteString(c, raw); err != nil {
		c.T.Fatal(err)
	}
}

func (c Client) WantClosed() {
	c.T.Helper()
	if rest, err := io.ReadAll(c); len(rest) > 0 {
		c.T.Errorf("%q, %v before the end", rest, err)
	}
}

// Words reads one reply of RESP2, and returns its words without the nesting.
func Words(r *bufio.Reader) (words []string, err error) {
	for waiting := 1; waiting > 0; waiting-- {
		reply, err := wire.ReadReply(r)
		if err != nil {
			return nil, err
		}
		switch waiting += reply.N; reply.Kind {
		case '*':
		case '$':
			words = append(words, string(reply.Text))
		default:
			words = append(words, string(reply.Kind)+string(reply.Text))
		}
	}
	return words, nil
}
