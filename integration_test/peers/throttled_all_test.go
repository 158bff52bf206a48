//go:build all

package peers

import (
	"context"
	"sync"
	"testing"

	"github.com/gomodule/redigo/redis"
	goredis "github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"
	"github.com/throttled/throttled/v2/store/redigostore"
	"github.com/throttled/throttled/v2/store/storetest"

	"celld/integration_test/harness"
)

// throttled keeps what redis-cell keeps, a TAT under a key, by GET, SETNX and a script that compares and sets. So its Redis
// stores work with celld as they are.

// throttledStores opens throttled's stores, by the client that each uses.
func throttledStores(t *testing.T, addr string) map[string]throttled.GCRAStoreCtx {
	t.Helper()
	client := goredis.NewClient(&goredis.Options{Addr: addr})
	t.Cleanup(func() { client.Close() })
	goRedis, err := goredisstore.NewCtx(client, "go-redis:")
	if err != nil {
		t.Fatal(err)
	}
	pool := &redis.Pool{MaxIdle: 3, Dial: func() (redis.Conn, error) { return redis.Dial("tcp", addr) }}
	t.Cleanup(func() { pool.Close() })
	redigo, err := redigostore.NewCtx(pool, "redigo:", 0)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]throttled.GCRAStoreCtx{"go-redis": goRedis, "redigo": redigo}
}

// TestThrottledStores runs the tests that throttled has for whoever writes a store.
func TestThrottledStores(t *testing.T) {
	t.Parallel()
	for name, store := range throttledStores(t, harness.Start(t).Addr) {
		t.Run(name, func(t *testing.T) {
			storetest.TestGCRAStoreCtx(t, store)
			storetest.TestGCRAStoreTTLCtx(t, store)
		})
	}
}

// TestThrottledAndCelld limits one key by throttled and by CL.THROTTLE in turn: both go by the TAT that the other has stored.
func TestThrottledAndCelld(t *testing.T) {
	t.Parallel()
	srv := harness.Start(t)
	c := harness.Dial(t, srv.Addr)
	for name, store := range throttledStores(t, srv.Addr) {
		limiter, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerHour(30), MaxBurst: 3})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []int{3, 2, 1, 0, 0} {
			if i%2 == 0 {
				limited, result, err := limiter.RateLimitCtx(t.Context(), "user", 1)
				if err != nil || limited != (i == 4) || result.Remaining != want || result.Limit != 4 {
					t.Errorf("%s, call %d: %v, %+v, %v; want %d to remain", name, i, limited, result, err, want)
				}
			} else if got := c.Throttle(name+":user", "3", "30", "3600"); got[0] != 0 || got[1] != 4 || got[2] != int64(want) {
				t.Errorf("%s, call %d by CL.THROTTLE: %v; want %d to remain", name, i, got, want)
			}
		}
		if got := c.Throttle(name+":user", "3", "30", "3600"); got[0] != 1 || got[3] < 100 || got[3] > 120 {
			t.Errorf("%s, past the limit by CL.THROTTLE: %v", name, got)
		}
	}
}

// TestThrottledAtOnce runs many callers on one key, whose scripts compare and set: a TAT that another has changed meanwhile is
// seen, and no more pass than the limit has.
func TestThrottledAtOnce(t *testing.T) {
	t.Parallel()
	srv := harness.StartStress(t)
	for name, store := range throttledStores(t, srv.Addr) {
		limiter, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerDay(1), MaxBurst: 49})
		if err != nil {
			t.Fatal(err)
		}
		limiter.SetMaxCASAttemptsLimit(1000)
		var mu sync.Mutex
		var passed int
		var callers sync.WaitGroup
		for range 8 {
			callers.Go(func() {
				for range 10 {
					limited, _, err := limiter.RateLimitCtx(context.Background(), "many", 1)
					if err != nil {
						t.Error(name, err)
						return
					}
					if !limited {
						mu.Lock()
						passed++
						mu.Unlock()
					}
				}
			})
		}
		callers.Wait()
		if passed != 50 {
			t.Errorf("%s: %d calls passed, of a burst of 50", name, passed)
		}
	}
}
