package redis

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// TestTrackingAsRedis sends the same random reads to celld and to redis-server on connections that track. celld announces
// keys at once, and Redis when all keys are written afterwards: it must be the same keys.
func TestTrackingAsRedis(t *testing.T) {
	t.Parallel()
	celldAddr, redisAddr := harness.Start(t).Addr, celldtest.StartRedis(t)
	celldOther, redisOther := harness.Dial(t, celldAddr), harness.Dial(t, redisAddr)
	r := celldtest.NewRand(t)
	announcements := 0
	for range 150 {
		script := [][]string{{"HELLO", "3"}, {"CLIENT", "TRACKING", "ON"}}
		if mode := []string{"", "OPTIN"}[r.IntN(2)]; mode != "" {
			script[1] = append(script[1], mode)
		}
		for range 1 + r.IntN(20) {
			script = append(script, randomRead(r))
		}
		script = append(script, []string{"EXEC"}, []string{"EXEC"}) // ends a transaction; without one it is an error

		celld, redis := harness.Dial(t, celldAddr), harness.Dial(t, redisAddr)
		got := announcedBy(celld, script)
		early := announcedBy(redis, script)
		writeAll(redisOther)
		want := announcedBy(redis, nil)
		if len(early) > 0 || !slices.Equal(got, want) {
			t.Errorf("%q\ncelld announces %q\nredis %q, and before the keys changed %q", script, got, want, early)
		}
		writeAll(celldOther)
		if late := announcedBy(celld, nil); len(late) > 0 {
			t.Errorf("%q\nannounced again: %q", script, late)
		}
		announcements += len(got)
		celld.Close()
		redis.Close()
	}
	if announcements < 100 {
		t.Errorf("only %d announcements", announcements)
	}
}

// randomRead is a command that a client could send between CLIENT TRACKING ON and OFF, and that writes nothing.
func randomRead(r *rand.Rand) []string {
	key := func() string { return string(rune('a' + r.IntN(4))) }
	switch r.IntN(14) {
	case 0, 1:
		return []string{"CLIENT", "CACHING", "YES"}
	case 2, 3:
		return []string{"CLIENT", "CACHING", "NO"}
	case 4:
		return []string{"MULTI"}
	case 5:
		return []string{"EXEC"}
	case 6:
		return []string{"DISCARD"}
	case 7:
		return [][]string{{"PING"}, {"NOSUCH"}, {"CLIENT", "ID"}, {"CLIENT", "NOSUCH"}, {"GET"}, {"DBSIZE"}, {"WATCH", key()}}[r.IntN(7)]
	case 8:
		return []string{"EXISTS", key(), key()}
	case 9:
		return []string{"HGETALL", key()} // an error, as it is a string
	case 10:
		return []string{[]string{"TTL", "STRLEN", "TYPE", "TOUCH", "PTTL"}[r.IntN(5)], key()}
	}
	return []string{"GET", key()}
}

func writeAll(c *harness.Conn) {
	c.T.Helper()
	for _, key := range []string{"a", "b", "c", "d"} {
		c.Do("SET", key, "9000000000000000000")
	}
}

// announcedBy sends commands and a PING, and returns the keys that were announced as changed before its reply, sorted.
func announcedBy(c *harness.Conn, commands [][]string) []string {
	c.T.Helper()
	var all []byte
	for _, command := range commands {
		all = append(all, harness.Frame(command...)...)
	}
	c.Send(append(all, harness.Frame("PING", "end")...))
	found := map[string]bool{}
	for {
		reply := c.Reply()
		if reply == "$3\r\nend\r\n" {
			return slices.Sorted(maps.Keys(found))
		}
		if list, ok := strings.CutPrefix(reply, ">2\r\n$10\r\ninvalidate\r\n"); ok {
			for _, key := range harness.KeyList(list) {
				found[key] = true
			}
		}
	}
}
