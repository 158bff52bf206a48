//go:build all

package clients

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"celld/integration_test/harness"
)

// TestRueidis uses rueidis with its defaults: RESP3, automatic pipelines, and at once HELLO, CLIENT TRACKING ON OPTIN, CLIENT SETINFO
// and CLUSTER SLOTS. The error of the last tells it that this is one server. In RESP2 it has no cache, and must be configured so.
func TestRueidis(t *testing.T) {
	t.Parallel()
	for _, resp2 := range []bool{false, true} {
		t.Run(map[bool]string{false: "RESP3", true: "RESP2"}[resp2], func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			srv := harness.Start(t, "--requirepass", "sesame")
			db, err := rueidis.NewClient(rueidis.ClientOption{
				InitAddress: []string{srv.Addr}, Password: "sesame", ClientName: "limiter", DisableCache: resp2, AlwaysRESP2: resp2,
			})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			call := func(key, burst string) rueidis.Completed {
				return db.B().Arbitrary("CL.THROTTLE").Keys(key).Args(burst, "30", "6000").Build()
			}
			got, err := db.Do(ctx, call("k", "15")).AsIntSlice()
			if want := []int64{0, 16, 15, -1, 200}; err != nil || !slices.Equal(got, want) {
				t.Fatalf("CL.THROTTLE: %v, %v, want %v", got, err, want)
			}
			take := db.B().Arbitrary("CL.TAKE").Keys("take").Args("2/1h").Build()
			if got, err := db.Do(ctx, take).AsIntSlice(); err != nil || !slices.Equal(got, []int64{0, 2, 1, -1, 1_800_000, 1, 0}) {
				t.Errorf("CL.TAKE: %v, %v", got, err)
			}
			for _, limited := range []int64{0, 1} {
				both := db.B().Arbitrary("CL.MTAKE").Args("2").Keys("take").Args("2/1h").Keys("other").Args("5/1h").Build()
				rows, err := db.Do(ctx, both).ToArray()
				if err != nil || len(rows) != 3 {
					t.Fatalf("CL.MTAKE: %v, %v", rows, err)
				}
				for i, want := range [][]int64{{limited, limited}, {limited, 2, 0}, {0, 5, 4}} {
					if got, err := rows[i].AsIntSlice(); err != nil || len(got) != 5 || !slices.Equal(got[:len(want)], want) {
						t.Errorf("CL.MTAKE, array %d: %v, %v", i, got, err)
					}
				}
			}
			var calls rueidis.Commands
			for range 100 {
				calls = append(calls, call("piped", "49"))
			}
			allowed := 0
			for _, reply := range db.DoMulti(ctx, calls...) {
				if ints, err := reply.AsIntSlice(); err != nil {
					t.Fatal(err)
				} else if ints[0] == 0 {
					allowed++
				}
			}
			if allowed != 50 {
				t.Errorf("%d calls passed, of a burst of 50", allowed)
			}
			err = db.Dedicated(func(c rueidis.DedicatedClient) error {
				replies := c.DoMulti(ctx, c.B().Watch().Key("tx").Build(), c.B().Multi().Build(), call("tx", "15"), c.B().Exec().Build())
				rows, err := replies[3].ToArray()
				if err != nil {
					return err
				}
				if ints, err := rows[0].AsIntSlice(); err != nil || ints[2] != 15 {
					t.Errorf("in MULTI: %v, %v", ints, err)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			if _, err := db.Do(ctx, db.B().Get().Key("nosuch").Build()).ToString(); !rueidis.IsRedisNil(err) {
				t.Errorf("GET of nothing: %v", err)
			}
			if name, err := db.Do(ctx, db.B().ClientGetname().Build()).ToString(); err != nil || name != "limiter" {
				t.Errorf("CLIENT GETNAME: %q, %v", name, err)
			}
			err = db.Do(ctx, call("k", "x")).Error()
			if err == nil || err.Error() != "Cell error: Store error: Couldn't parse as integer: x" {
				t.Errorf("an error reply: %v", err)
			}
		})
	}
}

// TestRueidisCache changes limits while many goroutines read them through rueidis's cache. It sends CLIENT CACHING YES, MULTI,
// PTTL, GET and EXEC for what it has not got, and keeps the reply until the key is announced as changed.
//
// An announcement is on its way for a moment, from celld as from Redis. A GET past the cache, on the same connection, ends that
// moment: what is read by DoCache then is not older than what the GET has returned. By default, the GET could go by another one.
func TestRueidisCache(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	srv := harness.StartStress(t)
	db, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{srv.Addr}, PipelineMultiplex: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tat := func(reply rueidis.RedisResult) int64 {
		ns, err := reply.AsInt64()
		if err != nil && !rueidis.IsRedisNil(err) {
			t.Error(err)
		}
		return ns
	}
	get := func(key string) int64 { return tat(db.Do(ctx, db.B().Get().Key(key).Build())) }
	cached := func(key string) int64 { return tat(db.DoCache(ctx, db.B().Get().Key(key).Cache(), time.Hour)) }
	cachedMulti := func(keys ...string) (list []int64) {
		var calls []rueidis.CacheableTTL
		for _, key := range keys {
			calls = append(calls, rueidis.CT(db.B().Get().Key(key).Cache(), time.Hour),
				rueidis.CT(db.B().Strlen().Key(key).Cache(), time.Hour))
		}
		for i, reply := range db.DoMultiCache(ctx, calls...) {
			if n := tat(reply); i%2 == 0 {
				list = append(list, n)
			}
		}
		return list
	}
	var wg sync.WaitGroup
	for i := range 16 {
		other := harness.Dial(t, srv.Addr)
		wg.Go(func() {
			own := "own" + strconv.Itoa(i)
			for range 50 {
				before := cached(own)
				other.Do("CL.THROTTLE", own, "100000", "1", "3600")
				other.Do("CL.TAKE", "limits", "1000/1d")
				other.Do("CL.THROTTLE", "shared", "100000", "1", "3600")
				now, shared := get(own), get("shared")
				if got := cached(own); now <= before || got != now {
					t.Errorf("%s was %d and is %d, DoCache: %d", own, before, now, got)
				}
				if got := cached("shared"); got < shared {
					t.Errorf("shared is %d, DoCache: %d", shared, got)
				}
				if got := cachedMulti(own, "shared"); got[0] != now || got[1] < shared {
					t.Errorf("%s is %d and shared %d, DoMultiCache: %d", own, now, shared, got)
				}
			}
		})
	}
	wg.Wait()
	_, err = db.DoCache(ctx, db.B().Get().Key("limits").Cache(), time.Hour).ToString()
	if err == nil || !strings.HasPrefix(err.Error(), "WRONGTYPE") {
		t.Errorf("GET of a hash: %v", err)
	}
}

// A client that asks for what celld does not do gets an error when it connects.
func TestRueidisTrackingOptions(t *testing.T) {
	t.Parallel()
	srv := harness.Start(t)
	_, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{srv.Addr},
		ClientTrackingOptions: []string{"BCAST", "PREFIX", "user:"}})
	if err == nil || !strings.Contains(err.Error(), "BCAST is not supported") {
		t.Error(err)
	}
}
