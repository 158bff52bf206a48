//go:build all

package counting

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/ulule/limiter/v3"
	limiterredis "github.com/ulule/limiter/v3/drivers/store/redis"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

const (
	callers = 200 // at once, on one key
	limit   = 50  // of theirs
)

// servers runs each scenario on a celld of its own and on a redis-server, and returns what it gave there. By near, in seconds, a time may
// differ between the two: a window that ends by the clock has less left on the second.
func servers[F any](t *testing.T, scenario func(t *testing.T, port string) F) (celld, redisServer F, near float64) {
	t.Helper()
	began := time.Now()
	_, port := harness.HostPort(harness.StartStress(t).Addr)
	celld = scenario(t, port)
	port = harness.FreePort(t)
	celldtest.StartRedis(t, "--port", port, "--bind", "127.0.0.1")
	redisServer = scenario(t, port)
	return celld, redisServer, time.Since(began).Seconds() + 5
}

func dial(t *testing.T, port string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port, PoolSize: callers, PoolTimeout: harness.ReplyTimeout,
		ReadTimeout: harness.ReplyTimeout, WriteTimeout: harness.ReplyTimeout})
	t.Cleanup(func() { client.Close() })
	return client
}

// endWindow lets a key expire now, as if its window were over.
func endWindow(t *testing.T, client *redis.Client, key string) {
	t.Helper()
	if set, err := client.PExpire(t.Context(), key, time.Millisecond).Result(); err != nil || !set {
		t.Fatalf("PEXPIRE %s: %v, %v", key, set, err)
	}
	celldtest.Eventually(t, key+" is gone", func() bool { return client.Exists(t.Context(), key).Val() == 0 })
}

// atOnce runs call by many callers at the same moment, and returns how many of them got each answer.
func atOnce[A comparable](t *testing.T, call func(ctx context.Context) (A, error)) map[A]int {
	t.Helper()
	var mu sync.Mutex
	var failed atomic.Pointer[error]
	answers, start := map[A]int{}, make(chan struct{})
	var running sync.WaitGroup
	for range callers {
		running.Go(func() {
			<-start
			answer, err := call(t.Context())
			if err != nil {
				failed.Store(&err)
				return
			}
			mu.Lock()
			answers[answer]++
			mu.Unlock()
		})
	}
	close(start)
	running.Wait()
	if err := failed.Load(); err != nil {
		t.Fatal(*err)
	}
	return answers
}

// said is what a Go library said: all that must be the same everywhere, and times in seconds from then on.
type said struct {
	Calls []string
	Times []float64
	Once  map[bool]int // how many of the callers at once were let through, and how many not
}

func (s *said) same(t *testing.T, redisServer said, near float64) {
	t.Helper()
	if !reflect.DeepEqual(s.Calls, redisServer.Calls) {
		t.Errorf("on celld\n%q\non redis-server\n%q", s.Calls, redisServer.Calls)
	}
	if len(s.Times) != len(redisServer.Times) || len(s.Times) == 0 {
		t.Fatalf("times on celld %v, on redis-server %v", s.Times, redisServer.Times)
	}
	for i, on := range s.Times {
		if math.Abs(on-redisServer.Times[i]) > near {
			t.Errorf("time %d is %v on celld, %v on redis-server", i, on, redisServer.Times[i])
		}
	}
	for name, once := range map[string]map[bool]int{"celld": s.Once, "redis-server": redisServer.Once} {
		if once[true] != limit || once[false] != callers-limit {
			t.Errorf("%s: %d of %d callers at once were let through, of a limit of %d", name, once[true], callers, limit)
		}
	}
}

// TestUluleLimiter calls all that a limiter of ulule/limiter has.
func TestUluleLimiter(t *testing.T) {
	t.Parallel()
	celld, redisServer, near := servers(t, func(t *testing.T, port string) (s said) {
		ctx, client := t.Context(), dial(t, port)
		store, err := limiterredis.NewStoreWithOptions(client, limiter.StoreOptions{Prefix: "ulule"})
		if err != nil {
			t.Fatal(err)
		}
		three := limiter.New(store, limiter.Rate{Period: time.Hour, Limit: 3})
		call := func(name string, got limiter.Context, err error) {
			t.Helper()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			s.Calls = append(s.Calls, fmt.Sprint(name, " ", got.Limit, " ", got.Remaining, " ", got.Reached))
			s.Times = append(s.Times, time.Until(time.Unix(got.Reset, 0)).Seconds())
		}
		peek := func(key string) {
			t.Helper()
			got, err := three.Peek(ctx, key)
			call("peek "+key, got, err)
		}
		get := func(key string) {
			t.Helper()
			got, err := three.Get(ctx, key)
			call("get "+key, got, err)
		}
		peek("a")
		for range 5 {
			get("a")
		}
		peek("a")
		for _, n := range []int64{2, 1, 1} {
			got, err := three.Increment(ctx, "b", n)
			call("increment b", got, err)
		}
		if err := client.ScriptFlush(ctx).Err(); err != nil { // as after a restart: the library loads its scripts again
			t.Fatal(err)
		}
		get("b")
		if got, err := client.Get(ctx, "ulule:a").Result(); err != nil || got != "5" {
			t.Errorf("the key of a: %q, %v", got, err)
		}
		ttl := client.PTTL(ctx, "ulule:a").Val()
		s.Times = append(s.Times, ttl.Seconds())
		if ttl <= time.Hour-harness.ReplyTimeout || ttl > time.Hour {
			t.Errorf("the key of a lives for %v", ttl)
		}
		got, err := three.Reset(ctx, "a")
		call("reset a", got, err)
		peek("a")
		get("a")
		get("b")
		endWindow(t, client, "ulule:b")
		for range 4 {
			get("b")
		}
		many := limiter.New(store, limiter.Rate{Period: time.Hour, Limit: limit})
		s.Once = atOnce(t, func(ctx context.Context) (bool, error) {
			got, err := many.Get(ctx, "many")
			return !got.Reached, err
		})
		return s
	})
	celld.same(t, redisServer, near)
	want := []string{"peek a 3 3 false", "get a 3 2 false", "get a 3 1 false", "get a 3 0 false", "get a 3 0 true", "get a 3 0 true",
		"peek a 3 0 true", "increment b 3 1 false", "increment b 3 0 false", "increment b 3 0 true", "get b 3 0 true", "reset a 3 3 false",
		"peek a 3 3 false", "get a 3 2 false", "get b 3 0 true", "get b 3 2 false", "get b 3 1 false", "get b 3 0 false", "get b 3 0 true"}
	if !reflect.DeepEqual(celld.Calls, want) {
		t.Errorf("\n got %q\nwant %q", celld.Calls, want)
	}
}

// periodScript does what the script of go-zero's PeriodLimit does, by the same commands: go-zero itself needs dozens of modules.
var periodScript = redis.NewScript(`
local taken = redis.call("INCRBY", KEYS[1], 1)
if taken == 1 then
	redis.call("expire", KEYS[1], tonumber(ARGV[2]))
end
local left = tonumber(ARGV[1]) - taken
if left < 0 then
	return 0
end
return left == 0 and 2 or 1`)

// period is what a PeriodLimit with this quota is.
type period struct {
	client *redis.Client
	quota  int
}

// take answers 1 below the quota, 2 for the last call that it lets through, and 0 past it.
func (p period) take(ctx context.Context, key string, seconds int) (int64, error) {
	return periodScript.Run(ctx, p.client, []string{"period:" + key}, strconv.Itoa(p.quota), strconv.Itoa(seconds)).Int64()
}

// TestGoZeroPeriodLimit sends what go-zero v1.10.3 sends for a PeriodLimit.
func TestGoZeroPeriodLimit(t *testing.T) {
	t.Parallel()
	celld, redisServer, near := servers(t, func(t *testing.T, port string) (s said) {
		client := dial(t, port)
		three := period{client, 3}
		take := func(key string, seconds, times int) {
			t.Helper()
			for range times {
				got, err := three.take(t.Context(), key, seconds)
				if err != nil {
					t.Fatalf("take %s: %v", key, err)
				}
				s.Calls = append(s.Calls, fmt.Sprint(key, " ", got))
			}
			s.Times = append(s.Times, client.PTTL(t.Context(), "period:"+key).Val().Seconds())
		}
		take("a", 3600, 5)
		take("b", 3600, 2)
		if err := client.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		take("b", 3600, 2)
		// With Align, a window ends at the end of a period of the clock.
		take("aligned", 1234, 1)
		take("aligned", 1230, 3)
		endWindow(t, client, "period:a")
		take("a", 60, 4)
		many := period{client, limit}
		answers := atOnce(t, func(ctx context.Context) (int64, error) { return many.take(ctx, "many", 3600) })
		if answers[2] != 1 {
			t.Errorf("%d calls were the last of the quota", answers[2])
		}
		s.Once = map[bool]int{true: answers[1] + answers[2], false: answers[0]}
		return s
	})
	celld.same(t, redisServer, near)
	want := []string{"a 1", "a 1", "a 2", "a 0", "a 0", "b 1", "b 1", "b 2", "b 0", "aligned 1", "aligned 1", "aligned 2", "aligned 0",
		"a 1", "a 1", "a 2", "a 0"}
	if !reflect.DeepEqual(celld.Calls, want) {
		t.Errorf("\n got %q\nwant %q", celld.Calls, want)
	}
	for i, want := range []float64{3600, 3600, 3600, 1234, 1234, 60} {
		if got := celld.Times[i]; got > want || got < want-near {
			t.Errorf("time %d is %v, want %v", i, got, want)
		}
	}
}
