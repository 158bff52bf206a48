package plain

import (
	"strings"
	"testing"

	"github.com/yuin/gopher-lua/parse"
)

// echo answers a command with its last word.
type echo struct{ Host }

func (echo) Call(args [][]byte) []byte { return []byte("+" + string(args[len(args)-1]) + "\r\n") }

// A Machine keeps little room for the next script.
func TestRoomForTexts(t *testing.T) {
	chunk, err := parse.Parse(strings.NewReader("return redis.call('ECHO', ARGV[1])"), "")
	if err != nil {
		t.Fatal(err)
	}
	var m Machine
	for _, bytes := range []int{mostKept + 1, 1} {
		if _, err := m.Run(Compile(chunk), echo{}, nil, [][]byte{make([]byte, bytes)}); err != nil {
			t.Fatal(err)
		}
	}
	if cap(m.texts) > mostKept {
		t.Errorf("room for %d bytes is kept", cap(m.texts))
	}
}
