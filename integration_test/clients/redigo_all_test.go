//go:build all

package clients

import (
	"slices"
	"testing"

	"github.com/gomodule/redigo/redis"

	"celld/integration_test/harness"
)

// TestRedigo uses redigo: RESP2, a connection or a pool, Send and Flush.
func TestRedigo(t *testing.T) {
	t.Parallel()
	srv := harness.Start(t, "--requirepass", "sesame")
	pool := &redis.Pool{Dial: func() (redis.Conn, error) {
		return redis.Dial("tcp", srv.Addr, redis.DialPassword("sesame"), redis.DialClientName("limiter"), redis.DialDatabase(0))
	}}
	defer pool.Close()
	c := pool.Get()
	defer c.Close()

	got, err := redis.Int64s(c.Do("CL.THROTTLE", "k", 15, 30, 60))
	if want := []int64{0, 16, 15, -1, 2}; err != nil || !slices.Equal(got, want) {
		t.Fatalf("CL.THROTTLE: %v, %v, want %v", got, err, want)
	}
	if got, err := redis.Int64s(c.Do("CL.TAKE", "take", "2/1h")); err != nil || !slices.Equal(got, []int64{0, 2, 1, -1, 1_800_000, 1, 0}) {
		t.Errorf("CL.TAKE: %v, %v", got, err)
	}
	if rows, err := redis.Values(c.Do("CL.MTAKE", 2, "take", "2/1h", "other", "5/1h")); err != nil || len(rows) != 3 {
		t.Errorf("CL.MTAKE: %v, %v", rows, err)
	} else if all, err := redis.Int64s(rows[0], nil); err != nil || !slices.Equal(all, []int64{0, 0, 1, -1, 0}) {
		t.Errorf("CL.MTAKE: %v, %v", all, err)
	}
	if name, err := redis.String(c.Do("CLIENT", "GETNAME")); err != nil || name != "limiter" {
		t.Errorf("CLIENT GETNAME: %q, %v", name, err)
	}
	for range 100 {
		c.Send("CL.THROTTLE", "piped", 49, 30, 6000)
	}
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	allowed := 0
	for range 100 {
		if ints, err := redis.Int64s(c.Receive()); err != nil {
			t.Fatal(err)
		} else if ints[0] == 0 {
			allowed++
		}
	}
	if allowed != 50 {
		t.Errorf("%d calls passed, of a burst of 50", allowed)
	}
	c.Send("MULTI")
	c.Send("CL.THROTTLE", "tx", 15, 30, 60)
	if rows, err := redis.Values(c.Do("EXEC")); err != nil || len(rows) != 1 {
		t.Errorf("EXEC: %v, %v", rows, err)
	}
	_, err = c.Do("CL.THROTTLE", "k", "x", 30, 60)
	if err == nil || err.Error() != "Cell error: Store error: Couldn't parse as integer: x" {
		t.Errorf("an error reply: %v", err)
	}
	if _, err := redis.String(c.Do("GET", "nosuch")); err != redis.ErrNil {
		t.Errorf("GET of nothing: %v", err)
	}
	_, err = redis.Dial("tcp", srv.Addr, redis.DialPassword("wrong"))
	if err == nil || err.Error() != "WRONGPASS invalid username-password pair or user is disabled." {
		t.Errorf("a wrong password: %v", err)
	}
}
