package take

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// These are mistakes of redis-cell that show over time rather than in one reply, so they are not in vectors.json.

// TestFastBucket asks all the time for far more than 5,000 a second of a bucket of a millisecond. redis-cell forgets such a key a
// millisecond early, and lets nearly twice the rate pass.
func TestFastBucket(t *testing.T) {
	t.Parallel()
	c := harness.Dial(t, harness.Start(t).Addr)
	const burst, rate, batch = 5, 5000, 200
	calls := slices.Repeat(harness.Frame("CL.THROTTLE", "fast", "4", "5000", "1"), batch)
	allowed, began := 0, time.Now()
	for time.Since(began) < 500*time.Millisecond {
		c.Send(calls)
		for range batch {
			ints, ok := harness.FiveInts(c.Reply())
			if !ok {
				t.Fatal("no five integers")
			}
			if ints[0] == 0 {
				allowed++
			}
		}
	}
	if most := burst + int(time.Since(began).Seconds()*rate); allowed > most {
		t.Errorf("%d calls passed in %v, at most %d may", allowed, time.Since(began), most)
	}
}

// TestShortWait is limited with a wait of 200 µs: a client that reads 0 would spin.
func TestShortWait(t *testing.T) {
	t.Parallel()
	c := harness.Dial(t, harness.Start(t).Addr)
	limited := 0
	for i := range 100 {
		c.Send(slices.Repeat(harness.Frame("CL.THROTTLE", fmt.Sprint("short", i), "0", "5000", "1"), 3)) // one batch, so one instant
		for range 3 {
			ints, ok := harness.FiveInts(c.Reply())
			if !ok || ints[0] == 1 && ints[3] < 1 || ints[0] == 0 && ints[3] != -1 {
				t.Fatalf("CL.THROTTLE: %v", ints)
			}
			limited += int(ints[0])
		}
	}
	if limited == 0 {
		t.Error("no call was limited, so nothing was tested")
	}
}

// TestRefund gives back what was taken, never more, and never makes a key.
func TestRefund(t *testing.T) {
	t.Parallel()
	c := harness.Dial(t, harness.Start(t).Addr)
	steps := []struct{ call, want string }{
		{"k 9 1 3600 10", "0 10 0 -1 36000"},
		{"k 9 1 3600 1", "1 10 0 3600 36000"},
		{"k 9 1 3600 -4", "0 10 4 -1 21600"},
		{"k 9 1 3600 4", "0 10 0 -1 36000"},
		{"k 9 1 3600 -100", "0 10 10 -1 0"},
		{"k 9 1 3600 0", "0 10 10 -1 0"},
		{"new 9 1 3600 -1", "0 10 10 -1 0"},
		{"new 9 1 3600 0", "0 10 10 -1 0"},
	}
	var calls []byte // in one batch, so that no second passes between them
	for _, step := range steps {
		calls = append(calls, harness.Frame(append([]string{"CL.THROTTLE"}, strings.Fields(step.call)...)...)...)
	}
	c.Send(calls)
	for _, step := range steps {
		if got := c.Reply(); got != harness.FiveReplies(step.want)[0] {
			t.Errorf("CL.THROTTLE %s: %q, want %s", step.call, got, step.want)
		}
	}
	if got := c.Do("EXISTS", "k", "new"); got != ":0\r\n" {
		t.Errorf("EXISTS: %q", got)
	}
}

// TestErrorsChangeNothing sees the key, its value and its deadline after each refused call.
func TestErrorsChangeNothing(t *testing.T) {
	t.Parallel()
	c := harness.Dial(t, harness.Start(t).Addr)
	c.Throttle("k", "9", "1", "3600", "5")
	c.Do("EXPIREAT", "k", "9000000000")
	value := c.Do("GET", "k")
	for _, call := range []string{
		"CL.THROTTLE k", "CL.THROTTLE k 9 1", "CL.THROTTLE k 9 1 3600 1 1", "CL.THROTTLE k x 1 3600", "CL.THROTTLE k 9 0 3600",
		"CL.THROTTLE k 9 1 0", "CL.THROTTLE k -2 1 3600", "CL.THROTTLE k 9 -1 3600", "CL.THROTTLE k 9 1 -3600",
		"CL.THROTTLE k 9223372036854775807 1 3600", "CL.THROTTLE k 9 1 9223372037", "CL.THROTTLE k 9 1 3600 9223372036854775807",
		"CL.THROTTLE k 9 1 3600 -9223372036854775808", "CL.THROTTLE k 9 1 3600 2562048", "SET k abc", "SET k 5 NOSUCH", "SET k -0",
		"SET k 18446744073709551616", "EXPIRE k x", "EXPIRE k 100 NX XX", "RENAME nosuch k", "INCRBY k x", "APPEND k 1", "HSET k f 1",
	} {
		if got := c.Do(strings.Fields(call)...); !strings.HasPrefix(got, "-") {
			t.Errorf("%s: %q", call, got)
		}
		if got := c.Do("GET", "k"); got != value {
			t.Errorf("after %s: GET is %q, was %q", call, got, value)
		}
		if got := c.Do("EXPIRETIME", "k"); got != ":9000000000\r\n" {
			t.Errorf("after %s: EXPIRETIME is %q", call, got)
		}
	}
	if got := c.Do("DBSIZE"); got != ":1\r\n" {
		t.Errorf("DBSIZE: %q", got)
	}
}

// TestAnyKey takes every byte in a key, and every length up to the limit.
func TestAnyKey(t *testing.T) {
	t.Parallel()
	c := harness.Dial(t, harness.Start(t).Addr)
	keys := []string{"", "\x00", "\x00\x00", "\r\n", "\xff", "\xc0\x80", "\xed\xa0\x80", " "}
	for b := range 256 {
		keys = append(keys, "byte"+string([]byte{byte(b)}))
	}
	for n := 1; n <= 64<<10; n = n*3/2 + 1 {
		keys = append(keys, strings.Repeat("n", n))
	}
	keys = append(keys, strings.Repeat("n", 64<<10))
	for round := range 2 {
		for _, key := range keys {
			if got := c.Throttle(key, "15", "30", "6000"); got[2] != int64(15-round) {
				t.Errorf("%.20q (%d bytes), call %d: %v", key, len(key), round+1, got)
			}
		}
	}
	if got := celldtest.IntReply(c.Do("DBSIZE")); got != int64(len(keys)) {
		t.Errorf("%d keys, want %d", got, len(keys))
	}
}
