package wire

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

var testLimits = Limits{MaxArgs: 1024, MaxBulk: 1 << 20, Authed: true}

// readAll feeds a stream to a reader in pieces of the given sizes (then whole), and returns the commands and the error.
func readAll(stream []byte, limits Limits, sizes ...int) (commands []string, err error) {
	var r FrameReader
	var buf []byte
	for len(stream) > 0 {
		n := len(stream)
		if len(sizes) > 0 {
			n, sizes = min(max(sizes[0], 1), n), sizes[1:]
		}
		buf = append(buf, stream[:n]...)
		stream = stream[n:]
		for {
			args, used, err := r.Next(buf, nil, limits)
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
		err      error
	}{
		{"*1\r\n$4\r\nPING\r\n", []string{`["PING"]`}, nil},
		{"PING\r\n", []string{`["PING"]`}, nil},
		{"PING\nPING\n", []string{`["PING"]`, `["PING"]`}, nil},
		{"\r\n\n*0\r\n*-1\r\n*-5\r\nPING\r\n", []string{`["PING"]`}, nil},
		{"*2\r\n$0\r\n\r\n$3\r\n\x00\r\n\r\n", []string{`["" "\x00\r\n"]`}, nil},
		{"*1\r\n$4\r\nPINGxx*1\r\n$4\r\nPONG\r\n", []string{`["PING"]`, `["PONG"]`}, nil}, // the end of an argument is not looked at
		{`SET "a b" 'c d' \x41 "\x41"` + "\r\n", []string{`["SET" "a b" "c d" "\\x41" "A"]`}, nil},
		{`SET "a b` + "\r\n", nil, ErrQuotes},
		{"*1\r\n", nil, nil},
		{"*1\r\n$", nil, nil},
		{"*", nil, nil},
		// The packets that end a process which reads with redcon.
		{"*1\r\n$9223372036854775807\r\n", nil, ErrBulkLen},
		{"*1\r\n$-2\r\n", nil, ErrBulkLen},
		{"*1\r\n$-1\r\n", nil, ErrBulkLen},
		{"*1\r\n$99999999999999999999\r\n", nil, ErrBulkLen},
		{"*1\r\n$x\r\n", nil, ErrBulkLen},
		{"*1\r\n$+4\r\nPING\r\n", nil, ErrBulkLen},
		{"*1\r\n$04\r\nPING\r\n", nil, ErrBulkLen},
		{"*1\r\n$\r\n", nil, ErrBulkLen},
		{"*1\r\n:4\r\n", nil, ProtocolError("ERR Protocol error: expected '$', got ':'")},
		{"*1\r\n\r\n", nil, ProtocolError("ERR Protocol error: expected '$', got '\r'")},
		{"*x\r\n", nil, ErrMultibulkLen},
		{"*\r\n", nil, ErrMultibulkLen},
		{"*1025\r\n", nil, ErrMultibulkLen},
		{"*9223372036854775807\r\n", nil, ErrMultibulkLen},
		{"*99999999999999999999\r\n", nil, ErrMultibulkLen},
		{"*" + long, nil, ErrMultibulkLine},
		{"*1\r\n$" + long, nil, ErrBulkLine},
		{long, nil, ErrInline},
		{long + "\n", nil, ErrInline},
		{"PING\r\n*1\r\n$-2\r\n", []string{`["PING"]`}, ErrBulkLen},
	}
	for _, c := range cases {
		for _, sizes := range [][]int{nil, slices.Repeat([]int{1}, min(len(c.stream), 200))} {
			commands, err := readAll([]byte(c.stream), testLimits, sizes...)
			if !slices.Equal(commands, c.commands) || err != c.err {
				t.Errorf("%.60q in pieces of %v: %q, error %v; want %q, error %v", c.stream, sizes[:min(1, len(sizes))], commands, err,
					c.commands, c.err)
			}
		}
	}
}

// A command over a limit is refused, whether it arrives as a whole or not, and one at the limit is not.
func TestFramesAreLimited(t *testing.T) {
	arrays := func(args, length int) string {
		return string(AppendCommand(nil, slices.Repeat([]string{strings.Repeat("x", length)}, args)...))
	}
	authed := Limits{MaxArgs: 20, MaxBulk: 20 << 10, Authed: true}
	stranger := authed
	stranger.Authed = false
	for _, test := range []struct {
		limits Limits
		stream string
		err    error
	}{
		{authed, arrays(20, 1), nil},
		{authed, arrays(21, 1), ErrMultibulkLen},
		{authed, arrays(1, 20<<10), nil},
		{authed, arrays(1, 20<<10+1), ErrBulkLen},
		{stranger, arrays(10, 1), nil},
		{stranger, arrays(11, 1), ErrMultibulkUnauthed},
		{stranger, arrays(21, 1), ErrMultibulkLen},
		{stranger, arrays(1, 16<<10), nil},
		{stranger, arrays(1, 16<<10+1), ErrBulkUnauthed},
		{stranger, arrays(1, 20<<10+1), ErrBulkLen},
	} {
		for _, sizes := range [][]int{nil, slices.Repeat([]int{1}, 30)} {
			commands, err := readAll([]byte(test.stream), test.limits, sizes...)
			if err != test.err || len(commands) == 0 == (err == nil) {
				t.Errorf("%.20q of %d bytes, %+v: %d commands, %v; want %v", test.stream, len(test.stream), test.limits, len(commands),
					err, test.err)
			}
		}
	}
}

// Arguments lie one behind the other in what has arrived. Appending to one must not change the next.
func TestArgumentsDoNotGrow(t *testing.T) {
	for _, first := range []int{0, 10} { // bytes that come by themselves
		stream := AppendCommand(nil, "ECHO", "x")
		var r FrameReader
		_, _, _ = r.Next(stream[:first], nil, testLimits)
		args, _, err := r.Next(stream, nil, testLimits)
		if err != nil {
			t.Fatal(err)
		}
		_ = append(args[0], "overflow"...)
		if string(args[1]) != "x" {
			t.Errorf("%q", args)
		}
	}
}

// Reading a command that arrives a byte at a time must not start anew at each byte: 20,000 arguments in 1-byte pieces
// would be 10^9 steps, and the test would not end.
func TestReaderResumes(t *testing.T) {
	limits := testLimits
	limits.MaxArgs = 1 << 20
	const n = 20_000
	stream := []byte(fmt.Sprintf("*%d\r\n%s", n, strings.Repeat("$1\r\nx\r\n", n)))
	var r FrameReader
	for i := range stream {
		args, used, err := r.Next(stream[:i+1], nil, limits)
		for r.Gathering() {
			args, used, err = r.Next(stream[:i+1], nil, limits)
		}
		if err != nil {
			t.Fatal(err)
		}
		if whole := i == len(stream)-1; whole != (used > 0) || whole && len(args) != n {
			t.Fatalf("at byte %d of %d: %d arguments", i+1, len(stream), len(args))
		}
	}
}

// seeds are for FuzzFrame and FuzzParseCommand.
var seeds = []string{
	"*1\r\n$9223372036854775807\r\n", "*1\r\n$-2\r\n", "*9223372036854775807\r\n", "*-9223372036854775808\r\n", "*1\r\n$4\r\nPING\r\n",
	"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\n5\r\n", "PING\r\n", "\"", "'\r\n", "*1\r\n$1\r\n\r\r\n", "*2\r\n$4\r\nECHO\r\n$0\r\n\r\n",
	"\x00\r\n", "$5\r\nhello\r\n", "*1\r\n*1\r\n$4\r\nPING\r\n", "*01\r\n$04\r\nPING\r\n", "*1\n$4\nPING\n", "*0\r\n*-5\r\nGET  a\r\n",
	"*1\r\n$000001\r\na\r\n", "*1\r\n$4\r\nPINGxx",
	string(AppendCommand(AppendCommand(nil, "CL.THROTTLE", "k", "15", "30", "60"), "CL.THROTTLE", strings.Repeat("k", 1000), "15", "30", "60")),
}

func FuzzFrame(f *testing.F) {
	for _, packet := range seeds {
		f.Add([]byte(packet), 1, 3)
	}
	f.Fuzz(func(t *testing.T, stream []byte, a, b int) {
		limits := Limits{MaxArgs: 64, MaxBulk: 4096, Authed: len(stream)%2 == 0}
		whole, wholeErr := readAll(stream, limits)
		for _, sizes := range [][]int{{a, b}, slices.Repeat([]int{1}, len(stream))} {
			split, splitErr := readAll(stream, limits, sizes...)
			if !slices.Equal(whole, split) || fmt.Sprint(wholeErr) != fmt.Sprint(splitErr) {
				t.Fatalf("%q: whole %q %v, in pieces %q %v", stream, whole, wholeErr, split, splitErr)
			}
		}
	})
}
