package wire

import (
	"bytes"
	"slices"
	"testing"

	"github.com/tidwall/redcon"
)

// byRedcon is what redcon reads, and whether it lived.
func byRedcon(stream []byte) (args [][]byte, n int, lived bool) {
	defer func() {
		if recover() != nil {
			args, n, lived = nil, 0, false
		}
	}()
	complete, args, _, left, err := redcon.ReadNextCommand(stream, nil)
	if !complete || err != nil {
		return nil, 0, true
	}
	return args, len(stream) - len(left), true
}

// The packets for which FrameReader is ours. Where a newer redcon lives on, ask again whether it needs to be.
func TestRedconDies(t *testing.T) {
	if _, _, lived := byRedcon([]byte("*1\r\n$-2\r\n")); lived {
		t.Error("ReadNextCommand lives")
	}
	defer func() {
		if recover() == nil {
			t.Error("ReadNextRESP lives")
		}
	}()
	redcon.ReadNextRESP([]byte("$9223372036854775807\r\n"))
}

// FuzzAgainstRedcon: arrays that are written as clients write them, and lines of plain words, are what redcon makes of them.
// redcon reads all else that a peer may send otherwise than Redis does.
func FuzzAgainstRedcon(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	plain := func(line []byte) bool {
		return !bytes.ContainsFunc(line, func(c rune) bool { return c < ' ' || c > '~' || c == '"' || c == '\'' || c == '\\' })
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		if len(stream) == 0 {
			return
		}
		args, n, err := new(FrameReader).Next(stream, nil, Limits{MaxArgs: maxWords, MaxBulk: maxWordLen, Authed: true})
		theirs, length, lived := byRedcon(stream)
		line, _, _ := bytes.Cut(stream, []byte("\n"))
		switch {
		case stream[0] == '$' || !lived: // Tile38's own protocol
		case stream[0] == '*':
			if canonical := length > 0 && bytes.Equal(AppendCommand(nil, theirs...), stream[:length]); canonical && len(theirs) > 0 && (n != length || err != nil || !slices.EqualFunc(args, theirs, bytes.Equal)) {
				t.Fatalf("%q is %q, %v; by redcon %q", stream[:length], args, err, theirs)
			}
			if canonical := n > 0 && bytes.Equal(AppendCommand(nil, args...), stream[:n]); canonical && len(args) > 0 && (n != length || !slices.EqualFunc(args, theirs, bytes.Equal)) {
				t.Fatalf("%q is %q; by redcon %q", stream[:n], args, theirs)
			}
		case plain(bytes.TrimSuffix(line, []byte("\r"))) && len(line) < maxLine:
			if n != length || err != nil || !slices.EqualFunc(args, theirs, bytes.Equal) {
				t.Fatalf("%q is %q, %v; by redcon %q", line, args, err, theirs)
			}
		}
	})
}
