package plain_test

import (
	"strings"
	"testing"

	"celld/resp/script"
	"celld/resp/script/plain"
	"celld/resp/script/source"

	"github.com/yuin/gopher-lua/ast"
)

// Scripts as libraries have them, and what random ones leave out.
var plainScripts = []string{
	"",
	"return",
	"return redis.call('INCR', KEYS[1])",
	`
local totalHits = redis.call("INCR", KEYS[1])
local timeToExpire = redis.call("PTTL", KEYS[1])
if timeToExpire <= 0 or ARGV[1] == "1"
then
  redis.call("PEXPIRE", KEYS[1], tonumber(ARGV[2]))
  timeToExpire = tonumber(ARGV[2])
end
return { totalHits, timeToExpire }`,
	`
local current
local amount = tonumber(ARGV[2])
current = redis.call("incrby", KEYS[1], amount)
if tonumber(current) == amount then
  redis.call("expire", KEYS[1], ARGV[1])
end
return current`,
	"local a, b, c return {a, b, c}",
	"local a, b = 1, 2 if a < b then local a = 3 b = a end return {a, b}",
	"local KEYS = 1 return KEYS",
	"local a = 0 return {0, -1, a * -1, 0 / 0, 1 / 0, -1 / 0, 9 / 2, -9 / 2}",
	"local a = redis.pcall('a') local b = redis.pcall('b') return {a == a, a == b, a == 'OK', a == nil}",
	"local a = redis.call('PING') local b = redis.call('PING') local c = a return {a == b, a == c, a == a, a == 'PONG', a}",
	"if KEYS[1] then local a = 1 end local a, b return {a == nil, b == nil}",
	"if KEYS[1] then local a, b = 1, 2 end local a, b return redis.call(a or 'nil', b or 'nil')",
	"return {tonumber(ARGV[1]) + ARGV[4], '0x10' + 1, ' 2 ' * 3, ARGV[1] - '1e1'}",
	"return {1 < 2, 'a' < 'b', 'B' < 'a', '10' < '9', '' < 'a', 'a' <= 'a'}",
	"local a = redis.call('x', tonumber('-0'), math.ceil(-1 / 2), '-1' * 0, ARGV[5] * 0) local b = 0 return redis.call(b * -1, -1 * b)",
	"return '1' < 1",
	"return 1 < nil",
	"return nil > 1",
	"return redis.call('a') < redis.call('b')",
	"return nil + nil", "return nil + 1", "return 1 + nil", "return 'a' + 1", "return 1 - 'a'", "return nil * 'a'", "return 'a' / nil",
	"return math.floor('x')", "return math.floor(nil)", "return math.floor('1.5') + math.ceil(1 / 2) + math.abs(-3)",
	"return math.floor(true)", "return math.abs(redis.pcall('x'))",
	"return redis.call(nil)", "return redis.pcall(true)", "return redis.pcall(redis.pcall('x'))", "return redis.call()",
	"return redis.call(1, 1.5, 100000000000000, 1e20)", "return {010, 00, KEYS[02], 2 * 010}",
	"redis.call(5 / 2, 1 / 3, 99999999999999 * 9, 1 / 0)",
	"return not nil", "return nil or false", "return nil and 1", "return 1 and nil", "return false or 'x'", "return 1 or redis.call('x')",
	"return (redis.call('x'))",
	"return {redis.call('x'), {1}}",
	"#!lua flags=no-writes\nreturn redis.call(\n'x',\n1) +\nredis.call('y')",
}

// isPlain says whether a script is.
func isPlain(t *testing.T, text string) (is bool) {
	_, _, err := source.Compile(text, source.Name, func(chunk []ast.Stmt) { is = plain.Compile(chunk) != nil })
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return is
}

func TestScripts(t *testing.T) {
	e := script.NewEngine()
	for _, text := range plainScripts {
		first, rest, _ := strings.Cut(text, "\n")
		if !strings.HasPrefix(first, "#") {
			first, rest = "", text
		} else {
			first += "\n"
		}
		for _, resp3 := range []bool{false, true} {
			if got, want := run(t, e, text, resp3), run(t, e, first+"do end "+rest, resp3); got != want {
				t.Errorf("%s\n got %s\nwant %s", text, got, want)
			}
		}
	}
}

// What libraries have is plain, and what Compile does not know, or would get wrong, is not.
func TestWhatIsPlain(t *testing.T) {
	for text, want := range map[string]bool{
		plainScripts[3]: true, plainScripts[4]: true,
		"return #KEYS + #ARGV": true, "return 010 + 00 + KEYS[02]": true, "local a = -1 return a": true,
		"if ARGV[1] then return 1 elseif KEYS[1] then return 2 else return 3 end": true,
		"local a a = KEYS[1] return {a}":                                          true,
		strings.Repeat("redis.call('x')\n", 16):                                   true,
		strings.Repeat("redis.call('x')\n", 17):                                   false,
		"redis.call('x'" + strings.Repeat(", 1", 31) + ")":                        true,
		"redis.call('x'" + strings.Repeat(", 1", 32) + ")":                        false,
		strings.Repeat("local a\n", 32):                                           true,
		strings.Repeat("local a\n", 33):                                           false,
		"return " + strings.Repeat("not ", 40) + "1":                              true,
		"return " + strings.Repeat("not ", 60) + "1":                              false,
		strings.Repeat("if 1 then ", 60) + strings.Repeat(" end", 60):             false,
		"return KEYS":                              false,
		"return KEYS[0]":                           false,
		"return KEYS[-1]":                          false,
		"return KEYS[ARGV[1]]":                     false,
		"return KEYS['1']":                         false,
		"return #'abc'":                            false,
		"return 1, 2":                              false,
		"return 0x10":                              false,
		"return 1.5":                               false,
		"return 1e3":                               false,
		"return -0":                                false,
		"return - KEYS[1]":                         false,
		"return 1234567890123456":                  false,
		"return 7 % 2":                             false,
		"return 2 ^ 3":                             false,
		"return 'a' .. 'b'":                        false,
		"return {x = 1}":                           false,
		"return {[1] = 1}":                         false,
		"local t = {} return t":                    false,
		"local t = KEYS return 1":                  false,
		"local a, b = 1 return b":                  false,
		"local a, b a, b = 1, 2":                   false,
		"x = 1":                                    false,
		"KEYS[1] = 'x'":                            false,
		"return tonumber('10', 16)":                false,
		"return tonumber()":                        false,
		"return tostring(1)":                       false,
		"return math.max(1, 2)":                    false,
		"return math.floor(1, 2)":                  false,
		"return redis.call()":                      false,
		"return redis.call(unpack({}))":            false,
		"return redis.sha1hex('x')":                false,
		"return redis['call']('x')":                true, // the same in Lua
		"return redis:call('x')":                   false,
		"local redis = 1 return redis.call('x')":   false,
		"local math = 1 return math.floor(1)":      false,
		"local tonumber = 1 return tonumber('1')":  false,
		"for i = 1, 2 do end":                      false,
		"while false do end":                       false,
		"repeat until true":                        false,
		"do end":                                   false,
		"local function f() end":                   false,
		"return function() end":                    false,
		"return ...":                               false,
		"return redis.call(...)":                   false,
		"if KEYS[1] then local a = 1 end return a": false,
		"local a = a return a":                     false,
	} {
		if got := isPlain(t, text); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// Fit keeps long texts from a Machine, which does not count how long they take.
func TestFit(t *testing.T) {
	short, long := []byte(strings.Repeat("x", plain.LongestText)), []byte(strings.Repeat("x", plain.LongestText+1))
	if !plain.Fit([][]byte{short}, [][]byte{short, nil}) || plain.Fit([][]byte{long}, nil) || plain.Fit(nil, [][]byte{short, long}) {
		t.Error("Fit is wrong about a text of LongestText bytes, or of one more")
	}
}
