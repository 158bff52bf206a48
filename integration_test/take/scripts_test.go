package take

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"celld/integration_test/harness"
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

// TestScriptsAreAtomic starts many clients that run a script on two keys, in either order, beside clients that take from each of the
// keys alone. A script takes from what it saw, and each key lets through exactly its limit.
func TestScriptsAreAtomic(t *testing.T) {
	t.Parallel()
	srv := harness.StartStress(t, "--io-threads", "4")
	const burst, callsEach = 300, 60
	var both, a, b atomic.Int64
	var clients sync.WaitGroup
	for i := range 16 {
		c := harness.Dial(t, srv.Addr)
		clients.Go(func() {
			for range callsEach {
				switch i % 4 {
				case 0, 1:
					first, second := "a", "b"
					if i%4 == 1 {
						first, second = second, first
					}
					switch got := c.Do("EVAL", bothOrNone, "2", first, second, strconv.Itoa(burst-1)); got {
					case ":1\r\n":
						both.Add(1)
					case ":0\r\n":
					default:
						t.Errorf("the script: %q", got)
						return
					}
				case 2:
					a.Add(1 - c.Throttle("a", strconv.Itoa(burst-1), "1", "1000000")[0])
				default:
					b.Add(1 - c.Throttle("b", strconv.Itoa(burst-1), "1", "1000000")[0])
				}
			}
		})
	}
	clients.Wait()
	c := harness.Dial(t, srv.Addr)
	for key, passed := range map[string]int64{"a": both.Load() + a.Load(), "b": both.Load() + b.Load()} {
		if left := c.Throttle(key, strconv.Itoa(burst-1), "1", "1000000", "0")[2]; passed+left != burst {
			t.Errorf("key %s: %d passed and %d are left, of %d", key, passed, left, burst)
		}
	}
	if both.Load() == 0 || a.Load() == 0 || b.Load() == 0 || both.Load()+a.Load() < burst {
		t.Errorf("%d of both, %d of a, %d of b: the keys were not used up by all", both.Load(), a.Load(), b.Load())
	}
}

// TestScriptsSeeLimits reads a key of CL.TAKE in a script: a list of names and states, with RESP3 a map.
func TestScriptsSeeLimits(t *testing.T) {
	t.Parallel()
	c := harness.Dial(t, harness.Start(t).Addr)
	for _, hello := range []string{"2", "3"} {
		c.Do("HELLO", hello)
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
			if got := c.Do("EVAL", step[0], "1", "k"); got != step[1] {
				t.Errorf("HELLO %s, %s\n got %q\nwant %q", hello, step[0], got, step[1])
			}
		}
	}
}
