package redis

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"celld/integration_test/harness"
)

// TestScan walks keyspaces with SCAN and compares the keys found with Redis's: each at least once, and none other.
func TestScan(t *testing.T) {
	t.Parallel()
	celld, redis := startRedisPair(t)
	for _, c := range []*harness.Conn{celld, redis} {
		var b []byte
		for i := range 3000 {
			b = append(b, harness.Frame("SET", fmt.Sprintf("key:%d", i), "9000000000000000000")...)
		}
		c.Send(b)
		for range 3000 {
			if got := c.Reply(); got != "+OK\r\n" {
				t.Fatal(got)
			}
		}
	}
	for _, options := range []string{
		"", "COUNT 1", "COUNT 7", "COUNT 100", "COUNT 5000", "COUNT 9223372036854775807", "MATCH key:1*", "MATCH key:?", "MATCH nosuch*",
		"MATCH key:[12]9? COUNT 50", "TYPE string", "TYPE STRING COUNT 500", "TYPE hash", "TYPE string MATCH *99 COUNT 99",
	} {
		got, want := scan(celld, strings.Fields(options)), scan(redis, strings.Fields(options))
		if !maps.Equal(got, want) {
			t.Errorf("SCAN %s: %d keys, in Redis %d", options, len(got), len(want))
		}
	}
	if got, want := harness.KeyList(celld.Do("KEYS", "*")), harness.KeyList(redis.Do("KEYS", "*")); !slices.Equal(got, want) {
		t.Errorf("KEYS *: %d keys, in Redis %d", len(got), len(want))
	}
	if got := celld.Do("RANDOMKEY"); !strings.Contains(got, "key:") {
		t.Errorf("RANDOMKEY: %q", got)
	}
}

func scan(c *harness.Conn, options []string) map[string]bool {
	found, cursor := map[string]bool{}, "0"
	for range 100_000 {
		raw := c.Do(append([]string{"SCAN", cursor}, options...)...)
		list := harness.KeyList(raw)
		if len(list) == 0 {
			c.T.Fatalf("SCAN %s %q: %q", cursor, options, raw)
		}
		rest, _ := strings.CutPrefix(raw, "*2\r\n")
		lines := strings.SplitN(rest, "\r\n", 3)
		cursor = lines[1]
		for _, key := range harness.KeyList(lines[2]) {
			found[key] = true
		}
		if cursor == "0" {
			return found
		}
	}
	c.T.Fatalf("SCAN %q does not end", options)
	return nil
}

// TestScanKeepsItsPromise deletes and adds keys while SCAN walks: every key that stays is returned.
func TestScanKeepsItsPromise(t *testing.T) {
	t.Parallel()
	srv := harness.StartStress(t)
	c, other := harness.Dial(t, srv.Addr), harness.Dial(t, srv.Addr)
	for i := range 2000 {
		c.Send(append(harness.Frame("SET", "stays:"+strconv.Itoa(i), "9000000000000000000"),
			harness.Frame("SET", "goes:"+strconv.Itoa(i), "9000000000000000000")...))
	}
	c.Expect(strings.Repeat("+OK\r\n", 4000))
	found, cursor, n := map[string]bool{}, "0", 0
	for {
		raw := c.Do("SCAN", cursor, "COUNT", "10")
		cursor = strings.SplitN(raw, "\r\n", 4)[2]
		for _, key := range harness.KeyList(raw) {
			found[key] = true
		}
		var changes []byte
		for range 20 {
			changes = append(changes, harness.Frame("DEL", "goes:"+strconv.Itoa(n))...)
			changes = append(changes, harness.Frame("SET", "comes:"+strconv.Itoa(n), "9000000000000000000")...)
			n++
		}
		other.Send(changes)
		for range 40 {
			other.Reply()
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
