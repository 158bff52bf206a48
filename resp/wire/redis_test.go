package wire

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// startRedis runs a redis-server until the test ends, and returns its unix socket. Without one the test is skipped, or in CI
// fails.
func startRedis(t *testing.T) (socket string) {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		t.Fatal(err)
	default:
		t.Skip(err)
	}
	dir, err := os.MkdirTemp("", "redis-") // not t.TempDir: a socket's path holds 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket = filepath.Join(dir, "s")
	server := exec.Command(path, "--port", "0", "--unixsocket", socket, "--save", "", "--dir", dir)
	log, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	var said []byte
	for piece := make([]byte, 4096); !bytes.Contains(said, []byte("connections at")); {
		n, err := log.Read(piece)
		if said = append(said, piece[:n]...); err != nil {
			t.Fatalf("redis-server: %v\n%s", err, said)
		}
	}
	go func() { _, _ = io.Copy(io.Discard, log) }()
	return socket
}

// unknown is what Redis answers to a command that it does not know: all that it has read.
func unknown(out []byte, args [][]byte) []byte {
	text := func(b []byte, most int) []byte { return b[:min(len(b), most)] }
	var shown []byte
	for _, arg := range args[1:] {
		if len(shown) >= 128 {
			break
		}
		shown = fmt.Appendf(shown, "'%s' ", text(arg, 128-len(shown)))
	}
	return AppendError(out, fmt.Sprintf("ERR unknown command '%s', with args beginning with: %s", text(args[0], 128), shown))
}

// FrameReader takes odd streams apart as redis-server does, whose errors tell the words that it has read. None has a NUL: in a
// line, Redis looks for no end behind it and waits for ever.
func TestFramesAgainstRedis(t *testing.T) {
	socket := startRedis(t)
	pieces := []string{
		"*", "$", "*1\r\n", "*2\r\n", "*1\r\n$", "*2\r\n$1\r\nz\r\n", "$1\r\n", "$2\r\n", "*1", "*2", "*3", "$1", "$2", "$0", "$3", "1", "2", "0", "9", "-", "-1", "+1", "04", "99999999999999999999", "2147483647", "\r\n", "\r\n", "\r\n", "\r\n", "\n", "\r",
		"z", "zz", "zzz", " ", "\t", "\v", "\"", "'", "\\", "\\x41", "\\n", "\xff", ":", "+", strings.Repeat("z", 200), "*1\r\n$2\r\nzz\r\n", "*2\r\n$2\r\nzz\r\n$1\r\n", "*3\r\n$1\r\nz\r\n$1\r\n\r\r\n$0\r\n\r\n", "zz \"z\" 'z'\r\n",
	}
	errors := map[error]int{}
	rapid.Check(t, func(t *rapid.T) {
		for _, stream := range rapid.SliceOfN(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 8), 30, 30).Draw(t, "streams") {
			sent := []byte(strings.Join(stream, ""))
			conn, err := net.Dial("unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			_ = conn.SetDeadline(time.Now().Add(time.Minute))
			if _, err := conn.Write(sent); err != nil {
				t.Fatal(err)
			}
			_ = conn.(*net.UnixConn).CloseWrite()
			want, err := io.ReadAll(conn)
			conn.Close()
			if err != nil {
				t.Fatalf("redis-server reads %q: %v", sent, err)
			}
			var got []byte
			var frames FrameReader
			for rest := sent; ; {
				args, n, err := frames.Next(rest, nil, Limits{MaxArgs: 1<<31 - 1, MaxBulk: maxWordLen, Authed: true})
				if err != nil {
					errors[err]++
					got = AppendError(got, err.Error())
				}
				if err != nil || n == 0 {
					break
				}
				if rest = rest[n:]; len(args) > 0 {
					got = unknown(got, args)
				}
			}
			if !bytes.Equal(got, want) {
				t.Fatalf("%q\n    here %q\nby Redis %q", sent, got, want)
			}
		}
	})
	for _, err := range []error{ErrQuotes, ErrMultibulkLen, ErrBulkLen, ProtocolError("ERR Protocol error: expected '$', got 'z'")} {
		if errors[err] == 0 {
			t.Errorf("%d errors, and none is %q", errors, err)
		}
	}
}
