package wire

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Both readers read what AppendCommand writes as the same words, and neither reads less of it.
func TestCommands(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SliceOf(rapid.Byte()), 1, 20).Draw(t, "words")
		text := AppendCommand(nil, words...)
		again := AppendCommand(nil, strings.Split(string(bytes.Join(words, []byte("|"))), "|")...)
		if !bytes.Contains(bytes.Join(words, nil), []byte("|")) && string(again) != string(text) {
			t.Errorf("%q of bytes, %q of strings", text, again)
		}
		got, n, wrong := ParseCommand(append(text, "more"...), nil)
		if n != len(text) || wrong != "" || !slices.EqualFunc(got, words, bytes.Equal) {
			t.Errorf("%q is parsed as %q, %d, %s", text, got, n, wrong)
		}
		got, n, err := new(FrameReader).Next(text, nil, Limits{MaxArgs: 20, MaxBulk: 1 << 20, Authed: true})
		if n != len(text) || err != nil || !slices.EqualFunc(got, words, bytes.Equal) {
			t.Errorf("%q is read as %q, %d, %v", text, got, n, err)
		}
		for cut := range text {
			if got, n, wrong := ParseCommand(text[:cut], nil); n != 0 || wrong != "" {
				t.Fatalf("%q is parsed as %q, %d, %s", text[:cut], got, n, wrong)
			}
		}
	})
}

// An error says what is wrong, and only where it is certain.
func TestParseCommand(t *testing.T) {
	for text, want := range map[string]string{
		"x": "'x' where '*' should be", "\r\n": "'\\r' where '*' should be", "PING\r\n": "'P' where '*' should be",
		"*\r\n": "'\\r' in a number", "*x": "'x' in a number", "*-1\r\n": "'-' in a number", "*+1\r\n": "'+' in a number",
		"* 1\r\n": "' ' in a number", "*1\n": "'\\n' in a number",
		"*1\rx": "a line that does not end as it should", "*0\r\n": "a command without words", "*1048577": "a number that is too large",
		"*99999999999999999999": "a number that is too large", "*1\r\n:1": "':' where '$' should be", "*1\r\n$-1\r\n": "'-' in a number",
		"*1\r\n$536870913": "a number that is too large", "*1\r\n$1\r\nab\r\n": "a word that does not end where its length says",
		"*1\r\n$1\r\na\n\n": "a word that does not end where its length says",
		// These are not wrong.
		"": "", "*": "", "*0": "", "*1": "", "*1\r": "", "*1\r\n": "", "*1\r\n$536870912\r\n": "", "*01\r\n$0004\r\nPING\r\n": "",
		"*1\r\n$1\r\na\r": "", "*1\r\n$1\r\nab": "",
	} {
		if args, _, wrong := ParseCommand([]byte(text), nil); wrong != want {
			t.Errorf("%q: %q, %q; want %q", text, args, wrong, want)
		}
	}
}

// FuzzParseCommand compares the strict reader with that of a socket, which takes whatever a strict one does, but leading zeros.
func FuzzParseCommand(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		args, n, wrong := ParseCommand(text, nil)
		if n == 0 {
			return
		}
		if wrong != "" || n > len(text) || len(args) == 0 {
			t.Fatalf("%q: %q, %d, %s", text, args, n, wrong)
		}
		got, length, err := new(FrameReader).Next(text, nil, Limits{MaxArgs: maxWords, MaxBulk: maxWordLen, Authed: true})
		if (err != nil || length != n || !slices.EqualFunc(got, args, bytes.Equal)) &&
			(err == nil || len(AppendCommand(nil, args...)) == n) {
			t.Fatalf("%q is parsed as %q, and read as %q, %v", text[:n], args, got, err)
		}
	})
}
