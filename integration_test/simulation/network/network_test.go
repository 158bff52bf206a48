package network

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	_ "pgregory.net/rapid" // for its flags, which all tests here are given
)

// pair is a connection, in fake time.
func pair(t *testing.T, latency time.Duration) (client *Conn, server net.Conn) {
	t.Helper()
	n := New(rand.New(rand.NewPCG(1, 2)))
	n.Latency, n.Pieces = latency, true
	ln, err := n.Listen("10.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	client, err = n.Dial("10.0.0.2:0", "10.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	server, err = ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return client, server
}

// Bytes arrive in their order, whatever pieces and times they come in, and the end after them.
func TestBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := pair(t, time.Second)
		text := strings.Repeat("0123456789", 30_000) // more than is under way at once
		go func() {
			for rest := text; rest != ""; rest = rest[min(len(rest), 7777):] {
				if _, err := io.WriteString(client, rest[:min(len(rest), 7777)]); err != nil {
					t.Error(err)
				}
			}
			_ = client.CloseWrite()
		}()
		if got, err := io.ReadAll(server); err != nil || string(got) != text {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		if _, err := server.Write([]byte("x")); err != nil {
			t.Errorf("the other way: %v", err)
		}
	})
}

func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := pair(t, 0)
		began := time.Now()
		_ = server.SetReadDeadline(began.Add(time.Second))
		if _, err := server.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("read: %v after %s", err, time.Since(began))
		}
		_ = client.SetWriteDeadline(began.Add(3 * time.Second))
		if n, err := client.Write(make([]byte, 2*window)); n != window || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("write: %d, %v", n, err)
		}
		go func() {
			time.Sleep(time.Second)
			_ = server.SetReadDeadline(time.Unix(1, 0)) // as transport wakes a connection
		}()
		_ = server.SetReadDeadline(time.Time{})
		if err := server.(*Conn).AwaitEnd(true); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("AwaitEnd: %v", err)
		}
	})
}

func TestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := func(c net.Conn) error {
			_, err := c.Read(make([]byte, 1))
			return err
		}
		client, server := pair(t, time.Millisecond)
		client.Close()
		if err := server.(*Conn).AwaitEnd(true); err != io.EOF {
			t.Errorf("AwaitEnd: %v", err)
		}
		if err := read(server); err != io.EOF {
			t.Errorf("after Close: %v", err)
		}
		if _, err := server.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("write to a peer that is gone: %v", err)
		}
		if err := read(client); !errors.Is(err, net.ErrClosed) {
			t.Errorf("own end: %v", err)
		}
		client, server = pair(t, 0)
		_, _ = client.Write([]byte("x"))
		server.Close() // before it has read anything
		if err := read(client); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("after a Close with something unread: %v", err)
		}
		client, server = pair(t, 0)
		client.Reset()
		if err := read(server); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("after Reset: %v", err)
		}
		time.AfterFunc(time.Second, func() { server.Close() })
		began := time.Now()
		if client.AwaitPeer(time.Minute); time.Since(began) != time.Second {
			t.Errorf("AwaitPeer returned after %s; the peer has closed after 1s", time.Since(began))
		}
		client, _ = pair(t, 0)
		client.network.Cut("10.0.0.1")
		if err := read(client); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("after Cut: %v", err)
		}
		if _, err := client.network.Dial("10.0.0.2:0", "10.0.0.1:1"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("to a machine that was cut off: %v", err)
		}
	})
}
