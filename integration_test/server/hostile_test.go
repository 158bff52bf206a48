package server

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// TestKillerPackets sends what ends a process that reads requests with redcon, and relatives of it.
func TestKillerPackets(t *testing.T) {
	t.Parallel()
	srv := harness.Start(t)
	for _, packet := range []string{
		"*1\r\n$9223372036854775807\r\n", "*1\r\n$-2\r\n", "*1\r\n$-9223372036854775808\r\n", "*9223372036854775807\r\n",
		"*-9223372036854775808\r\n*2147483647\r\n", "*1\r\n$536870912\r\n", "*1048576\r\n$1048576\r\n", strings.Repeat("*1\r\n", 10_000),
		strings.Repeat("*", 100_000), strings.Repeat("$", 100_000), strings.Repeat("*0\r\n", 100_000),
		"*" + strings.Repeat("9", 70_000) + "\r\n", "*1\r\n$" + strings.Repeat("0", 70_000), strings.Repeat("a", 70_000),
		strings.Repeat("\"", 60_000) + "\r\n", strings.Repeat(" ", 60_000) + "\r\n", strings.Repeat("a ", 30_000) + "\r\n",
		strings.Repeat("\\x00", 10_000) + "\r\n", strings.Repeat("\r\n", 100_000), strings.Repeat("\x00", 100_000),
		"*3\r\n$3\r\nSET\r\n$-1\r\n$-1\r\n", "*2\r\n$4\r\nKEYS\r\n$60000\r\n" + strings.Repeat("*", 60_000) + "\r\n",
		"*2\r\n$4\r\nKEYS\r\n$60000\r\n" + strings.Repeat("[", 60_000) + "\r\n",
	} {
		before := harness.Dial(t, srv.Addr)
		before.Do("SET", strings.Repeat("a", 200), "9000000000000000000")
		c := harness.Dial(t, srv.Addr)
		c.SetWriteDeadline(time.Now().Add(harness.ReplyTimeout))
		c.Write([]byte(packet))
		c.Conn.(interface{ CloseWrite() error }).CloseWrite()
		c.SetReadDeadline(time.Now().Add(harness.ReplyTimeout))
		if _, err := io.Copy(io.Discard, c.Conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%.40q…: the connection is still open %v after its end was closed", packet, harness.ReplyTimeout)
		}
		if got := before.Do("PING"); got != "+PONG\r\n" {
			t.Errorf("after %.40q…: another connection gets %q", packet, got)
		}
	}
	srv.Alive()
}

// TestGarbage sends random bytes, and random changes of proper requests.
func TestGarbage(t *testing.T) {
	t.Parallel()
	srv, rnd := harness.StartStress(t), celldtest.NewRand(t)
	proper := slices.Concat(harness.Frame("CL.THROTTLE", "k", "15", "30", "60"), harness.Frame("SCAN", "0", "MATCH", "*", "COUNT", "10"),
		harness.Frame("SET", "k", "9000000000000000000", "EX", "100"), []byte("PING \"a b\"\r\n"))
	for i := range 500 {
		var packet []byte
		if i%2 == 0 {
			packet = make([]byte, rnd.IntN(2000))
			for j := range packet {
				packet[j] = byte(rnd.Uint32())
			}
		} else {
			packet = slices.Repeat(proper, 3)
			for range 1 + rnd.IntN(4) {
				switch j := rnd.IntN(len(packet)); rnd.IntN(3) {
				case 0:
					packet[j] = byte(rnd.Uint32())
				case 1:
					packet = slices.Delete(packet, j, min(len(packet), j+rnd.IntN(8)))
				default:
					packet = slices.Insert(packet, j, []byte("-1\r\n$*9")[rnd.IntN(7)])
				}
			}
		}
		c := harness.Dial(t, srv.Addr)
		c.SetDeadline(time.Now().Add(harness.ReplyTimeout))
		c.Write(packet)
		c.Conn.(interface{ CloseWrite() error }).CloseWrite()
		if _, err := io.Copy(io.Discard, c.Conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%q: the connection stays open", packet)
		}
		c.Close()
	}
	srv.Alive()
}

// TestAbruptEnds resets connections while much is being sent to them.
func TestAbruptEnds(t *testing.T) {
	t.Parallel()
	srv := harness.StartStress(t)
	for range 200 {
		c := harness.Dial(t, srv.Addr)
		c.Send(slices.Repeat(harness.Frame("COMMAND", "DOCS"), 20))
		raw, err := c.Conn.(syscall.Conn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		raw.Control(func(fd uintptr) {
			syscall.SetsockoptLinger(int(fd), syscall.SOL_SOCKET, syscall.SO_LINGER, &syscall.Linger{Onoff: 1})
		})
		c.Close()
	}
	srv.Alive()
}
