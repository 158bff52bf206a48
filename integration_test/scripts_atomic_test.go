package integration_test

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// bothOrNone takes one from the limits of both keys, or from none: it looks at both first.
const bothOrNone = `
for _, key in ipairs(KEYS) do
	if redis.call('CL.THROTTLE', key, ARGV[1], 1, 1000000, 0)[3] < 1 then return 0 end
end
for _, key in ipairs(KEYS) do
	if redis.call('CL.THROTTLE', key, ARGV[1], 1, 1000000)[1] == 1 then return redis.error_reply('TORN ' .. key) end
end
return 1`

// TestScriptsAreAtomic has many clients run a script on two keys, in either order, beside clients that take from each of the
// keys alone. What a script has seen while it looked is there when it takes, and each key lets through what it has.
func TestScriptsAreAtomic(t *testing.T) {
	t.Parallel()
	srv := startStress(t, "--io-threads", "4")
	const burst, callsEach = 300, 60
	var both, a, b atomic.Int64
	var clients sync.WaitGroup
	for i := range 16 {
		c := dial(t, srv.addr)
		clients.Go(func() {
			for range callsEach {
				switch i % 4 {
				case 0, 1:
					first, second := "a", "b"
					if i%4 == 1 {
						first, second = second, first
					}
					switch got := c.do("EVAL", bothOrNone, "2", first, second, strconv.Itoa(burst-1)); got {
					case ":1\r\n":
						both.Add(1)
					case ":0\r\n":
					default:
						t.Errorf("the script: %q", got)
						return
					}
				case 2:
					a.Add(1 - c.throttle("a", strconv.Itoa(burst-1), "1", "1000000")[0])
				default:
					b.Add(1 - c.throttle("b", strconv.Itoa(burst-1), "1", "1000000")[0])
				}
			}
		})
	}
	clients.Wait()
	c := dial(t, srv.addr)
	for key, passed := range map[string]int64{"a": both.Load() + a.Load(), "b": both.Load() + b.Load()} {
		if left := c.throttle(key, strconv.Itoa(burst-1), "1", "1000000", "0")[2]; passed+left != burst {
			t.Errorf("key %s: %d passed and %d are left, of %d", key, passed, left, burst)
		}
	}
	if both.Load() == 0 || a.Load() == 0 || b.Load() == 0 || both.Load()+a.Load() < burst {
		t.Errorf("%d of both, %d of a, %d of b: the keys were not used up by all", both.Load(), a.Load(), b.Load())
	}
}

// TestScriptsOutliveRestart starts celld again after scripts have written, also where one has failed halfway.
func TestScriptsOutliveRestart(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{{"--appendonly", "yes", "--appendfsync", "always"}, {"--appendonly", "yes"}, {"--save", "3600 1"}} {
		dir := t.TempDir()
		srv := startOn(t, dir, flags...)
		c := dial(t, srv.addr)
		for _, call := range [][]string{
			{"EVAL", throttleScript, "1", "throttled", "15", "30", "6000"},
			{"EVAL", "for i = 1, 100 do redis.call('CL.THROTTLE', 'many:' .. i, 15, 30, 6000 + i) end", "0"},
			{"EVAL", "redis.call('SET', KEYS[1], '9000000000000000000', 'PXAT', '9000000000000') redis.call('SET', KEYS[2], '9000000000000000001') redis.call('DEL', KEYS[2])", "2", "set", "deleted"},
			{"EVAL", "redis.call('SET', KEYS[1], '9000000000000000002') redis.call('RENAME', KEYS[1], KEYS[2]) redis.call('PEXPIRE', KEYS[2], 90000000)", "2", "old", "new"},
		} {
			if got := c.do(call...); strings.HasPrefix(got, "-") {
				t.Fatalf("%q: %q", call, got)
			}
		}
		if got := c.do("EVAL", "redis.call('SET', KEYS[1], '9000000000000000003') error('halfway')", "1", "halfway"); !strings.HasPrefix(got, "-ERR user_script:1: halfway") {
			t.Fatalf("a script that fails: %q", got)
		}
		c.do("CL.TAKE", "limits", "5/1h,algo=log")
		if got := c.do("EVAL", "return redis.call('CL.TAKE', KEYS[1], '5/1h,algo=log')[3]", "1", "limits"); got != ":3\r\n" {
			t.Fatalf("CL.TAKE in a script: %q", got)
		}
		c.do("MULTI")
		c.do("EVAL", throttleScript, "1", "in a transaction", "15", "30", "6000")
		c.do("EXEC")
		want := c.states()
		delete(want, "limits")
		if len(want) != 105 {
			t.Errorf("%q: %d keys", flags, len(want))
		}
		srv.end()

		c = dial(t, startOn(t, dir, flags...).addr)
		loaded(c)
		if got := c.do("CL.TAKE", "limits", "5/1h,algo=log", "PEEK"); !strings.HasPrefix(got, "*7\r\n:0\r\n:5\r\n:3\r\n") {
			t.Errorf("%q: CL.TAKE's key after a restart: %q", flags, got)
		}
		if got := c.do("EVALSHA", digest(throttleScript), "1", "throttled", "15", "30", "6000"); got != "-NOSCRIPT No matching script. Please use EVAL.\r\n" {
			t.Errorf("%q: a script after a restart: %q", flags, got)
		}
		got := c.states()
		delete(got, "limits")
		same(t, strings.Join(flags, " "), got, want)
	}
}

// TestScriptsSeeLimits reads a key of CL.TAKE in a script: a list of names and states, with RESP3 a map.
func TestScriptsSeeLimits(t *testing.T) {
	t.Parallel()
	c := dial(t, start(t).addr)
	for _, hello := range []string{"2", "3"} {
		c.do("HELLO", hello)
		for _, step := range [][2]string{
			{`return redis.call('DEL', KEYS[1]) >= 0`, ":1\r\n"},
			{`return redis.call('CL.TAKE', KEYS[1], '10/1h', '5/1d,algo=window', 'COST', 2)`, "*7\r\n:0\r\n:5\r\n:3\r\n:-1\r\n:86400000\r\n:2\r\n:0\r\n"},
			{`return redis.call('CL.TAKE', KEYS[1], '10/1h', '5/1d,algo=window', 'COST', 4)[1]`, ":1\r\n"},
			{`return redis.call('TYPE', KEYS[1]).ok`, "$4\r\nhash\r\n"},
			{`local r = redis.call('HGETALL', KEYS[1]) return {#r, type(r[1]), type(r[2])}`, "*3\r\n:4\r\n$6\r\nstring\r\n$6\r\nstring\r\n"},
			{`redis.setresp(3) local n, r = 0, redis.call('HGETALL', KEYS[1]) for limit, state in pairs(r.map) do n = n + 1 end return {n, #r}`, "*2\r\n:2\r\n:0\r\n"},
			{`return redis.call('HLEN', KEYS[1])`, ":2\r\n"},
			{`return redis.call('CL.GIVE', KEYS[1], '10/1h', 1)`, ":1\r\n"},
			{`return redis.pcall('CL.THROTTLE', KEYS[1], 15, 30, 60)`, "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"},
			{`return redis.pcall('CL.TAKE', KEYS[1], '@nosuch')`, "-NOPOLICY no such policy 'nosuch'\r\n"},
			{`local r = redis.call('CL.MTAKE', 2, KEYS[1], '10/1h', KEYS[1], '10/1h') return {r[1][1], #r}`, "*2\r\n:0\r\n:3\r\n"},
		} {
			if got := c.do("EVAL", step[0], "1", "k"); got != step[1] {
				t.Errorf("HELLO %s, %s\n got %q\nwant %q", hello, step[0], got, step[1])
			}
		}
	}
}
