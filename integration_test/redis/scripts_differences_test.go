package redis

import (
	"regexp"
	"strings"
)

// scriptDifferences lists the lines of resp/testdata/scripts whose replies may differ from redis-server's. Lines that share a reason
// stand in their own lists.
var scriptDifferences = withLists(map[string]difference{
	`EVAL 'local t = {} for i = 1, 10000 do t[i] = "x" end local ok = pcall(unpack, t) return tostring(ok)' 0`: {"there the stack ends at 8,000 values", bothStart("$4\r\ntrue", "$5\r\nfalse")},
	`SCRIPT HELP`:                                     {"the words say what the commands do here", bothStart("*", "*")},
	`EVAL 'return redis.set_repl()' 0`:                {"in the words of Redis 7.2", bothStart("-ERR redis.set_repl() requires one argument.", "-ERR redis.set_repl() requires two arguments.")},
	`EVAL 'return redis.acl_check_cmd("GET", "k")' 0`: {"there are no users to ask about", bothStart("-ERR user_script:1: attempt to call", ":1")},
	`EVAL 'return redis.call("SELECT", 1)' 0`:         {"there is one database", bothStart("-ERR DB index is out of range script: ", "+OK")},

	`EVAL 'goto x' 0`: {"goto is no word of Lua 5.1, but one of gopher-lua's", bothStart("-ERR Error compiling script (new function): ", "-ERR Error compiling script (new function): ")},
	`EVAL 'local ok, e = pcall(function() local a = nil return a.b end) return {tostring(ok), e}' 0`:           {whyLuaWords, bothStart("*2\r\n$5\r\nfalse\r\n$68\r\nuser_script:1: attempt to index", "*2\r\n$5\r\nfalse\r\n$55\r\nuser_script:1: attempt to index")},
	`EVAL 'getmetatable("").__index = nil' 0`:                                                                  {whyStrings, bothStart("-ERR user_script:1: attempt to index", "-ERR user_script:1: Attempt to modify a readonly table")},
	`EVAL 'getmetatable("").x = 1' 0`:                                                                          {whyStrings, bothStart("-ERR user_script:1: attempt to index", "-ERR user_script:1: Attempt to modify a readonly table")},
	`EVAL 'return getmetatable("").__index == string' 0`:                                                       {whyStrings, bothStart("-ERR user_script:1: attempt to index", ":1")},
	`EVAL 'math.randomseed(1) local a = math.random(1000) math.randomseed(1) return a == math.random(1000)' 0`: {"nobody repeats a script elsewhere, so random numbers are random", bothStart("", ":1")},
})

const (
	whyLuaWords = "what the Lua interpreter itself finds is in gopher-lua's words; which script and which line are the same"
	whyStrings  = "what strings have for a metatable is not shown"
	whyNamed    = "the error names the command that is missing: most who meet it have a script that keeps lists or sorted sets"
	whyMissing  = "there is no such library"
	whyCell     = "0.2.2 does not say where an error comes from"
)

// withLists adds the lines that share a reason.
func withLists(differences map[string]difference) map[string]difference {
	for _, list := range []struct {
		lines []string
		difference
	}{
		{luaErrors, difference{whyLuaWords, sameButLuaWords}},
		{unknownCommands, difference{whyNamed, sameButName}},
		{missingLibraries, difference{whyMissing, isMissingGlobal}},
		{cellErrors, difference{whyCell, func(celld, redis string) bool {
			return strings.Replace(celld, "Cell error: Store error: ", "Cell error: ", 1) == redis
		}}},
	} {
		for _, line := range list.lines {
			differences[line] = list.difference
		}
	}
	return differences
}

var (
	luaWords  = regexp.MustCompile(`^(-ERR (?:Error compiling script \(new function\): )?user_script:[0-9]+: ).*?( script: [0-9a-f]{40}, on @user_script:[0-9]+\.)?\r\n$`)
	named     = regexp.MustCompile(`( called from script): '[^']*'`)
	noLibrary = regexp.MustCompile(`^-ERR user_script:1: Script attempted to access nonexistent global variable '(bit|cjson|cmsgpack|coroutine|gcinfo|struct)' script: `)
)

func sameButLuaWords(celld, redis string) bool {
	return luaWords.MatchString(celld) && luaWords.ReplaceAllString(celld, "$1…$2") == luaWords.ReplaceAllString(redis, "$1…$2")
}

func sameButName(celld, redis string) bool { return named.ReplaceAllString(celld, "$1") == redis }

func isMissingGlobal(celld, redis string) bool {
	return noLibrary.MatchString(celld) && redis[0] != '-'
}

var luaErrors = []string{
	`EVAL 'return string.format("%s %s %s", true, nil, "x")' 0`,
	`EVAL 'local function f(...) return select("#", ...) + arg.n end return f(1, nil)' 0`,
	`SCRIPT LOAD 'retur 1'`,
	`EVAL 'retur 1' 0`,
	`EVAL 'return return' 0`,
	`EVAL 'if' 0`,
	`EVAL 'return "x' 0`,
	`EVAL 'x = = 1' 0`,
	`EVAL 'return 1 2' 0`,
	`EVAL 'local x = 1 return x +' 0`,
	`EVAL 'for i = 1 do end' 0`,
	`EVAL 'break' 0`,
	`EVAL 'end' 0`,
	`EVAL '}' 0`,
	`EVAL '\' 0`,
	`EVAL '$' 0`,
	`EVAL "return 1\nreturn 2" 0`,
	`EVAL "\n\nx x" 0`,
	`EVAL "return '\x00" 0`,
	`EVAL "\x00return 1" 0`,
	`EVAL "return 1 -- \x00 \nx" 0`,
	`EVAL "\x1bLua" 0`,
	`EVAL "# comment\nreturn 1" 0`,
	`EVAL 'local a = nil; return a.b' 0`,
	`EVAL 'local a = nil; a.b = 1' 0`,
	`EVAL 'local a = nil; a()' 0`,
	`EVAL 'local a = {} return a.b.c' 0`,
	`EVAL 'local a = {} a.b()' 0`,
	`EVAL 'local a = {} a:b()' 0`,
	`EVAL 'return 1 + {}' 0`,
	`EVAL 'return 1 + nil' 0`,
	`EVAL 'local a = "x" return a + 1' 0`,
	`EVAL 'local a = nil return a .. "x"' 0`,
	`EVAL 'return #nil' 0`,
	`EVAL 'local n = 5 return #n' 0`,
	`EVAL 'return {} < {}' 0`,
	`EVAL 'return -{}' 0`,
	`EVAL 'for k in nil do end' 0`,
	`EVAL 'return tonumber()' 0`,
	`EVAL 'return tostring()' 0`,
	`EVAL 'return string.rep()' 0`,
	`EVAL 'return string.format("%d", "x")' 0`,
	`EVAL 'return string.sub()' 0`,
	`EVAL 'return ("x"):nosuch()' 0`,
	`EVAL 'return math.floor("x")' 0`,
	`EVAL 'return unpack(nil)' 0`,
	`EVAL 'return ipairs(nil)' 0`,
	`EVAL 'return select(0)' 0`,
	`EVAL 'return setmetatable(1, {})' 0`,
}

var unknownCommands = []string{
	`EVAL 'return redis.call("NOSUCH")' 0`,
	`EVALSHA sha1'return redis.call("NOSUCH")' 0`,
	`EVAL "local function f()\nreturn redis.call('NOSUCH')\nend\nreturn f()" 0`,
	`EVAL 'return redis.call("")' 0`,
	`EVAL 'return redis.call(5)' 0`,
	`EVAL 'return redis.pcall("NOSUCH")' 0`,
	`EVAL 'return redis.call("CONFIG", "NOSUCH")' 0`,
	`EVAL 'return redis.call("OBJECT", "NOSUCH")' 0`,
	`EVAL 'redis.call("SET", KEYS[1], "9000000000000000000") redis.call("NOSUCH")' 1 k`,
}

var missingLibraries = []string{
	`EVAL 'return cjson.encode(redis.call("CL.THROTTLE", KEYS[1], 15, 30, 60))' 1 k`,
	`EVAL 'local limit = cjson.decode(ARGV[1]) return redis.call("CL.THROTTLE", KEYS[1], limit.burst, limit.count, limit.period)' 1 j '{"burst": 15, "count": 30, "period": 60}'`,
	`EVAL 'return coroutine.create(function() end)' 0`,
	`EVAL 'return {1, coroutine.create(function() end)}' 0`,
	`EVAL 'local c = coroutine.create(function(a) local b = coroutine.yield(a + 1) return b * 2 end) local _, x = coroutine.resume(c, 1) local _, y = coroutine.resume(c, 10) return {x, y, coroutine.status(c)}' 0`,
	`EVAL 'return type(gcinfo())' 0`,
	`EVAL 'return {type(cjson), type(cmsgpack), type(struct), type(bit)}' 0`,
	`EVAL 'return {bit.band(12, 10), bit.bor(12, 10), bit.bxor(12, 10), bit.lshift(1, 4), bit.rshift(16, 2), bit.bnot(0), bit.tohex(255)}' 0`,
	`EVAL 'return struct.pack(">I2", 258)' 0`,
	`EVAL 'return cmsgpack.pack({1, 2})' 0`,
}

var cellErrors = []string{
	`EVAL 'return redis.call("CL.THROTTLE", KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4])' 1 user:1 '"15"' '"30"' '"60"' '"1"'`,
	`EVAL 'return redis.call("CL.THROTTLE", KEYS[1], 15, 30)' 1 k`,
	`EVAL 'return redis.pcall("CL.THROTTLE", KEYS[1], 15, 30)' 1 k`,
	`EVAL 'return redis.call("CL.THROTTLE", KEYS[1], 15.5, 30, 60)' 1 k`,
	`EVAL 'return redis.call("CL.THROTTLE", KEYS[1], "x", 30, 60)' 1 k`,
	`EVAL 'return redis.call("CL.THROTTLE", KEYS[1], 1e3, 1e15, 1e20)' 1 k`,
}
