package wire

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// Every type, as RESP2 and RESP3 have it, and as a client reads it; without heads in the second, both are the same.
func TestReplies(t *testing.T) {
	for _, test := range []struct {
		add          func(out []byte, resp3 bool) []byte
		resp2, resp3 string
		read2, read3 string
	}{
		{func(o []byte, _ bool) []byte { return AppendStatus(o, "OK") }, "+OK\r\n", "", "+ OK", ""},
		{func(o []byte, _ bool) []byte { return AppendStatus(o, "a\r\n:1\r\n") }, "+a  :1  \r\n", "", "+ a  :1  ", ""},
		{func(o []byte, _ bool) []byte { return AppendStatus(o, "") }, "+\r\n", "", "+ ", ""},
		{func(o []byte, _ bool) []byte { return AppendError(o, "ERR no\n:1\r\n") }, "-ERR no :1\r\n", "", "- ERR no :1", ""},
		{func(o []byte, _ bool) []byte { return AppendInt(o, -12) }, ":-12\r\n", "", ": -12", ""},
		{func(o []byte, _ bool) []byte { return AppendBulk(o, []byte("a\r\nb")) }, "$4\r\na\r\nb\r\n", "", "$ a\r\nb", ""},
		{func(o []byte, _ bool) []byte { return AppendString(o, "") }, "$0\r\n\r\n", "", "$ ", ""},
		{func(o []byte, _ bool) []byte { return AppendArray(o, 5) }, "*5\r\n", "", "* of 5", ""},
		{func(o []byte, _ bool) []byte { return AppendArray(o, 0) }, "*0\r\n", "", "* of 0", ""},
		{AppendNull, "$-1\r\n", "_\r\n", "$ null", "_ null"},
		{AppendNullArray, "*-1\r\n", "_\r\n", "* null", "_ null"},
		{func(o []byte, resp3 bool) []byte { return AppendBool(o, true, resp3) }, ":1\r\n", "#t\r\n", ": 1", "# t"},
		{func(o []byte, resp3 bool) []byte { return AppendBool(o, false, resp3) }, ":0\r\n", "#f\r\n", ": 0", "# f"},
		{func(o []byte, resp3 bool) []byte { return AppendDouble(o, "1.5", resp3) }, "$3\r\n1.5\r\n", ",1.5\r\n", "$ 1.5", ", 1.5"},
		{func(o []byte, resp3 bool) []byte { return AppendBigNumber(o, "12\n3", resp3) }, "$4\r\n12 3\r\n", "(12 3\r\n", "$ 12 3", "( 12 3"},
		{func(o []byte, resp3 bool) []byte { return AppendVerbatim(o, "txt", "a\nb", resp3) }, "$3\r\na\nb\r\n", "=7\r\ntxt:a\nb\r\n", "$ a\nb", "= txt:a\nb"},
		{func(o []byte, resp3 bool) []byte { return AppendMap(o, 2, resp3) }, "*4\r\n", "%2\r\n", "* of 4", "% of 4"},
		{func(o []byte, resp3 bool) []byte { return AppendSet(o, 2, resp3) }, "*2\r\n", "~2\r\n", "* of 2", "~ of 2"},
		{func(o []byte, _ bool) []byte { return AppendPush(o, 2) }, ">2\r\n", "", "> of 2", ""},
	} {
		if test.resp3 == "" {
			test.resp3, test.read3 = test.resp2, test.read2
		}
		for _, p := range []struct {
			resp3      bool
			want, read string
		}{{false, test.resp2, test.read2}, {true, test.resp3, test.read3}} {
			out := test.add([]byte("before"), p.resp3)
			if string(out) != "before"+p.want {
				t.Errorf("%q, want %q behind %q", out, p.want, "before")
			}
			raw := out[len("before"):]
			if got := readBack(t, raw); got != p.read {
				t.Errorf("%q is read as %q, want %q", raw, got, p.read)
			}
		}
	}
}

// readBack reads one reply in both ways, whole and cut at every byte.
func readBack(t *testing.T, raw []byte) string {
	t.Helper()
	text := func(r Reply) string {
		switch {
		case r.Null:
			return fmt.Sprintf("%c null", r.Kind)
		case strings.ContainsRune("*%~>", rune(r.Kind)):
			return fmt.Sprintf("%c of %d", r.Kind, r.N)
		}
		return fmt.Sprintf("%c %s", r.Kind, r.Text)
	}
	reply, rest, err := ParseReply(slices.Concat(raw, []byte("rest")))
	if string(rest) != "rest" || err != nil {
		t.Errorf("%q: %q is left, %v", raw, rest, err)
	}
	r := bufio.NewReader(iotest.OneByteReader(bytes.NewReader(raw)))
	again, err := ReadReply(r)
	if text(again) != text(reply) || err != nil {
		t.Errorf("%q: %s by ParseReply, %s by ReadReply, %v", raw, text(reply), text(again), err)
	}
	if _, err := ReadReply(r); err != io.EOF {
		t.Errorf("behind %q: %v", raw, err)
	}
	for cut := 1; cut < len(raw); cut++ {
		if _, _, err := ParseReply(raw[:cut]); err != io.ErrUnexpectedEOF {
			t.Errorf("%q: %v by ParseReply", raw[:cut], err)
		}
		if _, err := ReadReply(bufio.NewReader(bytes.NewReader(raw[:cut]))); err != io.ErrUnexpectedEOF {
			t.Errorf("%q: %v by ReadReply", raw[:cut], err)
		}
	}
	return text(reply)
}

// Bytes that are no reply are an error, whoever sends them, and take no memory.
func TestWhatIsNoReply(t *testing.T) {
	for _, raw := range []string{
		"\n", "\r\n", "x\r\n", "OK\r\n", "+OK\n", ":\r\n", "#\r\n", "$\r\n", "$x\r\n", "$-2\r\n", "$-9223372036854775808\r\n",
		"$99999999999999999999\r\n", "*\r\n", "*-2\r\n", "*x\r\n", "%-1\r\n", "~-1\r\n", ">-1\r\n", "=-1\r\n", "=3\r\ntxt\r\n", "!-1\r\n",
		"$1\r\nab\r\n", "$1\r\na\n\r", "$1\r\nax\n", "$1\r\na\rx", "|1\r\n", "HTTP/1.1 400 Bad Request\r\n",
		// These end a process that reads them by redcon's ReadNextRESP.
		"$9223372036854775807\r\n", "*9223372036854775807\r\n",
	} {
		if reply, err := ReadReply(bufio.NewReader(strings.NewReader(raw))); err == nil || err == io.ErrUnexpectedEOF {
			t.Errorf("%q by ReadReply: %v, %v", raw, reply, err)
		}
		if reply, _, err := ParseReply([]byte(raw)); err == nil || err == io.ErrUnexpectedEOF {
			t.Errorf("%q by ParseReply: %v, %v", raw, reply, err)
		}
	}
	promised := bufio.NewReader(strings.NewReader("$536870912\r\nfew"))
	if n := testing.AllocsPerRun(1, func() { _, _ = ReadReply(promised) }); n > 20 {
		t.Errorf("%v allocations for a string that does not come", n)
	}
	if _, err := ReadReply(bufio.NewReader(strings.NewReader("+" + strings.Repeat("x", 5000)))); err != bufio.ErrBufferFull {
		t.Errorf("a line without an end: %v", err)
	}
}

func FuzzReply(f *testing.F) {
	for _, seed := range []string{
		"+OK\r\n", "*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n", "$5\r\nhello\r\n", "=9\r\ntxt:hello\r\n", "%1\r\n+a\r\n_\r\n", "$-1\r\n",
		"$9223372036854775807\r\n", "-ERR no\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r := bufio.NewReader(iotest.HalfReader(bytes.NewReader(raw)))
		for rest := raw; ; {
			again, errAgain := ReadReply(r)
			reply, after, err := ParseReply(rest)
			if len(rest) == 0 {
				err = errAgain // EOF, where ParseReply tells that all bytes are missing
			}
			if fmt.Sprint(errAgain) != fmt.Sprint(err) && len(raw) < 4000 {
				t.Fatalf("%q: %v by ParseReply, %v by ReadReply", rest, err, errAgain)
			}
			if err != nil || errAgain != nil {
				return
			}
			if fmt.Sprintf("%q", again.Text) != fmt.Sprintf("%q", reply.Text) || again.Kind != reply.Kind || again.N != reply.N ||
				again.Null != reply.Null {
				t.Fatalf("%q: %v by ParseReply, %v by ReadReply", rest, reply, again)
			}
			if len(after) >= len(rest) {
				t.Fatalf("%q: nothing is taken", rest)
			}
			rest = after
		}
	})
}
