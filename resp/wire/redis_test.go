package wire

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"celld/internal/celldtest"
)

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
	socket := strings.TrimPrefix(celldtest.StartRedis(t), "unix:")
	pieces := []string{
		"*", "$", "*1\r\n", "*2\r\n", "*1\r\n$", "*2\r\n$1\r\nz\r\n", "$1\r\n", "$2\r\n", "*1", "*2", "*3", "$1", "$2", "$0", "$3", "1",
		"2", "0", "9", "-", "-1", "+1", "04", "99999999999999999999", "2147483647", "\r\n", "\r\n", "\r\n", "\r\n", "\n", "\r",
		"z", "zz", "zzz", " ", "\t", "\v", "\"", "'", "\\", "\\x41", "\\n", "\xff", ":", "+", strings.Repeat("z", 200),
		"*1\r\n$2\r\nzz\r\n", "*2\r\n$2\r\nzz\r\n$1\r\n", "*3\r\n$1\r\nz\r\n$1\r\n\r\r\n$0\r\n\r\n", "zz \"z\" 'z'\r\n",
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
