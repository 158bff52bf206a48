package plain_test

import (
	"fmt"
	"hash/fnv"
	"regexp"
	"strings"
	"testing"

	"celld/resp/script"
	"celld/resp/script/plain"
	"celld/resp/script/scripttest"
	"celld/resp/script/source"

	"github.com/yuin/gopher-lua/ast"
	"pgregory.net/rapid"
)

// host answers a command by its words alone, and notes it. PING is answered with a status.
type host struct {
	scripttest.Host
	calls []string
}

var answers = []string{
	":5\r\n", ":-3\r\n", ":0\r\n", ":9007199254740993\r\n", "+OK\r\n", "+LONGER\r\n",
	"$2\r\n12\r\n", "$3\r\n1.5\r\n", "$2\r\n a\r\n", "$5\r\n a\r\nb\r\n", "$0\r\n\r\n", "$-1\r\n",
	"-ERR bad\r\n", "-WRONGTYPE of key\r\n", "*2\r\n:1\r\n$1\r\nx\r\n", "*0\r\n", "*-1\r\n",
}

func (h *host) Call(args [][]byte) []byte {
	line := fmt.Sprintf("%q", args)
	h.calls = append(h.calls, line)
	if string(args[0]) == "PING" {
		return []byte("+PONG\r\n")
	}
	hash := fnv.New32()
	_, _ = hash.Write([]byte(line))
	return []byte(answers[hash.Sum32()%uint32(len(answers))])
}

var sha = regexp.MustCompile("script: [0-9a-f]{40},")

// run runs a script, and tells its reply, without its name in an error, and what it has called.
func run(t interface{ Fatal(...any) }, e *script.Engine, text string, resp3 bool) string {
	s, err := e.Load([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	h := &host{}
	e.Run(s, h, [][]byte{[]byte("key"), []byte("7")}, [][]byte{[]byte("12"), []byte("a"), []byte(""), []byte("-0x1F "), []byte("1e3")})
	reply := e.AppendReply(nil, resp3)
	return fmt.Sprintf("%q, passed on: %v, called %s", sha.ReplaceAllString(string(reply), "script,"), e.PassedOn(), h.calls)
}

// same checks that a plain script does what the interpreter makes of it. That gets it as a block, which is not plain.
func same(t interface {
	Fatal(...any)
	Fatalf(string, ...any)
}, e *script.Engine, text string,
) {
	isPlain := false
	_, _, err := source.Compile(text, source.Name, func(chunk []ast.Stmt) { isPlain = plain.Compile(chunk) != nil })
	if err != nil || !isPlain {
		t.Fatalf("%s\nis plain: %v, %v", text, isPlain, err)
	}
	for _, resp3 := range []bool{false, true} {
		got, want := run(t, e, text, resp3), run(t, e, "do end "+text, resp3)
		if got != want {
			t.Fatalf("%s\n got %s\nwant %s", text, got, want)
		}
	}
}

// mostCommands is how many a plain script has.
const mostCommands = 16

// draft writes plain scripts.
type draft struct {
	*rapid.T
	locals   int // in scope, named a, b, c and so on
	commands int
}

func (d *draft) pick(from ...string) string { return rapid.SampledFrom(from).Draw(d.T, "pick") }
func (d *draft) below(n int) int            { return rapid.IntRange(0, n-1).Draw(d.T, "below") }

func (d *draft) expression(depth int) string {
	if depth == 0 {
		if d.locals > 0 && d.below(3) > 0 {
			return string(rune('a' + d.below(d.locals)))
		}
		// Without 0, as gopher-lua now and then has -0 for what it multiplies itself.
		return d.pick("1", "12", "999999999999999", "'a'", "''", "'12'", "' 1.5'", "nil", "true", "false", "KEYS[1]", "KEYS[2]", "KEYS[3]",
			"ARGV[1]", "ARGV[2]", "ARGV[3]", "ARGV[4]", "ARGV[5]", "ARGV[6]", "#KEYS", "#ARGV")
	}
	x := func() string { return d.expression(d.below(depth)) }
	switch d.below(8) {
	case 0:
		return "(" + x() + ")"
	case 1:
		return "(" + x() + d.pick(" ", "\n") + d.pick("+", "-", "*", "/") + d.pick(" ", "\n") + x() + ")"
	case 2, 3:
		return "(" + x() + d.pick(" ", "\n") + d.pick("<", "<=", ">", ">=", "==", "~=") + d.pick(" ", "\n") + x() + ")"
	case 4:
		return "(" + x() + d.pick(" and ", " or ", "\nand ") + x() + ")"
	case 5:
		return "(not " + x() + ")"
	case 6:
		return d.pick("tonumber", "math.floor", "math.ceil", "math.abs") + "(" + x() + ")"
	}
	if d.commands == mostCommands {
		return x()
	}
	d.commands++
	words := []string{d.pick(x(), "-7")}
	for range d.below(3) {
		words = append(words, x())
	}
	return d.pick("redis.call(", "redis.pcall(", "redis.pcall(\n") + strings.Join(words, d.pick(", ", ",\n")) + ")"
}

func (d *draft) block(depth int) string {
	var lines []string
	outside := d.locals
	for range d.below(5) {
		lines = append(lines, d.statement(depth))
	}
	if depth == 3 || d.below(3) == 0 {
		lines = append(lines, d.result())
	}
	d.locals = outside
	return strings.Join(lines, "\n")
}

func (d *draft) statement(depth int) string {
	// gopher-lua forgets a nil where the last block before it has ended with one, so there is none.
	x := func() string {
		if e := d.expression(3); strings.Trim(e, "()") != "nil" {
			return e
		}
		return "KEYS[3]"
	}
	switch d.below(7) {
	case 0, 1:
		if d.locals > 20 {
			return ""
		}
		names := string(rune('a' + d.locals))
		switch d.below(4) {
		case 0:
			names += ", " + string(rune('b'+d.locals)) + " = " + x() + ", " + x()
			d.locals++
		default:
			names += " = " + x()
		}
		d.locals++
		return "local " + names
	case 2:
		if d.locals > 0 {
			return string(rune('a'+d.below(d.locals))) + " = " + x()
		}
		return ""
	case 3, 4:
		if depth == 0 {
			return ""
		}
		text := "if " + x() + " then\n" + d.block(depth-1)
		if d.below(3) == 0 {
			text += "\nelseif " + x() + " then " + d.block(depth-1)
		}
		if d.below(2) == 0 {
			text += "\nelse " + d.block(depth-1)
		}
		return text + " end"
	}
	if d.commands == mostCommands {
		return ""
	}
	d.commands++
	return "redis.pcall('DEL', " + x() + ")"
}

func (d *draft) result() string {
	switch d.below(3) {
	case 0:
		return "return"
	case 1:
		return "return " + d.expression(3)
	}
	var items []string
	for range d.below(5) {
		items = append(items, d.expression(2))
	}
	return "return {" + strings.Join(items, ", ") + "}"
}

// A plain script answers what it answers by the interpreter, and calls the same commands, whatever it has.
func TestSameAsTheInterpreter(t *testing.T) {
	e := script.NewEngine()
	rapid.Check(t, func(t *rapid.T) {
		d := &draft{T: t}
		same(t, e, d.block(3))
	})
}
