package resp

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

var testLimits = frameLimits{maxArgs: 1024, maxBulk: 1 << 20, authed: true}

// readAll feeds a stream to a reader in pieces of the given sizes (then whole), and returns the commands and the error.
func readAll(stream []byte, limits frameLimits, sizes ...int) (commands []string, err error) {
	var r frameReader
	var buf []byte
	for len(stream) > 0 {
		n := len(stream)
		if len(sizes) > 0 {
			n, sizes = min(max(sizes[0], 1), n), sizes[1:]
		}
		buf = append(buf, stream[:n]...)
		stream = stream[n:]
		for {
			args, used, err := r.next(buf, limits)
			if err != nil {
				return commands, err
			}
			if used == 0 {
				break
			}
			if used > len(buf) {
				return commands, fmt.Errorf("read %d of %d bytes", used, len(buf))
			}
			if len(args) > 0 {
				commands = append(commands, fmt.Sprintf("%q", args))
			}
			buf = buf[used:]
		}
	}
	return commands, nil
}

func TestFrames(t *testing.T) {
	long := strings.Repeat("x", maxLine+1)
	cases := []struct {
		stream   string
		commands []string
		err      string
	}{
		{"*1\r\n$4\r\nPING\r\n", []string{`["PING"]`}, ""},
		{"PING\r\n", []string{`["PING"]`}, ""},
		{"PING\nPING\n", []string{`["PING"]`, `["PING"]`}, ""},
		{"\r\n\n*0\r\n*-1\r\n*-5\r\nPING\r\n", []string{`["PING"]`}, ""},
		{"*2\r\n$0\r\n\r\n$3\r\n\x00\r\n\r\n", []string{`["" "\x00\r\n"]`}, ""},
		{"*1\r\n$4\r\nPINGxx*1\r\n$4\r\nPONG\r\n", []string{`["PING"]`, `["PONG"]`}, ""}, // the end of an argument is not looked at
		{`SET "a b" 'c d' \x41 "\x41"` + "\r\n", []string{`["SET" "a b" "c d" "\\x41" "A"]`}, ""},
		{`SET "a b` + "\r\n", nil, errProtoQuotes},
		{"*1\r\n", nil, ""},
		{"*1\r\n$", nil, ""},
		{"*", nil, ""},
		// The packets that end a process which reads with redcon.
		{"*1\r\n$9223372036854775807\r\n", nil, errProtoBulkLen},
		{"*1\r\n$-2\r\n", nil, errProtoBulkLen},
		{"*1\r\n$-1\r\n", nil, errProtoBulkLen},
		{"*1\r\n$99999999999999999999\r\n", nil, errProtoBulkLen},
		{"*1\r\n$x\r\n", nil, errProtoBulkLen},
		{"*1\r\n$+4\r\nPING\r\n", nil, errProtoBulkLen},
		{"*1\r\n$04\r\nPING\r\n", nil, errProtoBulkLen},
		{"*1\r\n$\r\n", nil, errProtoBulkLen},
		{"*1\r\n:4\r\n", nil, "ERR Protocol error: expected '$', got ':'"},
		{"*1\r\n\r\n", nil, "ERR Protocol error: expected '$', got '\r'"},
		{"*x\r\n", nil, errProtoMultibulkLen},
		{"*\r\n", nil, errProtoMultibulkLen},
		{"*1025\r\n", nil, errProtoMultibulkLen},
		{"*9223372036854775807\r\n", nil, errProtoMultibulkLen},
		{"*99999999999999999999\r\n", nil, errProtoMultibulkLen},
		{"*" + long, nil, errProtoMultibulkLine},
		{"*1\r\n$" + long, nil, errProtoBulkLine},
		{long, nil, errProtoInline},
		{long + "\n", nil, errProtoInline},
		{"PING\r\n*1\r\n$-2\r\n", []string{`["PING"]`}, errProtoBulkLen},
	}
	for _, c := range cases {
		for _, sizes := range [][]int{nil, slices.Repeat([]int{1}, min(len(c.stream), 200))} {
			commands, err := readAll([]byte(c.stream), testLimits, sizes...)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if !slices.Equal(commands, c.commands) || text != c.err {
				t.Errorf("%.60q in pieces of %v: %q, error %q; want %q, error %q", c.stream, sizes[:min(1, len(sizes))], commands, text, c.commands, c.err)
			}
		}
	}
}

func TestUnauthenticatedFramesAreSmall(t *testing.T) {
	limits := testLimits
	limits.authed = false
	for stream, want := range map[string]string{
		"*11\r\n":            errProtoMultibulkUnauthed,
		"*1\r\n$16385\r\n":   errProtoBulkUnauthed,
		"*10\r\n$16384\r\nx": "",
	} {
		_, err := readAll([]byte(stream), limits)
		if text := fmt.Sprint(err); text != want && (err != nil || want != "") {
			t.Errorf("%q: %v, want %q", stream, err, want)
		}
	}
}

// Reading a command that arrives a byte at a time must not start anew at each byte: 20,000 arguments in 1-byte pieces
// would be 10^9 steps, and the test would not end.
func TestReaderResumes(t *testing.T) {
	limits := testLimits
	limits.maxArgs = 1 << 20
	const n = 20_000
	stream := []byte(fmt.Sprintf("*%d\r\n%s", n, strings.Repeat("$1\r\nx\r\n", n)))
	var r frameReader
	for i := range stream {
		args, used, err := r.next(stream[:i+1], limits)
		if err != nil {
			t.Fatal(err)
		}
		if whole := i == len(stream)-1; whole != (used > 0) || whole && len(args) != n {
			t.Fatalf("at byte %d of %d: %d arguments", i+1, len(stream), len(args))
		}
	}
	if r.held() > 1024*16 {
		t.Errorf("holds %d bytes after the command", r.held())
	}
}

// hostilePackets are the seeds of both fuzzers.
var hostilePackets = []string{
	"*1\r\n$9223372036854775807\r\n", "*1\r\n$-2\r\n", "*9223372036854775807\r\n", "*-9223372036854775808\r\n", "*1\r\n$4\r\nPING\r\n",
	"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\n5\r\n", "PING\r\n", "\"", "'\r\n", "*1\r\n$1\r\n\r\r\n", "*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", "\x00\r\n", "$5\r\nhello\r\n",
	"*1\r\n*1\r\n$4\r\nPING\r\n", "MULTI\r\nCL.THROTTLE k 1 1 1\r\nEXEC\r\n", "CLIENT REPLY SKIP\r\nPING\r\nPING\r\n", "HELLO 3\r\nGET x\r\nRESET\r\n",
	strings.Repeat(frame("CL.THROTTLE", "k", "15", "30", "60"), 3) + frame("CL.THROTTLE", "other", "15", "30", "60") + frame("cl.throttle", "k", "15", "30", "60"),
	strings.Repeat(frame("CL.THROTTLE", "k", "1", "1", "60", "18446744074"), 2) + strings.Repeat(frame("CL.THROTTLE", "k", "1", "1", "60", "3"), 2) + "MULTI\r\n" + frame("CL.THROTTLE", "k", "1", "1", "60", "3") + "EXEC\r\n",
	"CL.THROTTLE k 15 30 60 1\r\n", "CL.THROTTLE k 9223372036854775807 1 9223372036 -9223372036854775808\r\n", "SET k 18446744073709551615 PX 1\r\nTTL k\r\n",
	"SCAN 18446744073709551615 COUNT 9223372036854775807\r\n", "KEYS [\r\n", "WATCH a a b\r\nMULTI\r\nSET a 1\r\nEXEC\r\n", "CONFIG SET timeout 1 timeout 2\r\n",
	"EXPIRE k 9223372036854775807\r\nPEXPIRE k -9223372036854775808\r\n", "COMMAND GETKEYS SET\r\nCOMMAND DOCS client|id\r\n", "RENAME a a\r\nOBJECT HELP\r\n", "QUIT\r\nPING\r\n",
}

func FuzzFrame(f *testing.F) {
	for _, packet := range hostilePackets {
		f.Add([]byte(packet), 1, 3)
	}
	f.Fuzz(func(t *testing.T, stream []byte, a, b int) {
		limits := frameLimits{maxArgs: 64, maxBulk: 4096, authed: len(stream)%2 == 0}
		whole, wholeErr := readAll(stream, limits)
		for _, sizes := range [][]int{{a, b}, slices.Repeat([]int{1}, len(stream))} {
			split, splitErr := readAll(stream, limits, sizes...)
			if !slices.Equal(whole, split) || fmt.Sprint(wholeErr) != fmt.Sprint(splitErr) {
				t.Fatalf("%q: whole %q %v, in pieces %q %v", stream, whole, wholeErr, split, splitErr)
			}
		}
	})
}
