package peers

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

const (
	migrate  = "../../docs/how-to/migrate.md"
	compared = "README.md"
)

// replacement is what a line of docs/how-to/migrate.md claims: how many calls pass at once, and how long the next one
// waits, in seconds: at most, and if it must, at least.
type replacement struct {
	atOnce      int
	least, most float64
}

// replacements are what the lines of the documentation claim. A bucket's next call waits for one emission interval, that of a window that
// began with the first call for the whole window.
var replacements = map[string]replacement{
	"100/1m,algo=window":             {100, 50, 60},
	"5/1m,algo=window,block=10m":     {5, 590, 600},
	"100/1m,algo=window,block=1m":    {100, 50, 60},
	"10/10s,algo=slide":              {10, 0, 20},
	"10/10s,algo=window,align=clock": {10, 0, 10},
	"5/10s,burst=10":                 {10, 0, 2},
	"100/1m,algo=slide":              {100, 0, 120},
	"100/1m,algo=log":                {100, 50, 60},
	"10/1m":                          {10, 1, 6},
	"10/1m,burst=20":                 {20, 1, 6},
	"1/1s,burst=20":                  {20, 0, 1},
	"100/1h,algo=window":             {100, 3590, 3600},
	"10/1s 20/1h":                    {10, 0, 0.1},
	"10/1m,algo=window":              {10, 50, 60},
	"100/1m,algo=window,align=clock": {100, 0, 60},
}

// TestFromLibraries runs each limit that the documentation gives for another library's.
func TestFromLibraries(t *testing.T) {
	t.Parallel()
	_, table, _ := strings.Cut(celldtest.ReadFile(t, migrate), "\n| library | there | limit for CL.TAKE |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	c, seen := harness.Dial(t, harness.Start(t).Addr), map[string]bool{}
	for _, match := range regexp.MustCompile("(?m)\\| `([0-9][^`]*)` \\|$").FindAllStringSubmatch(table, -1) {
		line := match[1]
		if seen[line] {
			continue
		}
		seen[line] = true
		want, ok := replacements[line]
		if !ok {
			t.Errorf("%s: nobody checks what it claims", line)
			continue
		}
		celldtest.Again(t, func(attempt string) string {
			return want.differs(c, "CL.TAKE key"+attempt+":"+fmt.Sprint(len(seen))+" "+line)
		})
	}
	for line := range replacements {
		if !seen[line] {
			t.Errorf("%s is not in %s", line, migrate)
		}
	}
}

// differs calls until a call is limited and says what is not as it should be, or "". All calls leave in one packet, so that
// little flows back meanwhile, and a window seldom ends.
func (r replacement) differs(c *harness.Conn, line string) string {
	c.T.Helper()
	args := strings.Split(line, " ")
	c.Send([]byte(strings.Repeat(string(harness.Frame(args...)), r.atOnce+1)))
	for i := range r.atOnce + 1 {
		var n int
		var ints [4]int64
		raw := c.Reply()
		if fields, err := fmt.Sscanf(raw, "*%d\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n", &n, &ints[0], &ints[1], &ints[2], &ints[3]); fields != 5 {
			c.T.Fatalf("%s: %q, %v", line, raw, err)
		}
		retry := (time.Duration(ints[3]) * time.Millisecond).Seconds()
		if i == r.atOnce && (ints[0] != 1 || retry < r.least || retry > r.most) || i < r.atOnce && ints[0] != 0 {
			for range r.atOnce - i {
				c.Reply()
			}
			return fmt.Sprintf("%s, call %d: %v; want %d to pass, and then %v s to wait", line, i+1, ints, r.atOnce, r.most)
		}
	}
	return ""
}

// TestLibrariesErrors holds README.md to the errors that a library gets if it needs what celld lacks.
func TestLibrariesErrors(t *testing.T) {
	t.Parallel()
	text, srv := celldtest.ReadFile(t, compared), harness.Start(t)
	c := harness.Dial(t, srv.Addr)
	names := regexp.MustCompile("`ERR Unknown Redis command called from script: '([A-Za-z]+)'`").FindAllStringSubmatch(text, -1)
	if len(names) != 3 {
		t.Errorf("%d commands are named by errors: %q", len(names), names)
	}
	for _, name := range names {
		script := "local done = redis.call('EXISTS', KEYS[1])\nreturn redis.call('" + name[1] + "', KEYS[1], 1, 2)"
		want := fmt.Sprintf("-ERR Unknown Redis command called from script: '%s' script: %s, on @user_script:2.\r\n", name[1],
			celldtest.Digest(script))
		if got := c.Do("EVAL", script, "1", "k"); got != want {
			t.Errorf("%s in a script: %q, want %q", name[1], got, want)
		}
	}
	got := c.Do("EVAL", "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', 1000)", "1", "k", "\x01\x02")
	if !strings.HasPrefix(got, "-ERR value is not an integer or out of range; for a lock, send CL.TAKE ") {
		t.Errorf("bytes as a value: %q", got)
	}
	db := redis.NewClient(&redis.Options{Addr: srv.Addr})
	defer db.Close()
	_, err := redis_rate.NewLimiter(db).Allow(context.Background(), "user", redis_rate.PerMinute(10))
	if err == nil || !strings.HasPrefix(err.Error(), "ERR value is not an integer or out of range") {
		t.Errorf("redis_rate: %v", err)
	}
}

// twoNumbers is a token bucket in two keys with whole numbers in seconds, as Spring Cloud Gateway keeps it: rate, capacity, cost.
const twoNumbers = `
local rate, capacity, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local now, ttl = tonumber(redis.call('TIME')[1]), math.floor(capacity / rate * 2)
local tokens, filled = tonumber(redis.call('GET', KEYS[1])) or capacity, tonumber(redis.call('GET', KEYS[2])) or 0
tokens = math.min(capacity, tokens + math.max(0, now - filled) * rate)
local allowed = tokens >= cost
if allowed then tokens = tokens - cost end
redis.call('SETEX', KEYS[1], ttl, tokens)
redis.call('SETEX', KEYS[2], ttl, now)
return {allowed and 1 or 0, tokens}`

// TestTwoNumbers runs such a bucket: counts stay as long as SETEX says.
func TestTwoNumbers(t *testing.T) {
	t.Parallel()
	c := harness.Dial(t, harness.Start(t).Addr)
	celldtest.Again(t, func(attempt string) string { // a second that ends meanwhile brings tokens
		for left := 19; left >= -1; left-- {
			want := fmt.Sprintf("*2\r\n:1\r\n:%d\r\n", left)
			if left < 0 {
				want = "*2\r\n:0\r\n:0\r\n"
			}
			if got := c.Do("EVAL", twoNumbers, "2", "tokens"+attempt, "filled"+attempt, "1", "20", "1"); got != want {
				return fmt.Sprintf("%q, want %q", got, want)
			}
		}
		return ""
	})
	celldtest.Eventually(t, "tokens come back", func() bool {
		return strings.HasPrefix(c.Do("EVAL", twoNumbers, "2", "tokens0", "filled0", "1", "20", "1"), "*2\r\n:1\r\n")
	})
	if got := celldtest.IntReply(c.Do("TTL", "tokens0")); got < 30 || got > 40 {
		t.Errorf("TTL: %d", got)
	}
}
