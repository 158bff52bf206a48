package redis

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// Lua's patterns are celld's own code: on generated ones they do what redis-server's Lua does.
func TestScriptPatterns(t *testing.T) {
	t.Parallel()
	celld, redis := startRedisPair(t)
	const script = `local function all(...) local t = {} for i = 1, select('#', ...) do t[i] = tostring((select(i, ...))) end return table.concat(t, '|') end
local function try(f, ...) local t = {pcall(f, ...)} if not t[1] then return 'error' end return all(unpack(t, 1, 20)) end
local s, p, r = ARGV[1], ARGV[2], ARGV[3]
local function each() local t = {} for a, b in string.gmatch(s, p) do t[#t + 1] = tostring(a) .. tostring(b) if #t > 50 then break end end return table.concat(t, ',') end
return {try(string.find, s, p), try(string.find, s, p, 2), try(string.find, s, p, -1), try(string.match, s, p), try(string.gsub, s, p, r), try(string.gsub, s, p, r, 1),
  try(string.gsub, s, p, {a = 'A', ab = 1}), try(string.gsub, s, p, function(a) return a == 'b' and 'B' end), try(each)}`
	items := []string{"a", "b", ".", "%a", "%d", "%s", "%w", "%A", "[ab]", "[^a]", "[a-c]", "[%d_]", "%.", "(a)", "(.)", "()", "(a*)", "(",
		")", "%b()", "%f[%a]", "%1", "$", "^", "[]]", "[^]]", "[a-]", "[", "%", "%%", "%p", "%x", "%c", "%u", "%L"}
	letters := []string{"a", "b", "c", "1", "_", " ", "(", ")", ".", "ab", "aa", "]", "-", "A", "é", "\n"}
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(from []string) string { return from[r.IntN(len(from))] }
	failures := 0
	ask := func(script string, args ...string) {
		call := append([]string{"EVAL", script, "0"}, args...)
		got, want := fmt.Sprint(celld.Do(call...)), fmt.Sprint(redis.Do(call...))
		if got != want && failures < 20 {
			failures++
			t.Errorf("%q:\n got %q\nwant %q", args, got, want)
		}
	}
	for range 2000 {
		var subject, pattern string
		for range r.IntN(6) {
			subject += pick(letters)
		}
		for range 1 + r.IntN(4) {
			pattern += pick(items) + pick([]string{"", "", "", "*", "+", "-", "?"})
		}
		ask(script, subject, strings.Repeat("^", r.IntN(8)/7)+pattern, pick([]string{"", "x", "%0", "%1", "<%0>", "%%", "%2"}))
	}
}
