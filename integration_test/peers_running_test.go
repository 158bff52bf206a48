package integration_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
)

// Limiters that have a clock of their own are asked in turns with celld. What they answer is made to hang on the time as
// little as may be: intervals are long, or waits are as long as a limiter has said.

// taken is the reply to CL.TAKE.
type taken struct{ limited, limit, remaining, retryMS, resetMS, granted, wait int64 }

func (c *conn) take(args ...string) (r taken) {
	c.t.Helper()
	raw := c.do(append([]string{"CL.TAKE"}, args...)...)
	n, err := fmt.Sscanf(raw, "*7\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n", &r.limited, &r.limit, &r.remaining, &r.retryMS, &r.resetMS, &r.granted, &r.wait)
	if n != 7 {
		c.t.Fatalf("CL.TAKE %q: %q, %v", args, raw, err)
	}
	return r
}

// TestPeerRedisCell compares limited, limit and remaining with redis-cell, and its times, whole seconds, with the ms cut off.
func TestPeerRedisCell(t *testing.T) {
	t.Parallel()
	p, rnd := startModulePair(t), newRand(t)
	again(t, func(attempt string) string {
		for i, quantity := range []int64{1, 15, 1, 0, 17, -3, 2, 2} {
			limit := rateLimit{burst: 15, count: 30, period: 60}
			if difference := p.takeDiffers("k"+attempt, "30/60s,burst=16", limit, quantity); difference != "" {
				return fmt.Sprintf("call %d: %s", i, difference)
			}
		}
		return ""
	})
	for range 200 {
		prefix, seed := randomKey(rnd), rnd.Uint64()
		again(t, func(attempt string) string {
			rnd := rand.New(rand.NewPCG(seed, 0))
			period := min(1+rnd.Int64N(1<<rnd.IntN(25)), 366*86400)
			limit := rateLimit{burst: rnd.Int64N(20), count: 1 + rnd.Int64N(min(period, 1000)), period: period}.sharp()
			literal, takenNS := fmt.Sprintf("%d/%ds,burst=%d", limit.count, limit.period, limit.burst+1), int64(0)
			for range 3 + rnd.IntN(20) {
				quantity := limit.quantity(rnd, takenNS)
				before := p.celld.take(prefix+attempt, literal, "PEEK", "COST", "0")
				if difference := p.takeDiffers(prefix+attempt, literal, limit, quantity); difference != "" {
					return difference
				}
				if quantity <= before.remaining {
					takenNS += quantity * limit.intervalNS()
				}
			}
			return ""
		})
	}
}

// takeDiffers makes one call to both. A negative quantity is CL.GIVE, and a look at what it has left.
func (p *modulePair) takeDiffers(key, literal string, limit rateLimit, quantity int64) string {
	p.t.Helper()
	if quantity < 0 {
		if got, want := p.celld.do("CL.GIVE", key, literal, itoa(-quantity)), fmt.Sprintf(":%d\r\n", -quantity); got != want {
			return fmt.Sprintf("CL.GIVE %s %d: %q", literal, -quantity, got)
		}
	}
	a := p.celld.take(key, literal, "COST", itoa(max(quantity, 0)))
	raw := p.module.do(limit.call(key, quantity)...)
	b, ok := fiveInts(raw)
	seconds := func(ms int64) int64 {
		if ms == -1 {
			return -1
		}
		return ms / 1000
	}
	if !ok || a.limited != b[0] || a.limit != b[1] || a.remaining != b[2] || !oneMore(seconds(a.retryMS), b[3]) || !oneMore(seconds(a.resetMS), b[4]) {
		return fmt.Sprintf("%s COST %d: celld %+v, redis-cell %q", literal, quantity, a, raw)
	}
	return ""
}

// TestPeerRedisRate compares with redis_rate, whose floats are exact as long as emission intervals are whole seconds.
func TestPeerRedisRate(t *testing.T) {
	t.Parallel()
	ctx, rnd := context.Background(), newRand(t)
	db := redis.NewClient(&redis.Options{Network: "unix", Addr: strings.TrimPrefix(startRedis(t), "unix:")})
	t.Cleanup(func() { db.Close() })
	c, limiter := dial(t, start(t).addr), redis_rate.NewLimiter(db)
	for i := range 100 {
		seed := rnd.Uint64()
		again(t, func(attempt string) string {
			rnd, key := rand.New(rand.NewPCG(seed, 0)), fmt.Sprintf("k%d:%s", i, attempt)
			limit := redis_rate.Limit{Rate: 1 + rnd.IntN(20), Burst: 1 + rnd.IntN(30)}
			limit.Period = time.Duration(limit.Rate*(20+rnd.IntN(1000))) * time.Second
			literal := fmt.Sprintf("%d/%ds,burst=%d", limit.Rate, limit.Period/time.Second, limit.Burst)
			for range 3 + rnd.IntN(20) {
				n, ask, mode := []int{1, 1, 0, 2, rnd.IntN(limit.Burst + 2)}[rnd.IntN(5)], limiter.AllowN, "US"
				if n > 0 && rnd.IntN(3) == 0 {
					ask, mode = limiter.AllowAtMost, "UPTO"
				}
				a := c.take(key, literal, "COST", fmt.Sprint(n), "US", mode)
				b, err := ask(ctx, key, limit, n)
				if err != nil {
					t.Fatal(err)
				}
				denied := a.limited == 1
				if int64(b.Allowed) != a.granted || int64(limit.Burst) != a.limit || int64(b.Remaining) != a.remaining && !(denied && b.Remaining == 0) ||
					(b.RetryAfter < 0) != (a.retryMS < 0 && !denied) {
					return fmt.Sprintf("%s COST %d %s: celld %+v, redis_rate %+v", literal, n, mode, a, b)
				}
				apart := (time.Duration(a.resetMS)*time.Microsecond - b.ResetAfter).Abs()
				if a.retryMS >= 0 {
					apart = max(apart, (time.Duration(a.retryMS)*time.Microsecond - b.RetryAfter).Abs())
				}
				if apart > peerTimes {
					return fmt.Sprintf("%s COST %d %s: celld %+v, redis_rate %+v: %v apart", literal, n, mode, a, b, apart)
				}
			}
			return ""
		})
	}
}

// TestPeerIncr counts by INCR, and gives the first of a window its end, in commands and in a script.
func TestPeerIncr(t *testing.T) {
	t.Parallel()
	const script = "local n = redis.call('INCR', KEYS[1]) if n == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end return n"
	redis, celld := startRedis(t), start(t)
	for name, incr := range map[string]func(c *conn, key, ms string) int64{
		"commands": func(c *conn, key, ms string) int64 {
			n := intReply(c.do("INCR", key))
			if n == 1 {
				c.do("PEXPIRE", key, ms)
			}
			return n
		},
		"script": func(c *conn, key, ms string) int64 { return intReply(c.do("EVAL", script, "1", key, ms)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := dial(t, celld.addr), dial(t, redis)
			again(t, func(attempt string) string {
				key := name + attempt
				for window := range 2 {
					var last taken
					for i := range int64(8) {
						last = a.take(key, "5/600ms,algo=window")
						n := incr(b, key, "600")
						if n != i+1 || (last.limited == 1) != (n > 5) || last.remaining != max(0, 5-n) {
							return fmt.Sprintf("window %d, call %d: celld %+v, INCR %d", window, i+1, last, n)
						}
					}
					leftMS := intReply(b.do("PTTL", key))
					if apart := time.Duration(leftMS-last.retryMS) * time.Millisecond; apart.Abs() > peerTimes {
						return fmt.Sprintf("celld says %d ms, and PTTL is %d", last.retryMS, leftMS)
					}
					time.Sleep(time.Duration(max(leftMS, last.retryMS)+2) * time.Millisecond)
				}
				return ""
			})
		})
	}
}

// TestPeersInRealTime uses each limit of the table up, waits as long as it is told, and is let through again.
func TestPeersInRealTime(t *testing.T) {
	t.Parallel()
	srv := start(t)
	for _, literal := range []string{
		"5/250ms", "5/250ms,burst=6", "5/250ms,burst=1", "5/250ms,algo=window", "5/250ms,algo=window,align=clock", "5/250ms,algo=slide",
		"5/250ms,algo=slide,buckets=5", "5/250ms,algo=slide,buckets=2", "5/250ms,algo=log",
	} {
		t.Run(literal, func(t *testing.T) {
			t.Parallel()
			c := dial(t, srv.addr)
			again(t, func(attempt string) string {
				began := time.Now()
				limit := c.take(literal+attempt, literal, "PEEK").limit
				got := c.take(literal+attempt, literal, "COST", itoa(limit))
				if got.limited != 0 || got.granted != limit || got.remaining != 0 {
					return fmt.Sprintf("%s: all at once: %+v", literal, got)
				}
				got = c.take(literal+attempt, literal)
				if got.limited != 1 || got.retryMS < 1 || got.granted != 0 {
					return fmt.Sprintf("%s: one more, after %v: %+v", literal, time.Since(began), got)
				}
				time.Sleep(time.Duration(got.retryMS) * time.Millisecond)
				if again := c.take(literal+attempt, literal); again.limited != 0 {
					return fmt.Sprintf("%s: after the %d ms that it said: %+v", literal, got.retryMS, again)
				}
				return ""
			})
		})
	}
}
