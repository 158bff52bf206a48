package script

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"celld/resp/scripts"
	"celld/resp/wire"
)

// fakeHost answers the commands of a script, and ends it after so many ticks.
type fakeHost struct {
	calls    []string
	answer   func(args []string) string // nil: ECHO
	ticks    int
	most     int    // ticks; 0: any number
	onTick   func() // at each
	log      []string
	protocol int
	limit    int // bytes of a reply; 0: any number
	nowNS    func() int64
}

var errFakeEnd = errors.New("ERR ended by the test")

func (h *fakeHost) Call(args [][]byte) []byte {
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = string(arg)
	}
	h.calls = append(h.calls, strings.Join(words, " "))
	if h.answer != nil {
		return []byte(h.answer(words))
	}
	return wire.AppendString(nil, words[len(words)-1])
}

func (h *fakeHost) Tick() error {
	if h.onTick != nil {
		h.onTick()
	}
	if h.ticks++; h.most > 0 && h.ticks > h.most {
		return errFakeEnd
	}
	return nil
}

func (h *fakeHost) NowNS() int64 {
	if h.nowNS != nil {
		return h.nowNS()
	}
	return 0
}

func (h *fakeHost) Log(level int, text string)    { h.log = append(h.log, fmt.Sprint(level, " ", text)) }
func (h *fakeHost) SetProtocol(version int)       { h.protocol = version }
func (h *fakeHost) OverOutput(bytes int) bool     { return h.limit > 0 && bytes > h.limit }
func replyOf(text string) func(_ []string) string { return func([]string) string { return text } }

// eval runs a script as EVAL does.
func eval(e *Engine, host scripts.Host, resp3 bool, text string, keysAndArgs ...string) string {
	s, err := e.Load([]byte(text))
	if err != nil {
		return string(wire.AppendError(nil, err.Error()))
	}
	var keys, args [][]byte
	to := &keys
	for _, text := range keysAndArgs {
		if text == "|" {
			to = &args
			continue
		}
		*to = append(*to, []byte(text))
	}
	e.Run(s, host, keys, args)
	return string(e.AppendReply(nil, resp3))
}

func errorReplyOf(script, text string, line int) string {
	return fmt.Sprintf("-%s script: %s, on @user_script:%d.\r\n", text, SHA1([]byte(script)), line)
}

// The replies of scripts in RESP2 and RESP3. An empty resp3 means the same as RESP2.
func TestReplies(t *testing.T) {
	e := NewEngine()
	for _, test := range []struct{ script, resp2, resp3 string }{
		{"", "$-1\r\n", "_\r\n"},
		{"return nil", "$-1\r\n", "_\r\n"},
		{"return false", "$-1\r\n", "_\r\n"},
		{"return true", ":1\r\n", ""},
		{"redis.setresp(3) return true", ":1\r\n", "#t\r\n"},
		{"redis.setresp(3) return false", ":0\r\n", "#f\r\n"},
		{"redis.setresp(3) redis.setresp(2) return false", "$-1\r\n", "_\r\n"},
		{"return 3.99", ":3\r\n", ""},
		{"return -3.99", ":-3\r\n", ""},
		{"return '010' + '08' * 2", ":26\r\n", ""},
		{"return -'010' % 7", ":4\r\n", ""},
		{"return math.max('9', '010') .. string.format('%3s%-3c%d|', 'é', '65', '010')", "$11\r\n10 éA  10|\r\n", ""},
		{"local n = 0 for i = '01', '03' do n = n + i end return n", ":6\r\n", ""},
		{"return 1e300", ":-9223372036854775808\r\n", ""},
		{"return 0/0", ":-9223372036854775808\r\n", ""},
		{"return 'a\\r\\nb'", "$4\r\na\r\nb\r\n", ""},
		{"return ''", "$0\r\n\r\n", ""},
		{"return {}", "*0\r\n", ""},
		{"return {1,'2',{3},nil,5}", "*3\r\n:1\r\n$1\r\n2\r\n*1\r\n:3\r\n", ""},
		{"return {1,false,true}", "*3\r\n:1\r\n$-1\r\n:1\r\n", "*3\r\n:1\r\n_\r\n:1\r\n"},
		{"return {x=1}", "*0\r\n", ""},
		{"return {ok='FINE'}", "+FINE\r\n", ""},
		{"return {ok='a\\r\\n:1'}", "+a  :1\r\n", ""},
		{"return {err='MY bad'}", "-MY bad\r\n", ""},
		{"return {err='MY bad\\r\\n:1'}", "-MY bad  :1\r\n", ""},
		{"return redis.status_reply('X')", "+X\r\n", ""},
		{"return redis.error_reply('MY err')", "-MY err\r\n", ""},
		{"return redis.error_reply('-MY err')", "-MY err\r\n", ""},
		{"return redis.error_reply('single')", "-ERR single\r\n", ""},
		{"return redis.error_reply()", "-ERR wrong number or type of arguments\r\n", ""},
		{"return redis.error_reply({})", "-ERR wrong number or type of arguments\r\n", ""},
		{"return redis.status_reply('a','b')", "-ERR wrong number or type of arguments\r\n", ""},
		{"return {double=3.5}", "$3\r\n3.5\r\n", ",3.5\r\n"},
		{"return {map={a=1}}", "*2\r\n$1\r\na\r\n:1\r\n", "%1\r\n$1\r\na\r\n:1\r\n"},
		{"return {set={a=true}}", "*1\r\n$1\r\na\r\n", "~1\r\n$1\r\na\r\n"},
		{"return {big_number='12\\r\\n3'}", "$5\r\n12  3\r\n", "(12  3\r\n"},
		{"return {verbatim_string={format='txt',string='hi'}}", "$2\r\nhi\r\n", "=6\r\ntxt:hi\r\n"},
		{"return {verbatim_string={format='t',string='hi'}}", "$2\r\nhi\r\n", "=6\r\nt  :hi\r\n"},
		{"return tostring", "$-1\r\n", "_\r\n"},
		{"return setmetatable({}, {__index=function() return 1 end})", "*0\r\n", ""}, // a reply calls nothing
		{"return redis.sha1hex('')", "$40\r\nda39a3ee5e6b4b0d3255bfef95601890afd80709\r\n", ""},
		{"return {redis.REDIS_VERSION, redis.REDIS_VERSION_NUM, redis.LOG_WARNING, redis.REPL_ALL}", "*4\r\n$5\r\n7.2.4\r\n:459268\r\n:3\r\n:3\r\n", ""},
		{"return {KEYS[1], ARGV[1], ARGV[2], #KEYS, #ARGV}", "*5\r\n$1\r\nk\r\n$1\r\na\r\n$1\r\nb\r\n:1\r\n:2\r\n", ""},
	} {
		for _, resp3 := range []bool{false, true} {
			want := test.resp2
			if resp3 && test.resp3 != "" {
				want = test.resp3
			}
			if got := eval(e, &fakeHost{}, resp3, test.script, "k", "|", "a", "b"); got != want {
				t.Errorf("%s, resp3 %v: %q, want %q", test.script, resp3, got, want)
			}
		}
	}
}

// The replies of commands, as a script sees them.
func TestCommandReplies(t *testing.T) {
	const describe = `local function show(v)
  if type(v) ~= 'table' then return type(v) .. ':' .. tostring(v) end
  local names = {}
  for k in pairs(v) do names[#names+1] = tostring(k) end
  table.sort(names)
  for i, name in ipairs(names) do
    local item = v[name]
    if item == nil then item = v[tonumber(name)] end
    names[i] = name .. '=' .. show(item)
  end
  return '{' .. table.concat(names, ',') .. '}'
end
return show(redis.pcall('X'))`
	e := NewEngine()
	for reply, want := range map[string]string{
		":5\r\n":  "number:5",
		":-1\r\n": "number:-1",
		"*4\r\n:-2\r\n:98\r\n:99\r\n:-9223372036854775808\r\n": "{1=number:-2,2=number:98,3=number:99,4=number:-9.2233720368548e+18}",
		"$2\r\nhi\r\n":                    "string:hi",
		"$-1\r\n":                         "boolean:false",
		"*-1\r\n":                         "boolean:false",
		"*0\r\n":                          "{}",
		"*2\r\n:1\r\n*1\r\n$1\r\na\r\n":   "{1=number:1,2={1=string:a}}",
		"*2\r\n$-1\r\n:1\r\n":             "{1=boolean:false,2=number:1}",
		"+OK\r\n":                         "{ok=string:OK}",
		"-WRONG type\r\n":                 "{err=string:WRONG type,ignore_error_stats_update=boolean:true}",
		"_\r\n":                           "nil:nil",
		"#t\r\n":                          "boolean:true",
		"#f\r\n":                          "boolean:false",
		",1.5\r\n":                        "{double=number:1.5}",
		"%1\r\n+a\r\n:1\r\n":              "", // a table is its key
		"%1\r\n$1\r\na\r\n:1\r\n":         "{map={a=number:1}}",
		"~2\r\n$1\r\na\r\n$1\r\nb\r\n":    "{set={a=boolean:true,b=boolean:true}}",
		"=6\r\ntxt:hi\r\n":                "{verbatim_string={format=string:txt,string=string:hi}}",
		"*2\r\n_\r\n:1\r\n":               "{2=number:1}",
		"$6\r\na\r\n:1\x00\r\n":           "string:a\r\n:1\x00",
		"*1\r\n-ERR inner\r\n":            "{1={err=string:ERR inner,ignore_error_stats_update=boolean:true}}",
		"*3\r\n*-1\r\n$0\r\n\r\n+X Y\r\n": "{1=boolean:false,2=string:,3={ok=string:X Y}}",
	} {
		got := eval(e, &fakeHost{answer: replyOf(reply)}, false, describe)
		if text := fmt.Sprintf("$%d\r\n%s\r\n", len(want), want); want != "" && got != text {
			t.Errorf("%q: %q, want %q", reply, got, text)
		}
	}
}

// A reply that is passed on is the same bytes again.
func TestRepliesPassThrough(t *testing.T) {
	e := NewEngine()
	for _, reply := range []string{":5\r\n", "$2\r\nhi\r\n", "+OK\r\n", "-ERR no\r\n", "*3\r\n:0\r\n$1\r\na\r\n*1\r\n+X\r\n", "$-1\r\n"} {
		if got := eval(e, &fakeHost{answer: replyOf(reply)}, false, "return redis.pcall('X')"); got != reply {
			t.Errorf("%q became %q", reply, got)
		}
	}
	for _, reply := range []string{"#t\r\n", "#f\r\n", "_\r\n", ",1.5\r\n", "%1\r\n$1\r\na\r\n,2\r\n", "~1\r\n:1\r\n", "=6\r\ntxt:hi\r\n"} {
		host := &fakeHost{answer: replyOf(reply)}
		if got := eval(e, host, true, "redis.setresp(3) return redis.call('X')"); got != reply || host.protocol != 3 {
			t.Errorf("%q became %q, protocol %d", reply, got, host.protocol)
		}
	}
}

// A call's arguments are strings and numbers.
func TestArguments(t *testing.T) {
	e := NewEngine()
	for script, want := range map[string]string{
		"redis.call('A', 1, 1.5, -0, 1e15, 1e17, 2^53, 0.1, 1e300)": "A 1 1.5 -0 1000000000000000 1e+17 9007199254740992 0.10000000000000001 1.0000000000000001e+300",
		"redis.call('A', '', 'b c', '\\0')":                         "A  b c \x00",
		"redis.call('A', unpack(ARGV))":                             "A x y",
		"redis.call(KEYS[1])":                                       "k",
	} {
		host := &fakeHost{}
		if eval(e, host, false, script, "k", "|", "x", "y"); len(host.calls) != 1 || host.calls[0] != want {
			t.Errorf("%s: %q, want %q", script, host.calls, want)
		}
	}
	for _, args := range []string{"", "{}", "'a', {}", "'a', nil", "'a', true", "print"} {
		host := &fakeHost{}
		got := eval(e, host, false, "return redis.pcall("+args+")")
		if len(host.calls) != 0 || !strings.HasPrefix(got, "-ERR ") && !strings.HasPrefix(got, "-ERR Script attempted") {
			t.Errorf("redis.pcall(%s): %q, calls %q", args, got, host.calls)
		}
	}
}

// The error that ends a script says where that was.
// An error of the compiler says where.
func TestShebang(t *testing.T) {
	e := NewEngine()
	for script, want := range map[string]string{
		"#!lua\nreturn 1":                         ":1\r\n",
		"#!lua flags=no-writes\nreturn 1":         ":1\r\n",
		"#!lua flags=no-writes,allow-oom\n":       "$-1\r\n",
		"#!lua flags=\nreturn 1":                  ":1\r\n",
		"#!lua name=x\nreturn 1":                  "-ERR Unknown lua shebang option: name=x\r\n",
		"#!lua flags=bad\nreturn 1":               "-ERR Unexpected flag in script shebang: bad\r\n",
		"#!js\nreturn 1":                          "-ERR Unexpected engine in script shebang: #!js\r\n",
		"#!lua":                                   "-ERR Invalid script shebang\r\n",
		"#!\nreturn 1":                            "-ERR Unexpected engine in script shebang: #!\r\n",
		"#!lua flags=no-writes\n\nreturn redis.x": "$-1\r\n",
	} {
		if got := eval(e, &fakeHost{}, false, script); got != want {
			t.Errorf("%q: %q, want %q", script, got, want)
		}
	}
	if s, err := e.Load([]byte("#!lua flags=no-writes\nreturn 1")); err != nil || !s.ReadOnly {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := e.Load([]byte("#!lua\nreturn 1")); err != nil || s.ReadOnly {
		t.Errorf("%+v, %v", s, err)
	}
	script := "#!lua\nerror('boom')"
	if got, want := eval(e, &fakeHost{}, false, script), errorReplyOf(script, "ERR user_script:2: boom", 2); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// redis.log leaves out what is neither a text nor a number.
func TestLog(t *testing.T) {
	host := &fakeHost{}
	eval(NewEngine(), host, false, "redis.log(redis.LOG_WARNING, 'a', 1, {}, 'b') redis.log(0, '')")
	if got := fmt.Sprintf("%q", host.log); got != `["3 a 1 b" "0 "]` {
		t.Error(got)
	}
}

// Nothing that a script does is seen by the next.
func TestNothingLeaks(t *testing.T) {
	const look = `local seen = {}
for _, lib in ipairs({'string', 'table', 'math', 'redis'}) do
  for _, name in ipairs({'x', 'format', 'insert', 'abs', 'call', 'sub'}) do seen[#seen+1] = tostring(_G[lib][name]) end
end
for _, name in ipairs({'pcall', 'tostring', 'type', 'redis', 'string'}) do seen[#seen+1] = tostring(_G[name]) end
seen[#seen+1] = tostring(pcall(function() return x end))
seen[#seen+1] = tostring(rawget(_G, 'x')) .. tostring(rawget(string, 'x')) .. tostring(rawget(redis, 'x'))
seen[#seen+1] = tostring(getmetatable(_G)) .. tostring(getmetatable('')) .. tostring(getmetatable(redis))
seen[#seen+1] = tostring(next(_G)) .. tostring(next(string)) .. tostring(#table) .. tostring(('x').y)
return table.concat(seen, ' ')`
	targets := []string{"_G", "string", "table", "math", "redis"}
	var scripts []string
	for _, target := range targets {
		for _, change := range []string{"T.x = 1", "T['x'] = 1", "local k = 'x' T[k] = 1", "T.format = 1", "T.pcall = nil",
			"T.insert, T.call = 1, 2", "local k = 'call' T[k], T.sub = nil, nil", "rawset(T, 'x', 1)", "rawset(T, 'format', nil)",
			"setmetatable(T, {})", "setmetatable(T, nil)", "table.insert(T, 1)", "table.insert(T, 1, 1)", "table.remove(T)",
			"table.remove(T, 1)", "table.sort(T)", "_G['(fill)'](T, 'x', 1)", "_G['(fill)'](T, 'format', 1)", "_G['(set)'](T, 'x', 1)",
			"_G['(concat)'](T, T)", "function T.x() end", "function T:format() end", "for k, v in pairs(T) do T[k] = 1 end",
			"local m = getmetatable(T) m.__index = {}", "local m = getmetatable(T) m.__newindex = nil T.x = 1", "T.__index = {}",
			"table.foreach({T}, function(_, t) t.x = 1 end)", "xpcall(function() T.x = 1 end, print)", "loadstring('T.x = 1')()",
			"load(function() return nil end)() T.x = 1",
			"string.gsub('x', 'x', function() T.x = 1 end)", "setmetatable({}, {__index = T, __newindex = T}).x = 1",
			"rawset(setmetatable({}, {__index = T}), 'x', 1)"} {
			scripts = append(scripts, strings.ReplaceAll(change, "T", target))
		}
	}
	scripts = append(scripts, "x = 1", "function x() end", "x, y = 1, 2", "KEYS = 1", "ARGV.x = 1", "KEYS.x = 1", "string = nil",
		"getmetatable('').__index = {}", "setmetatable('', {})", "local m = getmetatable('') m.__index = nil",
		"redis.setresp(3)", "collectgarbage('stop')", "math.randomseed(1)", "redis.set_repl(0)", "redis.replicate_commands()",
		"redis.breakpoint()")
	e := NewEngine()
	want := eval(e, &fakeHost{}, false, look)
	if strings.HasPrefix(want, "-") {
		t.Fatal(want)
	}
	for _, script := range scripts {
		for _, form := range []string{"%s", "pcall(function() %s end)"} {
			script := fmt.Sprintf(form, script)
			eval(e, &fakeHost{}, false, script, "k", "|", "a")
			if got := eval(e, &fakeHost{}, false, look); got != want {
				t.Errorf("after %s:\n%s\nbefore:\n%s", script, got, want)
				e = NewEngine()
				want = eval(e, &fakeHost{}, false, look)
			}
		}
	}
	got := eval(e, &fakeHost{}, false, "return {#KEYS, #ARGV, tostring(KEYS.x), tostring(ARGV.x)}")
	if got != "*4\r\n:0\r\n:0\r\n$3\r\nnil\r\n$3\r\nnil\r\n" {
		t.Error(got)
	}
}

// Functions that could reach files, the system or other scripts do not exist.
func TestSandbox(t *testing.T) {
	e := NewEngine()
	for _, name := range []string{
		"os", "io", "package", "require", "module", "dofile", "loadfile", "print", "debug", "coroutine", "setfenv", "getfenv", "newproxy",
		"_printregs", "channel", "goto",
	} {
		got := eval(e, &fakeHost{}, false, "return type(_G['"+name+"'])")
		if !strings.Contains(got, "Script attempted to access nonexistent global variable '"+name+"'") {
			t.Errorf("%s: %q", name, got)
		}
	}
	got := eval(e, &fakeHost{}, false, "return {tostring(string.dump), tostring(table.unpack), tostring(math.randomx)}")
	if got != "*3\r\n"+strings.Repeat("$3\r\nnil\r\n", 3) {
		t.Error(got)
	}
}

func TestCache(t *testing.T) {
	e := NewEngine()
	first, err := e.Load([]byte("return 1"))
	if err != nil || first.SHA != "e0e1f9fabfc9d4800c877a703b823ac0578ff8db" {
		t.Fatal(first, err)
	}
	if s, ok := e.Get(strings.ToUpper(first.SHA)); !ok || s != first {
		t.Error("not found in upper case")
	}
	if again, _ := e.Load([]byte("return 1")); again != first {
		t.Error("compiled again")
	}
	if !e.Has(strings.ToUpper(first.SHA)) || e.Has("e0") || e.Has("") {
		t.Error("Has")
	}
	for i := range 3 * cachedBytes / perScript {
		if _, err := e.Load(fmt.Appendf(nil, "return %d", i+2)); err != nil {
			t.Fatal(err)
		}
		if i%100 == 0 {
			if _, ok := e.Get(first.SHA); !ok {
				t.Fatal("what was used was forgotten before what was not")
			}
		}
		if n, bytes := e.Kept(); bytes > cachedBytes || n > cachedBytes/perScript {
			t.Fatal(n, "scripts of", bytes, "bytes")
		}
	}
	for i := range 40 {
		if _, err := e.Load([]byte("return " + strconv.Itoa(i) + strings.Repeat(" ", MaxScript-20))); err != nil {
			t.Fatal(err)
		}
		if n, bytes := e.Kept(); bytes > cachedBytes {
			t.Fatal(n, "scripts of", bytes, "bytes")
		}
	}
	if n, _ := e.Kept(); n != cachedBytes/(MaxScript+perScript-20+len("return 1")) {
		t.Log(n, "large scripts are kept")
	}
	e.Flush()
	if n, bytes := e.Kept(); n != 0 || bytes != 0 || e.Has(first.SHA) {
		t.Error(n, "scripts of", bytes, "bytes after a flush")
	}
	got := eval(e, &fakeHost{}, false, "--"+strings.Repeat("x", MaxScript))
	if !strings.HasPrefix(got, "-ERR Error compiling script (new function): user_script:1: the script has more than") {
		t.Error(got)
	}
}

// A panic of a command ends the script, also where it catches errors, and leaves an engine that works.
