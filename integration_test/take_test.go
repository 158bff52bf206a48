package integration_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// intsReply is an array of integers, and behind them what is nested.
func intsReply(ints string, nested ...string) string {
	words := strings.Fields(ints)
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words)+len(nested))
	for _, word := range words {
		fmt.Fprintf(&b, ":%s\r\n", word)
	}
	return b.String() + strings.Join(nested, "")
}

// takeSteps are calls of one key, k, that arrive together, and the reply to the last: what CL.TAKE's array has, and behind
// slashes that of each limit if FULL is asked for.
var takeSteps = []struct{ calls, want string }{
	{"k 100/1m", "0 100 99 -1 600 1 0"},
	{"k 100/1m COST 3", "0 100 97 -1 1800 3 0"},
	{"k 100/1m cost 3 us", "0 100 97 -1 1800000 3 0"},
	{"k 100/1m US", "0 100 99 -1 600000 1 0"},
	{"k 3/1s US", "0 3 2 -1 333334 1 0"},
	{"k 3/1s", "0 3 2 -1 334 1 0"},
	{"k 100/1m COST 0", "0 100 100 -1 0 0 0"},
	{"k 100/1m COST 0 FORCE", "0 100 100 -1 0 0 0"},
	{"k 100/1m PEEK", "0 100 100 -1 0 0 0"},
	{"k 100/1m PEEK COST 101", "1 100 100 -1 0 0 0"},
	{"k 100/1m COST 101", "1 100 100 -1 0 0 0"},
	{"k 100/1m COST 100", "0 100 0 -1 60000 100 0"},
	{"k 100/1m COST 2147483647", "1 100 100 -1 0 0 0"},
	{"k 100/1m COST 150 UPTO", "0 100 0 -1 60000 100 0"},
	{"k 100/1m COST 150 FORCE", "0 100 0 -1 90000 150 0"},
	{"k 100/1m COST 150 FORCE; k 100/1m", "1 100 0 30600 90000 0 0"},
	{"k 100/1m COST 100; k 100/1m UPTO COST 5", "1 100 0 600 60000 0 0"},
	{"k 100/1m COST 97; k 100/1m UPTO COST 5", "0 100 0 -1 60000 3 0"},
	{"k 10/1m,burst=3 COST 2; k 10/1m,burst=3", "0 3 0 -1 18000 1 0"},
	{"k 1/1m,burst=1; k 1/1m,burst=1", "1 1 0 60000 60000 0 0"},
	{"k 5/1h,algo=window COST 4; k 5/1h,algo=window COST 2", "1 5 1 3600000 3600000 0 0"},
	{"k 5/1h,algo=log COST 4; k 5/1h,algo=log COST 2", "1 5 1 3600000 3600000 0 0"},
	{"k 5/1h,algo=log,block=2h COST 5; k 5/1h,algo=log,block=2h", "1 5 0 7200000 7200000 0 0"},
	{"k 1/1m,shadow COST 2", "0 1 1 -1 0 2 0"},
	{"k 100/1m FULL", "0 100 99 -1 600 1 0/0 100 99 -1 600"},
	{"k 100/1m 10/1h 5/1s,algo=log FULL", "0 5 4 -1 360000 1 0/0 100 99 -1 600/0 10 9 -1 360000/0 5 4 -1 1000"},
	{"k 100/1m 10/1h FULL COST 11", "1 10 10 -1 0 0 0/0 100 100 -1 0/1 10 10 -1 0"},
	{"k 10/1h COST 10; k 100/1m 10/1h FULL", "1 10 0 360000 3600000 0 0/0 100 100 -1 0/1 10 0 360000 3600000"},
	{"k 10/1h COST 10; k 100/1m 10/1h,shadow FULL", "0 100 99 -1 3600000 1 0/0 100 99 -1 600/1 10 0 360000 3600000"},
	{"k 100/1m COST 10; k 200/1m", "0 200 179 -1 6300 1 0"}, // what was used is kept in proportion
	{"k 100/1m COST 10; k 10/1m", "0 10 8 -1 12000 1 0"},
	{"k 10/1m COST 4; k 100/1m", "0 100 59 -1 24600 1 0"},
}

func TestTake(t *testing.T) {
	t.Parallel()
	srv := start(t)
	for _, resp3 := range []bool{false, true} {
		c := dial(t, srv.addr)
		if resp3 {
			c.do("HELLO", "3")
		}
		for _, step := range takeSteps {
			again(t, func(string) string {
				c.do("CL.RESET", "k")
				calls := strings.Split(step.calls, "; ")
				var batch []byte
				for _, call := range calls {
					batch = append(batch, frame(append([]string{"CL.TAKE"}, strings.Fields(call)...)...)...)
				}
				c.send(batch)
				var got string
				for range calls {
					got = c.reply()
				}
				words := strings.Split(step.want, "/")
				var nested []string
				if len(words) > 1 {
					limits := fmt.Sprintf("*%d\r\n", len(words)-1)
					for _, ints := range words[1:] {
						limits += intsReply(ints)
					}
					nested = []string{limits}
				}
				if want := intsReply(words[0], nested...); got != want {
					return fmt.Sprintf("CL.TAKE %s\n got %q\nwant %q", step.calls, got, want)
				}
				return ""
			})
		}
	}
}

// TestTakeMany asks for several keys, and gives back.
func TestTakeMany(t *testing.T) {
	t.Parallel()
	srv := start(t)
	for _, resp3 := range []bool{false, true} {
		c := dial(t, srv.addr)
		if resp3 {
			c.do("HELLO", "3")
		}
		c.do("FLUSHALL")
		for _, step := range []struct{ call, want string }{
			{"CL.MTAKE 2 a 10/1h b 5/1h COST 2", "0 0 2 -1 0/0 10 8 -1 720000/0 5 3 -1 1440000"},
			{"CL.MTAKE 2 c 10/1h c 10/1h COST 2", "0 0 2 -1 0/0 10 8 -1 720000/0 10 6 -1 1440000"},
			{"CL.MTAKE 2 d 10/1h d 10/1h COST 6", "1 2 0 -1 0/0 10 10 -1 0/1 10 10 -1 0"},
			{"CL.MTAKE 2 e 10/1h d 5/1h COST 6", "1 2 0 -1 0/0 10 10 -1 0/1 5 5 -1 0"},
			{"CL.MTAKE 2 d 5/1h e 10/1h COST 6 US", "1 1 0 -1 0/1 5 5 -1 0/0 10 10 -1 0"},
			{"CL.MTAKE 2 d 5/1h e 10/1h COST 6 UPTO", "0 0 5 -1 0/0 5 0 -1 3600000/0 10 5 -1 1800000"},
			{"CL.MTAKE 1 f 5/1h PEEK", "0 0 0 -1 0/0 5 5 -1 0"},
			{"CL.MTAKE 1 f 5/1h FORCE COST 7", "0 0 7 -1 0/0 5 0 -1 5040000"},
		} {
			parts := strings.Split(step.want, "/")
			want := fmt.Sprintf("*%d\r\n", len(parts)) + intsReply(parts[0])
			for _, ints := range parts[1:] {
				want += intsReply(ints)
			}
			if got := c.do(strings.Fields(step.call)...); got != want {
				t.Errorf("%s\n got %q\nwant %q", step.call, got, want)
			}
		}
		if got := keyList(c.do("KEYS", "*")); len(got) != 6 {
			t.Errorf("KEYS: %q, want a to f", got)
		}
		for _, step := range []struct{ call, want string }{
			{"CL.TAKE g 10/1h COST 4", ""}, {"CL.GIVE g 10/1h 3", "3"}, {"CL.GIVE g 10/1h 3", "1"}, {"EXISTS g", "0"}, {"CL.GIVE g 10/1h 3", "0"},
			{"CL.TAKE g 10/1h,algo=window COST 4", ""}, {"CL.GIVE g 10/1h 3", "0"}, {"CL.GIVE g 10/1h,algo=window 0", "0"}, {"CL.GIVE g 10/1h,algo=window 9223372036854775807", "4"}, {"EXISTS g", "0"},
			{"CL.TAKE g 10/1h,algo=log COST 4", ""}, {"CL.GIVE g 10/1h,algo=log 1", "1"}, {"CL.GIVE g 10/1h,algo=log 9", "3"},
			{"CL.TAKE g 10/1h,algo=slide COST 4", ""}, {"CL.GIVE g 10/1h,algo=slide 9", "4"},
			{"CL.TAKE g 10/1h,algo=slide,buckets=6 COST 4", ""}, {"CL.GIVE g 10/1h,algo=slide,buckets=6 9", "4"}, {"EXISTS g", "0"},
			{"CL.RESET a b nosuch", "2"},
		} {
			if got := c.do(strings.Fields(step.call)...); step.want != "" && got != ":"+step.want+"\r\n" || got[0] == '-' {
				t.Errorf("%s: %q, want %s", step.call, got, step.want)
			}
		}
	}
}

// TestTakeGoRedis uses a library that knows nothing of the commands.
func TestTakeGoRedis(t *testing.T) {
	t.Parallel()
	srv := start(t)
	ctx := context.Background()
	want := []int64{0, 5, 4, -1, 720000, 1, 0}
	for _, protocol := range []int{0, 2, 3} { // 0 is go-redis's default
		db := redis.NewClient(&redis.Options{Addr: srv.addr, Protocol: protocol})
		defer db.Close()
		key := fmt.Sprint("k", protocol)
		if got, err := db.Do(ctx, "CL.TAKE", key, "5/1h").Int64Slice(); err != nil || !slices.Equal(got, want) {
			t.Errorf("CL.TAKE: %v, %v", got, err)
		}
		if fields, err := db.HGetAll(ctx, key).Result(); err != nil || len(fields) != 1 || !strings.HasPrefix(fields["gcra/1h"], "limit=5/1h tat=") {
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
	srv := start(t)
	if got := cli(t, srv.addr, "", "CL.TAKE", "k", "100/1m", "1000/1h", "5/1s,algo=log"); got != "0\n5\n4\n-1\n3600\n1\n0\n" { // the README's
		t.Errorf("CL.TAKE: %q", got)
	}
	if got := cli(t, srv.addr, "", "-3", "--json", "CL.TAKE", "k3", "2/1m", "FULL"); got !=
		"[0,2,1,-1,30000,1,0,[[0,2,1,-1,30000]]]\n" {
		t.Errorf("CL.TAKE FULL: %s", got)
	}
	if got := cli(t, srv.addr, "", "--bigkeys"); !strings.Contains(got, "2 hashs with 4 fields") {
		t.Errorf("redis-cli --bigkeys: %s", got)
	}
}
