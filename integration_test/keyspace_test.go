package integration_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestScan walks keyspaces with SCAN and compares the keys found with Redis's: each at least once, and none other.
func TestScan(t *testing.T) {
	t.Parallel()
	celld, redis := startRedisPair(t)
	for _, c := range []*conn{celld, redis} {
		var b []byte
		for i := range 3000 {
			b = append(b, frame("SET", fmt.Sprintf("key:%d", i), "9000000000000000000")...)
		}
		c.send(b)
		for range 3000 {
			if got := c.reply(); got != "+OK\r\n" {
				t.Fatal(got)
			}
		}
	}
	for _, options := range []string{
		"", "COUNT 1", "COUNT 7", "COUNT 100", "COUNT 5000", "COUNT 9223372036854775807", "MATCH key:1*", "MATCH key:?", "MATCH nosuch*", "MATCH key:[12]9? COUNT 50",
		"TYPE string", "TYPE STRING COUNT 500", "TYPE hash", "TYPE string MATCH *99 COUNT 99",
	} {
		got, want := scan(celld, strings.Fields(options)), scan(redis, strings.Fields(options))
		if !maps.Equal(got, want) {
			t.Errorf("SCAN %s: %d keys, in Redis %d", options, len(got), len(want))
		}
	}
	if got, want := keyList(celld.do("KEYS", "*")), keyList(redis.do("KEYS", "*")); !slices.Equal(got, want) {
		t.Errorf("KEYS *: %d keys, in Redis %d", len(got), len(want))
	}
	if got := celld.do("RANDOMKEY"); !strings.Contains(got, "key:") {
		t.Errorf("RANDOMKEY: %q", got)
	}
}

func scan(c *conn, options []string) map[string]bool {
	found, cursor := map[string]bool{}, "0"
	for range 100_000 {
		raw := c.do(append([]string{"SCAN", cursor}, options...)...)
		list := keyList(raw)
		if len(list) == 0 {
			c.t.Fatalf("SCAN %s %q: %q", cursor, options, raw)
		}
		rest, _ := strings.CutPrefix(raw, "*2\r\n")
		lines := strings.SplitN(rest, "\r\n", 3)
		cursor = lines[1]
		for _, key := range keyList(lines[2]) {
			found[key] = true
		}
		if cursor == "0" {
			return found
		}
	}
	c.t.Fatalf("SCAN %q does not end", options)
	return nil
}

// keyList reads every bulk string of a reply, sorted.
func keyList(raw string) (keys []string) {
	lines := strings.Split(raw, "\r\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "$") && line != "$-1" && i+1 < len(lines) {
			keys = append(keys, lines[i+1])
		}
	}
	slices.Sort(keys)
	return keys
}

// TestScanKeepsItsPromise deletes and adds keys while SCAN walks: every key that stays is returned.
func TestScanKeepsItsPromise(t *testing.T) {
	t.Parallel()
	srv := startStress(t)
	c, other := dial(t, srv.addr), dial(t, srv.addr)
	for i := range 2000 {
		c.send(append(frame("SET", "stays:"+strconv.Itoa(i), "9000000000000000000"), frame("SET", "goes:"+strconv.Itoa(i), "9000000000000000000")...))
	}
	c.expect(strings.Repeat("+OK\r\n", 4000))
	found, cursor, n := map[string]bool{}, "0", 0
	for {
		raw := c.do("SCAN", cursor, "COUNT", "10")
		cursor = strings.SplitN(raw, "\r\n", 4)[2]
		for _, key := range keyList(raw) {
			found[key] = true
		}
		var changes []byte
		for range 20 {
			changes = append(changes, frame("DEL", "goes:"+strconv.Itoa(n))...)
			changes = append(changes, frame("SET", "comes:"+strconv.Itoa(n), "9000000000000000000")...)
			n++
		}
		other.send(changes)
		for range 40 {
			other.reply()
		}
		if cursor == "0" {
			break
		}
		if n > 1_000_000 {
			t.Fatal("SCAN does not end while keys are added")
		}
	}
	for i := range 2000 {
		if key := "stays:" + strconv.Itoa(i); !found[key] {
			t.Errorf("%s was never returned", key)
		}
	}
}

// TestKeyExpires sees limits leave by themselves when they are full again, without anyone asking for them.
func TestKeyExpires(t *testing.T) {
	t.Parallel()
	c := dial(t, start(t).addr)
	for i := range 100 {
		c.throttle("k"+strconv.Itoa(i), "15", "10", "1") // full again after 100 ms
	}
	c.throttle("stays", "15", "30", "6000")
	eventually(t, "the expired keys are gone", func() bool { return c.do("DBSIZE") == ":1\r\n" })
	if got := c.do("KEYS", "*"); got != "*1\r\n$5\r\nstays\r\n" {
		t.Errorf("KEYS *: %q", got)
	}
	eventually(t, "the memory is given back", func() bool {
		return strings.Contains(c.do("INFO", "stats"), "expired_keys:100\r\n")
	})
}

// TestMaxKeys fills the store: the least recently used limit makes room and is counted, or new keys are refused.
func TestMaxKeys(t *testing.T) {
	t.Parallel()
	fill := func(c *conn, n int) (refused int) {
		for i := range n {
			raw := c.do("CL.THROTTLE", "k"+strconv.Itoa(i), "15", "30", "6000")
			if raw == "-OOM command not allowed when used memory > 'maxmemory'.\r\n" {
				refused++
			} else if _, ok := fiveInts(raw); !ok {
				c.t.Fatalf("CL.THROTTLE: %q", raw)
			}
		}
		return refused
	}
	t.Run("allkeys-lru", func(t *testing.T) {
		t.Parallel()
		c := dial(t, start(t, "--max-keys", "1000").addr)
		if refused := fill(c, 5000); refused != 0 {
			t.Errorf("%d calls refused", refused)
		}
		size := intReply(c.do("DBSIZE"))
		if size > 1000 || size < 500 {
			t.Errorf("%d keys, of at most 1000", size)
		}
		if want := fmt.Sprintf("evicted_keys:%d\r\n", 5000-size); !strings.Contains(c.do("INFO", "stats"), want) {
			t.Errorf("no %q in %s", want, c.do("INFO", "stats"))
		}
		if got := c.do("EXISTS", "k4999"); got != ":1\r\n" {
			t.Errorf("the newest key: %q", got)
		}
		if got := c.do("EXISTS", "k0"); got != ":0\r\n" {
			t.Errorf("the oldest key: %q", got)
		}
	})
	t.Run("noeviction", func(t *testing.T) {
		t.Parallel()
		c := dial(t, start(t, "--max-keys", "1000", "--maxmemory-policy", "noeviction").addr)
		refused, size := fill(c, 5000), intReply(c.do("DBSIZE"))
		if size > 1000 || size < 500 || refused != 5000-int(size) {
			t.Errorf("%d keys, of at most 1000, and %d calls of 5000 refused", size, refused)
		}
		if !strings.Contains(c.do("INFO", "stats"), "evicted_keys:0\r\n") {
			t.Error("keys were evicted")
		}
		if got := c.throttle("k0", "15", "30", "6000"); got[2] != 14 {
			t.Errorf("a key that is there: %v", got)
		}
		c.do("FLUSHALL")
		if refused := fill(c, 10); refused != 0 {
			t.Errorf("%d calls refused after FLUSHALL", refused)
		}
	})
}

// intReply reads an integer reply.
func intReply(raw string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimPrefix(raw, ":")), 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// TestRetryAfterIsTrue waits for what a limited call was told to wait for, and is then let through.
func TestRetryAfterIsTrue(t *testing.T) {
	t.Parallel()
	c := dial(t, start(t).addr)
	for range 3 {
		c.throttle("k", "2", "1", "1")
	}
	limited := c.throttle("k", "2", "1", "1")
	if limited[0] != 1 || limited[3] < 1 || limited[3] > 2 {
		t.Fatalf("the fourth call: %v", limited)
	}
	passes := time.Now().Add(time.Duration(limited[3]) * time.Second)
	eventually(t, "a call passes again", func() bool {
		asked := time.Now()
		limited := c.throttle("k", "2", "1", "1")[0] == 1
		if limited && asked.After(passes) {
			t.Fatalf("limited %v after the time that it was told", asked.Sub(passes))
		}
		return !limited
	})
}
