package session

import (
	"strconv"
	"strings"
	"testing"

	"celld/resp/script"
	"celld/resp/session/sessiontest"
)

// fuzzForms are what commands look like. A letter alone is drawn from fuzzWords; PASS has time pass.
var fuzzForms = strings.Split(`PASS T
CL.THROTTLE K N N N
CL.THROTTLE K N N N N
CL.THROTTLE K R
CL.THROTTLE K R N
CL.TAKE K L
CL.TAKE K L O
CL.TAKE K L COST N O O
CL.TAKE K L L R COST N O
CL.MTAKE 2 K L K L
CL.MTAKE 3 K L K R K2 L COST N O
CL.TAKE K L W N O
CL.TAKE K L L O W N W N
CL.TAKE K B LEASE N BIND ID K
CL.TAKE K L RESERVE N W N W N O
CL.MTAKE 2 K L K2 L W N W N O
CL.RENEW K N N
CL.RELEASE K N
CL.SETTLE K N N
CLIENT UNBLOCK N
CLIENT UNBLOCK N W
CL.GIVE K L N
CL.POLICY SET P L
CL.POLICY SET P L RESET
CL.POLICY GET P
CL.POLICY DEL P
CL.POLICY LIST G
CL.RULE ADD A G
CL.RULE ADD A G EX N
CL.RULE ADD A ip: CIDR 10.0.0.0/8
CL.RULE DEL A G
CL.RULE LIST G
CL.RESET K K
CL.TOP N P
CL.TOP P
CL.TOP RESET
CL.TOP RESET N
CL.STATS
CL.STATS P
CL.STATS RESET
CL.STATS P O
SET K N O
SET K N PX N GET
GET K
STRLEN K
HGETALL K
HLEN K
HSET K F S
HSET K F S F S
DEL K K
EXISTS K K K
TYPE K
TOUCH K
RENAME K K
KEYS G
SCAN N COUNT N
SCAN 0 MATCH G COUNT N
OBJECT ENCODING K
OBJECT IDLETIME K
TTL K
PTTL K
EXPIRETIME K
EXPIRE K N O
PEXPIRE K N O
EXPIREAT K N
PEXPIREAT K N O
PERSIST K
MULTI
EXEC
DISCARD
WATCH K K
UNWATCH
HELLO 3
HELLO 2
RESET
FLUSHALL
DBSIZE
COMMAND GETKEYS CL.MTAKE 2 K L K L
COMMAND INFO O
CONFIG SET C N
CONFIG SET C N C N
CONFIG GET C
SLOWLOG LEN
ECHO O
SETNX K N
GETSET K N
GETDEL K
GETEX K
GETEX K X N
GETEX K PERSIST
RENAMENX K K
COPY K K
COPY K K REPLACE
COPY K K DB N
MEMORY USAGE K
MEMORY USAGE K SAMPLES N
EVAL Z 1 K L
EVAL Z 2 K K N
EVAL Z N K O
EVAL_RO Z 1 K L
EVALSHA H 1 K N
EVALSHA_RO H 1 K N
SCRIPT LOAD Z
SCRIPT EXISTS H H
SCRIPT FLUSH
SCRIPT KILL
CL.SHOW K
CL.EXPLAIN K L R COST N`, "\n")

var fuzzWords = map[string][]string{
	"K": {"k", "l", "", "ip:10.1.2.3", "k\r\n\x00", strings.Repeat("x", 300), "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "m", "n"},
	"L": {"5/1h", "1/1s", "10/1m,burst=3", "5/1h,algo=window", "5/1d,algo=window,align=clock,tz=-03:30", "90/month", "5/1s,algo=slide",
		"6/1h,algo=slide,buckets=7", "5/1h,algo=log", "90/3h,algo=log,block=500ms", "5/2h,block=1m", "5/1h,shadow", "0/1s",
		"5/1s,", "@p", "@q"},
	"W": {"WAIT", "RESERVE", "LEASE", "ID", "COST", "BIND", "TIMEOUT", "ERROR"},
	"B": {"5/1h", "2/1s", "3/10s,algo=window", "@p"},
	"R": {"@p", "@q", "@nosuch", "@"},
	"P": {"p", "q", "a:b", ""},
	"A": {"ALLOW", "DENY", "NOSUCH"},
	"G": {"*", "k*", "[", "?", "x*", "\\", "[^a-c]*"},
	"N": {"0", "1", "2", "5", "9", "60", "1000", "-1", "-5", "9223372036854775807", "-9223372036854775808", "18446744073709551615",
		"1790000009000000000", "1790000009", "x", "1.5", "1kb", "", "4294967296", "2147483647"},
	"O": {"PEEK", "UPTO", "FORCE", "US", "FULL", "NX", "XX", "GT", "LT", "GET", "KEEPTTL", "COST", "EX", "nosuch"},
	"F": {"gcra/1h", "gcra/1s", "log/1h", "window/1h", "slide/1s", "@p", "nosuch"},
	"S": {"limit=5/1h tat=1790000009000000000", "limit=5/1s,algo=window start=1790000000000000000 used=3", "limit=5/1h,algo=log", "x"},
	"C": {"max-keys", "maxmemory", "maxmemory-policy", "timeout", "slowlog-log-slower-than", "slowlog-max-len", "log-max", "client-output-buffer-limit", "nosuch", "*"},
	"X": {"EX", "PX", "EXAT", "PXAT", "PERSIST", "nosuch"},
	"D": {"1", "60", "0.5", "1e-9", "0x1p3", "0", "-1", "1e12", "999999999999", "1e999", "inf", "nan", "x", ""},
	"Z": {"return 1", "return redis.call('CL.THROTTLE', KEYS[1], 3, 5, 60)", "return redis.pcall('CL.TAKE', KEYS[1], ARGV[1])",
		"redis.call('SET', KEYS[1], ARGV[1]) return redis.call('GET', KEYS[1])", "redis.setresp(3) return redis.call('HGETALL', KEYS[1])",
		"return {redis.pcall(ARGV[1]), KEYS[1], 1.5, false, {ok = 'x'}, {err = 'MY x'}}",
		"redis.call('RENAME', KEYS[1], KEYS[2]) redis.call('COPY', KEYS[2], KEYS[1])",
		"#!lua flags=no-writes\nreturn redis.call('DEL', KEYS[1])",
		"local n = 0 for i = 1, 300 do if redis.pcall('CL.TAKE', KEYS[1], '90/1h')[1] == 0 then n = n + 1 end end return n",
		"redis.call('GETDEL', KEYS[1]) redis.call(ARGV[1], KEYS[1])", "return redis.call('MULTI')", "local e = redis.pcall('TTL') error(e)",
		"return redis.call('CL.MTAKE', 2, KEYS[1], ARGV[1], 'l', '9/1h', 'US')", "return (", "error()", ""},
	"H": {script.SHA1([]byte("return 1")), strings.ToUpper(script.SHA1([]byte("return redis.call('CL.THROTTLE', KEYS[1], 3, 5, 60)"))), script.SHA1(nil), "x"},
	"T": {"1", "999999", "1000000000", "60000000000", "3600000000000", "100000000000000"},
}

// fuzzProgram reads a program: a byte for each form, and one for each word to be drawn.
func fuzzProgram(program []byte) (commands [][]string) {
	next := func(n int) int {
		b := program[0]
		program = program[1:]
		return int(b) % n
	}
	for len(program) > 0 && len(commands) < 100 {
		words := strings.Fields(fuzzForms[next(len(fuzzForms))])
		for i, word := range words {
			if list := fuzzWords[word]; list != nil && len(program) > 0 {
				words[i] = list[next(len(list))]
			}
		}
		commands = append(commands, words)
	}
	return commands
}

// FuzzCommands sends deep commands where FuzzSession sends any bytes: each is answered by one whole reply, and a pipeline is
// answered as its commands are one by one.
func FuzzCommands(f *testing.F) {
	for i := range fuzzForms {
		f.Add([]byte{byte(i), 0, 0, 0, 0, 0, 5, 0, 0, byte(i), 1, 1, 1, 1, 1})
		f.Add([]byte{5, 0, byte(i), byte(i), 0, byte(i), 0, 0, 0, 0, 27, 0})
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, program []byte) {
		commands := fuzzProgram(program)
		w, c, other := fuzzWorld(t, dir)
		v, d, another := fuzzWorld(t, dir)
		pipeline, replies := "", ""
		flush := func() {
			if pipeline == "" { // nothing would be a wake, which asks whether the connection is idle
				return
			}
			if got := d.send(pipeline); got != replies {
				t.Fatalf("%q\nin a pipeline %q\none by one    %q", commands, got, replies)
			}
			pipeline, replies = "", ""
		}
		for _, words := range commands {
			if words[0] == "PASS" {
				flush()
				ns, _ := strconv.ParseInt(words[1], 10, 64)
				w.nowNS += ns
				v.nowNS += ns
				continue
			}
			if c.end != open {
				break
			}
			reply := c.do(words...)
			if rest, ok := skipReply(reply); !ok || rest != "" {
				t.Fatalf("%q\n%q is answered by %q", commands, words, reply)
			}
			pipeline += sessiontest.Frame(words...)
			replies += reply
		}
		flush()
		w.holds(t, other)
		v.holds(t, another)
	})
}

// skipReply returns what follows a whole reply of RESP2 or RESP3.
func skipReply(raw string) (rest string, ok bool) {
	line, rest, ok := strings.Cut(raw, "\r\n")
	if !ok || line == "" || strings.Contains(line, "\n") {
		return rest, false
	}
	n, err := strconv.Atoi(line[1:])
	switch line[0] {
	case '+', '-', ',', '(':
		return rest, true
	case '_':
		return rest, line == "_"
	case '#':
		return rest, line == "#t" || line == "#f"
	case ':':
		return rest, err == nil || len(line) > 18 // a TAT may be past an int64
	case '$', '=':
		if n == -1 {
			return rest, true
		}
		if err != nil || n < 0 || len(rest) < n+2 || rest[n:n+2] != "\r\n" {
			return rest, false
		}
		return rest[n+2:], true
	case '%':
		n *= 2
	case '*', '~', '>':
	default:
		return rest, false
	}
	if err != nil || n < -1 {
		return rest, false
	}
	for ok = true; n > 0 && ok; n-- {
		rest, ok = skipReply(rest)
	}
	return rest, ok
}
