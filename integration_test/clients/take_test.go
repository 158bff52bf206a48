package clients

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"celld/integration_test/harness"
)

// TestTakeGoRedis uses a library that knows nothing of the commands.
func TestTakeGoRedis(t *testing.T) {
	t.Parallel()
	srv := harness.Start(t)
	ctx := context.Background()
	want := []int64{0, 5, 4, -1, 720000, 1, 0}
	for _, protocol := range []int{0, 2, 3} { // 0 is go-redis's default
		db := redis.NewClient(&redis.Options{Addr: srv.Addr, Protocol: protocol})
		defer db.Close()
		key := fmt.Sprint("k", protocol)
		if got, err := db.Do(ctx, "CL.TAKE", key, "5/1h").Int64Slice(); err != nil || !slices.Equal(got, want) {
			t.Errorf("CL.TAKE: %v, %v", got, err)
		}
		fields, err := db.HGetAll(ctx, key).Result()
		if err != nil || len(fields) != 1 || !strings.HasPrefix(fields["gcra/1h"], "limit=5/1h tat=") {
			t.Errorf("HGETALL: %v, %v", fields, err)
		}
		if n, err := db.HLen(ctx, key).Result(); err != nil || n != 1 {
			t.Errorf("HLEN: %d, %v", n, err)
		}
		if kind, err := db.Type(ctx, key).Result(); err != nil || kind != "hash" {
			t.Errorf("TYPE: %s, %v", kind, err)
		}
		if keys, _, err := db.ScanType(ctx, 0, "*", 100, "hash").Result(); err != nil || !slices.Contains(keys, key) {
			t.Errorf("SCAN TYPE hash: %v, %v", keys, err)
		}
		if err := db.Do(ctx, "CL.TAKE", key, "@nosuch").Err(); err == nil || err.Error() != "NOPOLICY no such policy 'nosuch'" {
			t.Errorf("CL.TAKE @nosuch: %v", err)
		}
		replies, err := db.Pipelined(ctx, func(p redis.Pipeliner) error {
			for range 100 {
				p.Do(ctx, "CL.TAKE", key+"piped", "50/1h")
				p.Do(ctx, "CL.TAKE", key+"piped2", "50/1h", "COST", 2, "US")
			}
			return nil
		})
		passed := 0
		for _, reply := range replies {
			if ints, err := reply.(*redis.Cmd).Int64Slice(); err == nil {
				passed += int(ints[5])
			}
		}
		if err != nil || passed != 100 {
			t.Errorf("%d passed of two limits of 50: %v", passed, err)
		}
	}
}

// TestTakeRedisCLI sees what people see.
func TestTakeRedisCLI(t *testing.T) {
	t.Parallel()
	srv := harness.Start(t)
	// as in docs/reference/limits.md
	if got := cli(t, srv.Addr, "", "CL.TAKE", "k", "100/1m", "1000/1h", "5/1s,algo=log"); got != "0\n5\n4\n-1\n3600\n1\n0\n" {
		t.Errorf("CL.TAKE: %q", got)
	}
	if got := cli(t, srv.Addr, "", "-3", "--json", "CL.TAKE", "k3", "2/1m", "FULL"); got !=
		"[0,2,1,-1,30000,1,0,[[0,2,1,-1,30000]]]\n" {
		t.Errorf("CL.TAKE FULL: %s", got)
	}
	c := harness.Dial(t, srv.Addr)
	c.Do("FLUSHALL") // the limits above are full again within a second
	c.Take("k", "100/1d", "1000/30d", "5/1d,algo=log")
	c.Take("k3", "2/1d")
	if got := cli(t, srv.Addr, "", "--bigkeys"); !strings.Contains(got, "2 hashs with 4 fields") {
		t.Errorf("redis-cli --bigkeys: %s", got)
	}
}
