package sandbox_test

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"testing"

	"celld/resp/script"
	"celld/resp/wire"
)

type host struct{}

func (host) Tick() error               { return nil }
func (host) NowNS() int64              { return 0 }
func (host) Call(args [][]byte) []byte { return wire.AppendError(nil, "ERR unknown command") }
func (host) Log(int, string)           {}
func (host) SetProtocol(int)           {}
func (host) OverOutput(int) bool       { return false }

// Each line of the file is a script and its reply, both quoted. A line with = is also what redis-server 7.0 answers. Where the line has ~,
// the two differ, mostly in the texts of errors.
func TestLua(t *testing.T) {
	file, err := os.Open("../testdata/lua.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	e := script.NewEngine()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		text, want, _ := strings.Cut(lines.Text()[2:], "\t")
		text, _ = strconv.Unquote(text)
		want, _ = strconv.Unquote(want)
		if got := eval(e, text); got != want {
			t.Errorf("%s\n got %q\nwant %q", text, got, want)
		}
	}
}

func eval(e *script.Engine, text string) string {
	s, err := e.Load([]byte(text))
	if err != nil {
		return string(wire.AppendError(nil, err.Error()))
	}
	e.Run(s, host{}, nil, nil)
	return string(e.AppendReply(nil, false))
}
