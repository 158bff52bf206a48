package sandbox_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"celld/resp/script"
	"celld/resp/script/budget"
	"celld/resp/script/scripttest"
)

type countingHost struct {
	scripttest.Host
	ticks int
}

func (h *countingHost) Tick() error { h.ticks++; return nil }

// A function that handles much counts as many instructions: so many more a call than with an empty text or list, mostly one for each 64
// bytes. A tick comes after 256, and what a call counts beyond that is lost.
func TestWork(t *testing.T) {
	const calls = 2000
	e := script.NewEngine()
	for _, test := range []struct {
		call string
		want int // s has 1280 bytes, t 128 elements; s is "", and t {}, for comparison
	}{
		{"string.reverse(s)", 37}, {"string.lower(s)", 37}, {"string.upper(s)", 37}, {"string.find(s, 'x', 1, true)", 20},
		{"string.find('x', s)", 19}, {"string.find(s, 'y')", 19}, {"string.rep('a', #s)", 19}, {"string.rep(s, 1)", 19},
		{"string.format('%s', s)", 19}, {"string.format('%q', s)", 78}, {"string.format(s)", 20}, {"string.byte(s, 1, #t)", 29},
		{"(s .. 'x')", 20}, {"('x' .. s)", 20}, {"redis.sha1hex(s)", 80}, {"pcall(error, s, 0)", 79}, {"{unpack(t)}", 77},
		{"select('#', unpack(t))", 29}, {"unpack(t, 1, #t)", 30}, {"table.concat(t)", 15}, {"table.insert(t, 1, 0) table.remove(t, 1)", 61},
		{"table.sort(t)", 307}, {"loadstring(c)", 228}, {"string.gsub(s, 'y', '')", 19}, {"string.gsub('x', 'x', s)", 21},
		{"table.foreach(t, f)", 256}, {"table.foreachi(t, f)", 256}, {"{0, unpack(t)}", 76}, {"{[s] = 0, unpack(t)}", 74}, {"next(u)", 32},
		{"rawset({}, #u, 0)", 57}, {"table.sort({s, s})", 38}, {"table.sort({'a' .. s, 'b'})", 38},
	} {
		count := func(n int) int {
			h := &countingHost{}
			text := fmt.Sprintf(`local s, t, u, f, c = string.rep('x', %d), {}, {}, function() end, 'return [[' .. string.rep('x', %d) .. ']]' for i = 1, %d do t[i] = i u[i] = i end
			local last = #u for i = 1, last - 1 do u[i] = nil end local _ for i = 1, %d do %s end`, 10*n, n*200/128, n, calls, "_ = "+test.call)
			text = strings.ReplaceAll(text, "_ = table.insert", "table.insert")
			s, err := e.Load([]byte(text))
			if err != nil {
				t.Fatal(test.call, err)
			}
			e.Run(s, h, nil, nil)
			if reply := string(e.AppendReply(nil, false)); reply != "$-1\r\n" {
				t.Fatalf("%s: %s", test.call, reply)
			}
			return h.ticks
		}
		got := (count(128) - count(0)) * budget.TickEvery / calls
		if slack := 2 + test.want/20; got < test.want-slack || got > test.want+slack {
			t.Errorf("%s: %d instructions, want %d", test.call, got, test.want)
		}
	}
}

// Functions that make or copy long texts end the script before the memory does.
func TestMemoryOfTexts(t *testing.T) {
	e := script.NewEngine()
	for _, test := range []struct {
		body string
		ends bool
	}{
		{"string.rep('x', 15000000)", false}, {"string.rep('x', 17000000)", true}, {"string.rep('xy', 2^30)", true},
		{"string.rep('', 2^30)", false}, {"string.reverse(m)", false}, {"string.gsub('xxxx', 'x', m)", false},
		{"string.gsub(string.rep('x', 100), 'x', m)", true}, {"string.gsub(m, '.+', '%0%0')", false},
		{"string.gsub(m, '.+', string.rep('%0', 20))", true},
		{"string.format(string.rep('%s', 30), " + strings.TrimSuffix(strings.Repeat("m,", 30), ",") + ")", true},
		{"table.concat({" + strings.Repeat("m,", 30) + "})", true}, {"table.concat({m, m, m})", false},
		{"m" + strings.Repeat(" .. m", 20), true}, {"m .. m .. m", false}, {"pcall(error, m .. m .. m .. m .. m)", true},
		{"pcall(error, m)", false}, {"string.format('%q', m)", false}, {"string.format('%q', m .. m .. m .. m .. m)", true},
		{"rawset({}, 200000, 1)", false}, {"rawset({}, 600000, 1)", true}, {"rawset({}, 2^40, 1)", false},
		{"rawset({}, 600000, nil)", false},
	} {
		runtime.GC()
		text := "local m = string.rep('x', 1000000) local _ = " + test.body
		reply := scripttest.Eval(e, text)
		if test.ends != strings.HasPrefix(reply, "-"+budget.ErrMemory.Error()) || !test.ends && reply != "$-1\r\n" {
			t.Errorf("%.60s: %.80s", test.body, reply)
		}
	}
}
