package peers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// TestPeerRedisCell compares limited, limit and remaining with redis-cell, and its times, whole seconds, with the ms cut off.
func TestPeerRedisCell(t *testing.T) {
	t.Parallel()
	p, rnd := startModulePair(t), celldtest.NewRand(t)
	celldtest.Again(t, func(attempt string) string {
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
		celldtest.Again(t, func(attempt string) string {
			rnd := rand.New(rand.NewPCG(seed, 0))
			period := min(1+rnd.Int64N(1<<rnd.IntN(25)), 366*86400)
			limit := rateLimit{burst: rnd.Int64N(20), count: 1 + rnd.Int64N(min(period, 1000)), period: period}.sharp()
			literal, takenNS := fmt.Sprintf("%d/%ds,burst=%d", limit.count, limit.period, limit.burst+1), int64(0)
			for range 3 + rnd.IntN(20) {
				quantity := limit.quantity(rnd, takenNS)
				before := p.celld.Take(prefix+attempt, literal, "PEEK", "COST", "0")
				if difference := p.takeDiffers(prefix+attempt, literal, limit, quantity); difference != "" {
					return difference
				}
				if quantity <= before.Remaining {
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
		if got, want := p.celld.Do("CL.GIVE", key, literal, fmt.Sprint(-quantity)), fmt.Sprintf(":%d\r\n", -quantity); got != want {
			return fmt.Sprintf("CL.GIVE %s %d: %q", literal, -quantity, got)
		}
	}
	a := p.celld.Take(key, literal, "COST", fmt.Sprint(max(quantity, 0)))
	raw := p.module.Do(limit.call(key, quantity)...)
	b, ok := harness.FiveInts(raw)
	seconds := func(ms int64) int64 {
		if ms == -1 {
			return -1
		}
		return ms / 1000
	}
	if !ok || a.Limited != b[0] || a.Limit != b[1] || a.Remaining != b[2] || !oneMore(seconds(a.RetryMS), b[3]) ||
		!oneMore(seconds(a.ResetMS), b[4]) {
		return fmt.Sprintf("%s COST %d: celld %+v, redis-cell %q", literal, quantity, a, raw)
	}
	return ""
}

// TestPeerRedisRate compares with redis_rate, whose floats are exact as long as emission intervals are whole seconds.
func TestPeerRedisRate(t *testing.T) {
	t.Parallel()
	ctx, rnd := context.Background(), celldtest.NewRand(t)
	db := redis.NewClient(&redis.Options{Network: "unix", Addr: strings.TrimPrefix(celldtest.StartRedis(t), "unix:")})
	t.Cleanup(func() { db.Close() })
	c, limiter := harness.Dial(t, harness.Start(t).Addr), redis_rate.NewLimiter(db)
	for i := range 100 {
		seed := rnd.Uint64()
		celldtest.Again(t, func(attempt string) string {
			rnd, key := rand.New(rand.NewPCG(seed, 0)), fmt.Sprintf("k%d:%s", i, attempt)
			limit := redis_rate.Limit{Rate: 1 + rnd.IntN(20), Burst: 1 + rnd.IntN(30)}
			limit.Period = time.Duration(limit.Rate*(20+rnd.IntN(1000))) * time.Second
			literal := fmt.Sprintf("%d/%ds,burst=%d", limit.Rate, limit.Period/time.Second, limit.Burst)
			for range 3 + rnd.IntN(20) {
				n, ask, mode := []int{1, 1, 0, 2, rnd.IntN(limit.Burst + 2)}[rnd.IntN(5)], limiter.AllowN, []string{}
				if n > 0 && rnd.IntN(3) == 0 {
					ask, mode = limiter.AllowAtMost, []string{"UPTO"}
				}
				a := c.Take(append([]string{key, literal, "COST", fmt.Sprint(n), "US"}, mode...)...)
				b, err := ask(ctx, key, limit, n)
				if err != nil {
					t.Fatal(err)
				}
				denied := a.Limited == 1
				if int64(b.Allowed) != a.Granted || int64(limit.Burst) != a.Limit ||
					int64(b.Remaining) != a.Remaining && !(denied && b.Remaining == 0) || (b.RetryAfter < 0) != (a.RetryMS < 0 && !denied) {
					return fmt.Sprintf("%s COST %d %s: celld %+v, redis_rate %+v", literal, n, mode, a, b)
				}
				apart := (time.Duration(a.ResetMS)*time.Microsecond - b.ResetAfter).Abs()
				if a.RetryMS >= 0 {
					apart = max(apart, (time.Duration(a.RetryMS)*time.Microsecond - b.RetryAfter).Abs())
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
	redis, celld := celldtest.StartRedis(t), harness.Start(t)
	for name, incr := range map[string]func(c *harness.Conn, key, ms string) int64{
		"commands": func(c *harness.Conn, key, ms string) int64 {
			n := celldtest.IntReply(c.Do("INCR", key))
			if n == 1 {
				c.Do("PEXPIRE", key, ms)
			}
			return n
		},
		"script": func(c *harness.Conn, key, ms string) int64 {
			return celldtest.IntReply(c.Do("EVAL", script, "1", key, ms))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := harness.Dial(t, celld.Addr), harness.Dial(t, redis)
			celldtest.Again(t, func(attempt string) string {
				key := name + attempt
				for window := range 2 {
					var last harness.Taken
					for i := range int64(8) {
						last = a.Take(key, "5/600ms,algo=window")
						n := incr(b, key, "600")
						if n != i+1 || (last.Limited == 1) != (n > 5) || last.Remaining != max(0, 5-n) {
							return fmt.Sprintf("window %d, call %d: celld %+v, INCR %d", window, i+1, last, n)
						}
					}
					leftMS := celldtest.IntReply(b.Do("PTTL", key))
					if apart := time.Duration(leftMS-last.RetryMS) * time.Millisecond; apart.Abs() > peerTimes {
						return fmt.Sprintf("celld says %d ms, and PTTL is %d", last.RetryMS, leftMS)
					}
					celldtest.Eventually(t, "both windows end", func() bool {
						return b.Do("EXISTS", key) == ":0\r\n" && a.Take(key, "5/600ms,algo=window", "PEEK").Remaining == 5
					})
				}
				return ""
			})
		})
	}
}

// TestPeersInRealTime uses each limit of the table up, waits as long as the reply says, and passes again.
func TestPeersInRealTime(t *testing.T) {
	t.Parallel()
	srv := harness.Start(t)
	for _, literal := range []string{
		"5/250ms", "5/250ms,burst=6", "5/250ms,burst=1", "5/250ms,algo=window", "5/250ms,algo=window,align=clock", "5/250ms,algo=slide",
		"5/250ms,algo=slide,buckets=5", "5/250ms,algo=slide,buckets=2", "5/250ms,algo=log",
	} {
		t.Run(literal, func(t *testing.T) {
			t.Parallel()
			c := harness.Dial(t, srv.Addr)
			celldtest.Again(t, func(attempt string) string {
				began := time.Now()
				limit := c.Take(literal+attempt, literal, "PEEK").Limit
				got := c.Take(literal+attempt, literal, "COST", fmt.Sprint(limit))
				if got.Limited != 0 || got.Granted != limit || got.Remaining != 0 {
					return fmt.Sprintf("%s: all at once: %+v", literal, got)
				}
				got = c.Take(literal+attempt, literal)
				if got.Limited != 1 || got.RetryMS < 1 || got.Granted != 0 {
					return fmt.Sprintf("%s: one more, after %v: %+v", literal, time.Since(began), got)
				}
				time.Sleep(time.Duration(got.RetryMS) * time.Millisecond)
				if again := c.Take(literal+attempt, literal); again.Limited != 0 {
					return fmt.Sprintf("%s: after the %d ms that it said: %+v", literal, got.RetryMS, again)
				}
				return ""
			})
		})
	}
}
