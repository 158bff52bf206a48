// Package scripttest runs the scripts of testdata/lua.txt, whose replies are known, for the tests of package script and of its parts.
package scripttest

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"testing"

	"celld/resp/script"
	"celld/resp/wire"
)

// Host knows no command and ends no script.
type Host struct{}

func (Host) Tick() error               { return nil }
func (Host) NowNS() int64              { return 0 }
func (Host) Call(args [][]byte) []byte { return wire.AppendError(nil, "ERR unknown command") }
func (Host) Log(int, string)           {}
func (Host) SetProtocol(int)           {}
func (Host) OverOutput(int) bool       { return false }

// Recorded runs the scripts of a file. Each line is a script and its reply, both quoted. A line with = is also what redis-server 7.0
// answers. Where the line has ~, the two differ, mostly in the texts of errors. A script runs by itself, and behind a block that does
// nothing, so by the interpreter: an error is another then, as it names the script.
func Recorded(t *testing.T, path string) {
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	e := script.NewEngine()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		text, want, _ := strings.Cut(lines.Text()[2:], "\t")
		text, _ = strconv.Unquote(text)
		want, _ = strconv.Unquote(want)
		if got := Eval(e, text); got != want {
			t.Errorf("%s\n got %q\nwant %q", text, got, want)
		}
		if strings.HasPrefix(text, "#!") || strings.HasPrefix(want, "-") {
			continue
		}
		if got := Eval(e, "do end "+text); got != want {
			t.Errorf("%s, interpreted\n got %q\nwant %q", text, got, want)
		}
	}
}

// Eval runs a script as EVAL does.
func Eval(e *script.Engine, text string) string {
	s, err := e.Load([]byte(text))
	if err != nil {
		return string(wire.AppendError(nil, err.Error()))
	}
	e.Run(s, Host{}, nil, nil)
	return string(e.AppendReply(nil, false))
}
