package take

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// TestKeyExpires sees limits leave by themselves when they are full again, without anyone asking for them.
func TestKeyExpires(t *testing.T) {
	t.Parallel()
	c := harness.Dial(t, harness.Start(t).Addr)
	for i := range 100 {
		c.Throttle("k"+strconv.Itoa(i), "15", "10", "1") // full again after 100 ms
	}
	c.Throttle("stays", "15", "30", "6000")
	celldtest.Eventually(t, "the expired keys are gone", func() bool { return c.Do("DBSIZE") == ":1\r\n" })
	if got := c.Do("KEYS", "*"); got != "*1\r\n$5\r\nstays\r\n" {
		t.Errorf("KEYS *: %q", got)
	}
	celldtest.Eventually(t, "the memory is given back", func() bool {
		return strings.Contains(c.Do("INFO", "stats"), "expired_keys:100\r\n")
	})
}

// TestMaxKeys fills the store: the least recently used limit makes room and is counted, or new keys are refused.
func TestMaxKeys(t *testing.T) {
	t.Parallel()
	fill := func(c *harness.Conn, n int) (refused int) {
		for i := range n {
			raw := c.Do("CL.THROTTLE", "k"+strconv.Itoa(i), "15", "30", "6000")
			if raw == "-OOM command not allowed when keys > 'max-keys'.\r\n" {
				refused++
			} else if _, ok := harness.FiveInts(raw); !ok {
				c.T.Fatalf("CL.THROTTLE: %q", raw)
			}
		}
		return refused
	}
	t.Run("allkeys-lru", func(t *testing.T) {
		t.Parallel()
		c := harness.Dial(t, harness.Start(t, "--max-keys", "1000").Addr)
		if refused := fill(c, 5000); refused != 0 {
			t.Errorf("%d calls refused", refused)
		}
		size := celldtest.IntReply(c.Do("DBSIZE"))
		if size > 1000 || size < 500 {
			t.Errorf("%d keys, of at most 1000", size)
		}
		if want := fmt.Sprintf("evicted_keys:%d\r\n", 5000-size); !strings.Contains(c.Do("INFO", "stats"), want) {
			t.Errorf("no %q in %s", want, c.Do("INFO", "stats"))
		}
		if got := c.Do("EXISTS", "k4999"); got != ":1\r\n" {
			t.Errorf("the newest key: %q", got)
		}
		if got := c.Do("EXISTS", "k0"); got != ":0\r\n" {
			t.Errorf("the oldest key: %q", got)
		}
	})
	t.Run("noeviction", func(t *testing.T) {
		t.Parallel()
		c := harness.Dial(t, harness.Start(t, "--max-keys", "1000", "--maxmemory-policy", "noeviction").Addr)
		refused, size := fill(c, 5000), celldtest.IntReply(c.Do("DBSIZE"))
		if size > 1000 || size < 500 || refused != 5000-int(size) {
			t.Errorf("%d keys, of at most 1000, and %d calls of 5000 refused", size, refused)
		}
		if !strings.Contains(c.Do("INFO", "stats"), "evicted_keys:0\r\n") {
			t.Error("keys were evicted")
		}
		if got := c.Throttle("k0", "15", "30", "6000"); got[2] != 14 {
			t.Errorf("a key that is there: %v", got)
		}
		c.Do("FLUSHALL")
		if refused := fill(c, 10); refused != 0 {
			t.Errorf("%d calls refused after FLUSHALL", refused)
		}
	})
}

// TestRetryAfterIsTrue waits as long as a limited call says, and then passes.
func TestRetryAfterIsTrue(t *testing.T) {
	t.Parallel()
	c := harness.Dial(t, harness.Start(t).Addr)
	c.Send(slices.Repeat(harness.Frame("CL.THROTTLE", "k", "2", "1", "1"), 4)) // at one instant, so that nothing flows back between them
	var limited [5]int64
	for range 4 {
		limited, _ = harness.FiveInts(c.Reply())
	}
	if limited[0] != 1 || limited[3] < 1 || limited[3] > 2 {
		t.Fatalf("the fourth call: %v", limited)
	}
	passes := time.Now().Add(time.Duration(limited[3]) * time.Second)
	celldtest.Eventually(t, "a call passes again", func() bool {
		asked := time.Now()
		limited := c.Throttle("k", "2", "1", "1")[0] == 1
		if limited && asked.After(passes) {
			t.Fatalf("limited %v after the time that it was told", asked.Sub(passes))
		}
		return !limited
	})
}
