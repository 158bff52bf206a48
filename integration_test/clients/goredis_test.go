package clients

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"celld/integration_test/harness"
)

// TestGoRedis uses go-redis as its users do: its defaults (HELLO 3, CLIENT SETINFO), a pool, pipelines, transactions.
func TestGoRedis(t *testing.T) {
	t.Parallel()
	for _, protocol := range []int{0, 2} { // 0: its default, RESP3
		t.Run(map[int]string{0: "default", 2: "RESP2"}[protocol], func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			srv := harness.Start(t, "--requirepass", "sesame")
			db := redis.NewClient(&redis.Options{Addr: srv.Addr, Password: "sesame", Protocol: protocol, ClientName: "limiter"})
			defer db.Close()

			got, err := db.Do(ctx, "CL.THROTTLE", "k", 15, 30, 60).Int64Slice()
			if want := []int64{0, 16, 15, -1, 2}; err != nil || !slices.Equal(got, want) {
				t.Fatalf("CL.THROTTLE: %v, %v, want %v", got, err, want)
			}
			if got, err := db.Do(ctx, "CL.TAKE", "take", "2/1h").Int64Slice(); err != nil ||
				!slices.Equal(got, []int64{0, 2, 1, -1, 1_800_000, 1, 0}) {
				t.Errorf("CL.TAKE: %v, %v", got, err)
			}
			for _, limited := range []int{0, 1} {
				reply, err := db.Do(ctx, "CL.MTAKE", 2, "take", "2/1h", "other", "5/1h").Slice()
				if err != nil || len(reply) != 3 {
					t.Fatalf("CL.MTAKE: %v, %v", reply, err)
				}
				for i, want := range []string{fmt.Sprintf("[%d %d ", limited, limited), fmt.Sprintf("[%d 2 0 ", limited), "[0 5 4 "} {
					if got := fmt.Sprint(reply[i]); !strings.HasPrefix(got, want) {
						t.Errorf("CL.MTAKE, array %d: %s, want %s...", i, got, want)
					}
				}
			}
			if name, err := db.ClientGetName(ctx).Result(); err != nil || name != "limiter" {
				t.Errorf("CLIENT GETNAME: %q, %v", name, err)
			}
			if info, err := db.ClientInfo(ctx).Result(); err != nil || info.Name != "limiter" || info.LibName == "" ||
				(info.Resp == 3) != (protocol == 0) {
				t.Errorf("CLIENT INFO: %+v, %v", info, err)
			}
			var replies []*redis.Cmd
			if _, err := db.Pipelined(ctx, func(p redis.Pipeliner) error {
				for range 100 {
					replies = append(replies, p.Do(ctx, "CL.THROTTLE", "piped", 49, 1, 3600))
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			allowed := 0
			for _, reply := range replies {
				if ints, err := reply.Int64Slice(); err != nil {
					t.Fatal(err)
				} else if ints[0] == 0 {
					allowed++
				}
			}
			if allowed != 50 {
				t.Errorf("%d calls passed, of a burst of 50", allowed)
			}
			var first, second *redis.Cmd
			if _, err := db.TxPipelined(ctx, func(p redis.Pipeliner) error {
				first, second = p.Do(ctx, "CL.THROTTLE", "tx", 15, 30, 60), p.Do(ctx, "CL.THROTTLE", "tx", 15, 30, 60)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if a, b := first.Val().([]any), second.Val().([]any); a[2] != int64(15) || b[2] != int64(14) {
				t.Errorf("in MULTI: %v, %v", a, b)
			}
			err = db.Watch(ctx, func(tx *redis.Tx) error {
				db.Do(ctx, "CL.THROTTLE", "tx", 15, 30, 60)
				_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error { p.Ping(ctx); return nil })
				return err
			}, "tx")
			if !errors.Is(err, redis.TxFailedErr) {
				t.Errorf("EXEC after a watched key changed: %v", err)
			}
			_, err = db.Do(ctx, "CL.THROTTLE", "k", "x", 30, 60).Result()
			if err == nil || err.Error() != "Cell error: Store error: Couldn't parse as integer: x" {
				t.Errorf("an error reply: %v", err)
			}
			if _, err := db.Get(ctx, "nosuch").Result(); err != redis.Nil {
				t.Errorf("GET of nothing: %v", err)
			}
			if d, err := db.TTL(ctx, "piped").Result(); err != nil || d < 49*time.Hour || d > 50*time.Hour {
				t.Errorf("TTL: %v, %v", d, err)
			}
			var keys []string
			for it := db.Scan(ctx, 0, "p*", 10).Iterator(); it.Next(ctx); {
				keys = append(keys, it.Val())
			}
			if !slices.Equal(keys, []string{"piped"}) {
				t.Errorf("SCAN: %q", keys)
			}
			commands, err := db.Command(ctx).Result()
			if err != nil || commands["cl.throttle"] == nil || commands["cl.throttle"].FirstKeyPos != 1 {
				t.Errorf("COMMAND: %v, %v", commands["cl.throttle"], err)
			}
			if entries, err := db.SlowLogGet(ctx, -1).Result(); err != nil {
				t.Errorf("SLOWLOG GET: %v, %v", entries, err)
			}
			if config, err := db.ConfigGet(ctx, "max*").Result(); err != nil || config["maxclients"] == "" {
				t.Errorf("CONFIG GET: %v, %v", config, err)
			}
		})
	}
	t.Run("wrong password", func(t *testing.T) {
		t.Parallel()
		srv := harness.Start(t, "--requirepass", "sesame")
		db := redis.NewClient(&redis.Options{Addr: srv.Addr, Password: "wrong", MaxRetries: -1})
		defer db.Close()
		err := db.Ping(context.Background()).Err()
		if err == nil || err.Error() != "WRONGPASS invalid username-password pair or user is disabled." {
			t.Errorf("PING: %v", err)
		}
	})
}
