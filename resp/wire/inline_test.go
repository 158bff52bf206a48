package wire

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Each row but the ones with NUL is what redis-server 7.0.15 makes of the line, sent by hand over a socket.
func TestSplitInline(t *testing.T) {
	for _, c := range []struct {
		line string
		want []string
	}{
		{"", nil},
		{" \t\r\n\v\f", nil},
		{"PING", []string{"PING"}},
		{"  CL.THROTTLE\tk  15 30 60 ", []string{"CL.THROTTLE", "k", "15", "30", "60"}},
		{"a\rb\nc", []string{"a", "b", "c"}},
		{"\va\fb \vc\v", []string{"a\fb", "c\v"}}, // skipped before a word, part of it inside
		{"a\u00a0b \x85", []string{"a\u00a0b", "\x85"}},

		{`""`, []string{""}},
		{`''`, []string{""}},
		{`k "" ''`, []string{"k", "", ""}},
		{`"a b" 'c d'`, []string{"a b", "c d"}},
		{`"it's" '"'`, []string{"it's", `"`}},
		{"\"a\"\v'b'\f'c'", []string{"a", "b", "c"}},
		{`a"b c" d'e f'`, []string{"ab c", "de f"}},

		{`"\n\r\t\b\a"`, []string{"\n\r\t\b\a"}},
		{`"\x00\x41\xff\xFf\xaB"`, []string{"\x00A\xff\xff\xab"}},
		{`"\x4\x41\xZZ\x"`, []string{"x4AxZZx"}},
		{`"\"\\\'\q\0"`, []string{`"\'q0`}},
		{`'\'\n\x41\\ '`, []string{`'\n\x41\\ `}},
		{`\n \x41 \\ \`, []string{`\n`, `\x41`, `\\`, `\`}},

		{"a\x00b", []string{"a"}},
		{"a b\x00\"", []string{"a", "b"}},
		{"\x00a", nil},
	} {
		args, ok := splitInline([]byte(c.line))
		if got := inlineTexts(args); !ok || !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, %v; want %q", c.line, got, ok, c.want)
		}
	}
}

func TestSplitInlineUnbalanced(t *testing.T) {
	for _, line := range []string{
		`"`, `'`, `a "`, `a"`, `"a`, `'a`, `"a'`, `"\"`, `'\'`, `'\\'`, `"a\`, `"a\x`, `"a\x4`, `"a\x41`,
		`"a"b`, `'a'b`, `"a""b"`, `'a''b'`, `"a"'b'`, `a"b"c`, `""""`, "\"a\"\xa0",
		"\"a\x00\"", "'a\x00'",
	} {
		if args, ok := splitInline([]byte(line)); ok || args != nil {
			t.Errorf("%q: %q, %v", line, args, ok)
		}
	}
}

func TestSplitInlineArgumentsAreCopies(t *testing.T) {
	line := []byte(`a "b" 'c'`)
	args, _ := splitInline(line)
	clear(line)
	_ = append(args[0], "overflow"...)
	if got := inlineTexts(args); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("%q", got)
	}
}

// inlineQuoted writes arguments so that they read back as they are: the way redis-cli shows a string.
func inlineQuoted(args [][]byte) []byte {
	var line []byte
	for _, arg := range args {
		line = append(line, '"')
		for _, c := range arg {
			line = fmt.Appendf(line, `\x%02x`, c)
		}
		line = append(line, '"', ' ')
	}
	return line
}

func TestSplitInlineReadsAnyBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOf(rapid.SliceOf(rapid.Byte())).Draw(t, "args")
		got, ok := splitInline(inlineQuoted(want))
		if !ok || !slices.EqualFunc(got, want, bytes.Equal) {
			t.Fatalf("%q: %q, %v", want, got, ok)
		}
	})
}

func FuzzSplitInline(f *testing.F) {
	f.Add([]byte(`SET "k\x00" 'it\'s' a"b"`))
	f.Add([]byte("\"\\x4\" \v\f\t'"))
	f.Fuzz(func(t *testing.T, line []byte) {
		before := bytes.Clone(line)
		args, ok := splitInline(line)
		if !bytes.Equal(line, before) {
			t.Fatal("the line has changed")
		}
		total := 0
		for _, arg := range args {
			total += len(arg)
		}
		if total > len(line) || !ok && args != nil {
			t.Fatalf("%q, %v from %q", args, ok, line)
		}
		again, ok := splitInline(inlineQuoted(args))
		if !ok || !slices.EqualFunc(again, args, bytes.Equal) {
			t.Fatalf("%q reads back as %q", args, again)
		}
	})
}

func inlineTexts(args [][]byte) (list []string) {
	for _, arg := range args {
		list = append(list, string(arg))
	}
	return list
}
