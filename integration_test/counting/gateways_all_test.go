//go:build all

package counting

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// A transcript is a connection with all that was asked and answered on it.
type transcript struct {
	*harness.Conn
	asked []exchange
}

type exchange struct {
	command, reply string
	within         int64 // the number at the reply's end may be off by this much
}

func (x *transcript) ask(words ...string) string { x.T.Helper(); return x.pipe(words)[0] }

// timed asks for a reply that ends with a time, which may be off by this much.
func (x *transcript) timed(within int64, words ...string) string {
	x.T.Helper()
	reply := x.ask(words...)
	x.asked[len(x.asked)-1].within = within
	return reply
}

// pipe sends commands in one packet, and reads all replies.
func (x *transcript) pipe(commands ...[]string) (replies []string) {
	x.T.Helper()
	var packet []byte
	for _, words := range commands {
		packet = append(packet, harness.Frame(words...)...)
	}
	x.Send(packet)
	for _, words := range commands {
		reply := x.Reply()
		replies = append(replies, reply)
		x.asked = append(x.asked, exchange{command: strings.Join(words, " "), reply: reply})
	}
	return replies
}

// gone waits until a key has expired.
func (x *transcript) gone(key string) {
	x.T.Helper()
	celldtest.Eventually(x.T, key+" expires", func() bool { return x.Do("EXISTS", key) == ":0\r\n" })
}

// compare lets a gateway ask celld and redis-server. Its calls must be decided as wanted, a word each, and all replies be the same.
func compare(t *testing.T, want string, gateway func(x *transcript) (decided []string)) {
	t.Helper()
	celldtest.Need(t, "redis-server")
	celld := &transcript{Conn: harness.Dial(t, harness.Start(t).Addr)}
	redis := &transcript{Conn: harness.Dial(t, celldtest.StartRedis(t))}
	for name, x := range map[string]*transcript{"celld": celld, "redis-server": redis} {
		if decided := strings.Join(gateway(x), " "); decided != want {
			t.Errorf("%s: %s\nwant %s", name, decided, want)
		}
	}
	for i, asked := range celld.asked {
		if i >= len(redis.asked) || redis.asked[i].command != asked.command {
			t.Fatalf("only celld was asked: %s", asked.command)
		}
		if other := redis.asked[i].reply; !asked.same(other) {
			t.Errorf("%s\ncelld        %q\nredis-server %q", asked.command, asked.reply, other)
		}
	}
	if len(redis.asked) != len(celld.asked) {
		t.Errorf("%d commands to celld, %d to redis-server", len(celld.asked), len(redis.asked))
	}
}

func (e exchange) same(other string) bool {
	if e.reply == other {
		return true
	}
	head, last := cutLast(e.reply)
	otherHead, otherLast := cutLast(other)
	return head == otherHead && last > 0 && otherLast > 0 && max(last-otherLast, otherLast-last) <= e.within
}

// cutLast cuts the last line off, an integer, or 0.
func cutLast(reply string) (head string, last int64) {
	i := strings.LastIndex(strings.TrimSuffix(reply, "\r\n"), "\n") + 1
	n, _ := strconv.ParseInt(strings.Trim(reply[i:], ":\r\n"), 10, 64)
	return reply[:i], n
}

func decision(passes bool) string {
	if passes {
		return "pass"
	}
	return "deny"
}

// kongUsage is what Kong's policy redis asks with since 3.4, for each period of a limit, with sync_rate -1: it counts the call, and says
// how many were before it.
const kongUsage = `
local n = redis.call("incr", KEYS[1])
if n == 1 then redis.call("expire", KEYS[1], ARGV[1]) end
return n - 1`

// kongSync is what it sends for each counter with another sync_rate: what was counted since the last time.
const kongSync = `
local there = redis.call("exists", KEYS[1])
redis.call("incrby", KEYS[1], tonumber(ARGV[1]))
if there == 0 then redis.call("expireat", KEYS[1], ARGV[2]) end`

// kongKey is how Kong names a counter: by route, service, caller, and the period's begin in milliseconds.
func kongKey(caller, begin, period string) string {
	const nobody = "00000000-0000-0000-0000-000000000000"
	return strings.Join([]string{"ratelimit", nobody, "7b1dd42c-1fb8-4d6f-9f0c-3a4ad1f0b5a1", caller, begin, period}, ":")
}

// asks gives a script one key and some arguments.
func asks(script, key string, args ...string) []string {
	return append([]string{"EVAL", script, "1", key}, args...)
}

// TestKong replays Kong's policy redis for 3 calls a minute and 5 an hour, and for 2 a second.
func TestKong(t *testing.T) {
	t.Parallel()
	compare(t, "pass pass pass deny pass deny pass pass deny pass", func(x *transcript) (decided []string) {
		if info, _ := harness.Bulk(x.Do("INFO", "server")); !strings.Contains(info, "\r\nredis_version:") {
			t.Errorf("INFO server: %q", info)
		}
		hour := kongKey("10.0.0.1", "1795816800000", "hour")
		call := func(minute string) {
			used := celldtest.IntReply(x.ask(asks(kongUsage, minute, "60")...))
			usedInHour := celldtest.IntReply(x.ask(asks(kongUsage, hour, "3600")...))
			decided = append(decided, decision(used < 3 && usedInHour < 5))
			x.timed(10, "TTL", minute)
		}
		for range 4 {
			call(kongKey("10.0.0.1", "1795816800000", "minute"))
		}
		for range 2 {
			call(kongKey("10.0.0.1", "1795816860000", "minute"))
		}
		x.timed(10, "TTL", hour)
		second := asks(kongUsage, kongKey("10.0.0.2", "1795816801000", "second"), "1")
		for _, reply := range x.pipe(second, second, second) { // all in one second, however slow the machine is
			decided = append(decided, decision(celldtest.IntReply(reply) < 2))
		}
		x.gone(second[3])
		decided = append(decided, decision(celldtest.IntReply(x.ask(second...)) < 2))
		return decided
	})
}

// TestKongInTurns replays Kong with a sync_rate: each worker asks once for what there is, and then tells from time to time what it
// counted. The call by which it asked is one less to tell.
func TestKongInTurns(t *testing.T) {
	t.Parallel()
	end := strconv.FormatInt(time.Now().Unix()+600, 10)
	compare(t, "pass deny", func(x *transcript) (decided []string) {
		minute, hour := kongKey("route", "1795816800000", "minute"), kongKey("route", "1795816800000", "hour")
		decided = append(decided, decision(celldtest.IntReply(x.ask(asks(kongUsage, minute, "60")...)) < 9))
		x.pipe(asks(kongSync, minute, "0", end), asks(kongSync, hour, "1", end))
		x.pipe(asks(kongSync, minute, "4", end), asks(kongSync, hour, "4", end))
		x.pipe(asks(kongSync, minute, "-1", end), asks(kongSync, hour, "7", end))
		x.pipe(asks(kongSync, minute, "5", end))
		decided = append(decided, decision(celldtest.IntReply(x.ask(asks(kongUsage, minute, "60")...)) < 9))
		for _, key := range []string{minute, hour} {
			x.ask("GET", key)
			x.timed(10, "TTL", key)
		}
		// Kong's ends are periods in milliseconds and their lengths in seconds, in one sum.
		year := kongKey("route", "1767225600000", "year")
		x.pipe(asks(kongSync, year, "3", "1767257136000"))
		x.ask("GET", year)
		if ttl := celldtest.IntReply(x.Do("TTL", year)); ttl < 200*365*86400 {
			t.Errorf("TTL: %d", ttl)
		}
		return decided
	})
}

// TestKongBefore replays Kong 3.3 and older, which asks with GET, and counts what it let pass in a pipeline.
func TestKongBefore(t *testing.T) {
	t.Parallel()
	compare(t, "pass pass pass deny deny pass pass deny", func(x *transcript) (decided []string) {
		call := func(minute, hour string) {
			passes := true
			for _, key := range []string{minute, hour} {
				text, _ := harness.Bulk(x.ask("GET", key))
				used, _ := strconv.Atoi(text)
				passes = passes && used < map[string]int{minute: 3, hour: 5}[key]
			}
			if decided = append(decided, decision(passes)); !passes {
				return
			}
			var counts [][]string
			for _, key := range []string{minute, hour} {
				exists := x.ask("EXISTS", key)
				counts = append(counts, []string{"INCRBY", key, "1"})
				if exists == ":0\r\n" {
					counts = append(counts, []string{"EXPIRE", key, map[string]string{minute: "60", hour: "3600"}[key]})
				}
			}
			x.pipe(counts...)
		}
		hour := kongKey("10.0.0.1", "1795816800000", "hour")
		first, second := kongKey("10.0.0.1", "1795816800000", "minute"), kongKey("10.0.0.1", "1795816860000", "minute")
		for range 5 {
			call(first, hour)
		}
		for range 3 {
			call(second, hour)
		}
		for _, key := range []string{first, second, hour} {
			x.ask("GET", key)
			x.timed(10, "TTL", key)
		}
		return decided
	})
}

// apisixCount is what APISIX 3.18's limit-count sends to redis: it adds a cost in a window that begins with the first call, and says how
// much there is and for how many milliseconds.
const apisixCount = `
assert(tonumber(ARGV[3]) >= 0, "a cost of at least 0, please")
local left = redis.call('pttl', KEYS[1])
if left < 0 then
	redis.call('set', KEYS[1], ARGV[3], 'EX', ARGV[2])
	return {ARGV[3], ARGV[2] * 1000}
end
return {redis.call('incrby', KEYS[1], ARGV[3]), left}`

// apisixLeft is what versions up to 3.17 send: the key holds what is left.
const apisixLeft = `
assert(tonumber(ARGV[3]) >= 1, "a cost of at least 1, please")
local left = redis.call('ttl', KEYS[1])
if left < 0 then
	redis.call('set', KEYS[1], ARGV[1] - ARGV[3], 'EX', ARGV[2])
	return {ARGV[1] - ARGV[3], ARGV[2]}
end
return {redis.call('incrby', KEYS[1], 0 - ARGV[3]), left}`

// apisixSlide is what it sends for a sliding window: a call counts if what was in the window before, weighted, and what is in this one are
// below the limit.
const apisixSlide = `
local cost, limit, size, rest = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local before = math.min(tonumber(ARGV[6]), limit)
local left, here = redis.call('pttl', KEYS[1]), 0
if left >= 0 then here = tonumber(redis.call('get', KEYS[1]) or 0) end
if here >= limit or before / size * rest + here >= limit then return {0, here, before} end
if left < 0 then
	redis.call('set', KEYS[1], cost, 'EX', ARGV[5])
	return {1, cost, before}
end
return {1, redis.call('incrby', KEYS[1], cost), before}`

// apisixTell is what it sends when it tells of calls that it let pass before.
const apisixTell = `
if redis.call('pttl', KEYS[1]) < 0 then
	redis.call('set', KEYS[1], ARGV[1], 'EX', ARGV[2])
	return tonumber(ARGV[1])
end
return redis.call('incrby', KEYS[1], ARGV[1])`

// firstNumber is the first number of an array, written as an integer or as a text.
func firstNumber(t testing.TB, reply string) (n int64) {
	t.Helper()
	lines := strings.Split(reply, "\r\n")
	for _, line := range lines[1:] {
		if strings.HasPrefix(line, "$") {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimPrefix(line, ":"), 10, 64)
		if err != nil {
			break
		}
		return n
	}
	t.Fatalf("no number: %q", reply)
	return 0
}

// TestAPISIX replays limit-count's policy redis: 5 in 10 minutes, by calls that cost 1, 2 or nothing, and 2 a second.
func TestAPISIX(t *testing.T) {
	t.Parallel()
	const key = "limit-count:v2:plugin#route#10.0.0.1"
	compare(t, "pass pass pass pass pass deny deny pass pass deny pass", func(x *transcript) (decided []string) {
		digest := celldtest.Digest(apisixCount)
		call := func(cost string) {
			reply := x.timed(10_000, "EVALSHA", digest, "1", key, "5", "600", cost)
			if strings.HasPrefix(reply, "-NOSCRIPT") {
				reply = x.timed(10_000, asks(apisixCount, key, "5", "600", cost)...)
			}
			decided = append(decided, decision(firstNumber(t, reply) <= 5))
		}
		for _, cost := range []string{"1", "0", "2", "1", "1", "2", "1"} {
			call(cost)
		}
		x.ask("EVALSHA", digest, "1", key, "5", "600", "-1")
		x.ask("GET", key)
		x.timed(10, "TTL", key)
		second := []string{"EVALSHA", digest, "1", "limit-count:v2:brief", "2", "1", "1"}
		replies := x.pipe(second, second, second) // all in one second, however slow the machine is
		for i, reply := range replies {
			x.asked[len(x.asked)-len(replies)+i].within = 1000
			decided = append(decided, decision(firstNumber(t, reply) <= 2))
		}
		x.gone(second[3])
		decided = append(decided, decision(firstNumber(t, x.timed(1000, second...)) <= 2))
		return decided
	})
}

// TestAPISIXBefore replays APISIX up to 3.17, which counts down.
func TestAPISIXBefore(t *testing.T) {
	t.Parallel()
	compare(t, "pass pass pass deny deny", func(x *transcript) (decided []string) {
		const key = "plugin-limit-count" + "route#10.0.0.1"
		for _, cost := range []string{"1", "3", "1", "1", "3"} {
			decided = append(decided, decision(firstNumber(t, x.timed(10, asks(apisixLeft, key, "5", "600", cost)...)) >= 0))
		}
		x.ask(asks(apisixLeft, key, "5", "600", "0")...)
		x.ask("GET", key)
		x.timed(10, "TTL", key)
		return decided
	})
}

// TestAPISIXSliding replays a sliding window of a minute: 4 calls in one, of which the next one still bears a part.
func TestAPISIXSliding(t *testing.T) {
	t.Parallel()
	compare(t, "pass pass pass pass deny deny pass deny pass pass pass", func(x *transcript) (decided []string) {
		digest := celldtest.Digest(apisixSlide)
		key := func(window int) string { return fmt.Sprintf("limit-count:route.%d.counter", 29930280+window) }
		call := func(window int, rest string) {
			last, found := harness.Bulk(x.ask("GET", key(window-1)))
			if !found {
				last = "0"
			}
			args := []string{"1", key(window), "1", "4", "60", rest, "120", last}
			reply := x.ask(append([]string{"EVALSHA", digest}, args...)...)
			if strings.HasPrefix(reply, "-NOSCRIPT") {
				reply = x.ask(append([]string{"EVAL", apisixSlide}, args...)...)
			}
			decided = append(decided, decision(firstNumber(t, reply) == 1))
		}
		for range 5 {
			call(0, "12.345")
		}
		for _, rest := range []string{"60", "59.999", "45", "29.5", "0.25"} {
			call(1, rest)
		}
		for _, told := range []string{"2", "0", "3"} { // what was let pass already
			x.ask(asks(apisixTell, key(2), told, "120")...)
		}
		call(3, "0.5")
		for window := range 4 {
			x.ask("GET", key(window))
			x.timed(10, "TTL", key(window))
		}
		return decided
	})
}
