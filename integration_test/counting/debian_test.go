//go:build all

package counting

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// A script of testdata drives a library of Debian and prints a line for each thing that the library answers.
type script struct {
	name   string
	probe  string   // a program that fails where a library is not installed
	run    []string // with the file's name
	kinds  []string // the clients and stores that it has
	prefix string   // what each of its keys begins with, before the prefix that it is given
	says   []string // some of its lines, whatever the server
}

var (
	laravel = script{
		name: "php",
		probe: `require 'Illuminate/Cache/autoload.php'; require 'Illuminate/Redis/autoload.php'; require 'Predis/autoload.php';
			exit(class_exists('Redis') && class_exists('Predis\Client') && class_exists('Illuminate\Redis\RedisManager') ? 0 : 1);`,
		run:    []string{"laravel.php"},
		kinds:  []string{"phpredis", "predis"},
		prefix: "database_",
		says: []string{
			"after hit 2, too many = false", "after hit 3, too many = true", "after hit 4, remaining = -1", `attempt 2 = "answer 2"`,
			"attempt 3 = false", "after reset, too many = false", "after clear, attempts = 0", "increment by 5 = 5", "decrement by 5 = 0",
			"short denied = true", "hit in the second window = 1",
		},
	}
	rackAttack = script{
		name: "ruby",
		probe: `%w[rack rack/attack redis redis-store active_support active_support/cache active_support/cache/redis_cache_store
			redis-activesupport].each { |name| require name }`,
		run:   []string{"-W0", "rack_attack.rb"}, // the libraries warn of each other
		kinds: []string{"redis", "redis-store", "cache-store", "redis-activesupport"},
		says: []string{
			"limited 3 = [200,null]", `limited 4 = [429,["by ip","throttle",{"count":4,"limit":3}]]`,
			"after reset of the count = [200,null]", `tracked 3 = [200,["seen","track",{"count":3,"limit":2}]]`,
			`then = [403,["fail2ban","blocklist",null]]`, "banned after reset = false",
			`login 3 = [403,["allow2ban","blocklist",null]]`, "short, a second later = [200,null]", "keys after reset of all = []",
		},
	}
)

// TestLaravel runs Laravel's RateLimiter, whose cache is a Redis, on celld and on redis-server.
func TestLaravel(t *testing.T) {
	t.Parallel()
	laravel.compare(t, "-r")
}

// TestRackAttack runs rack-attack with each store of Redis that it knows.
func TestRackAttack(t *testing.T) {
	t.Parallel()
	rackAttack.compare(t, "-e")
}

// compare runs the script on both servers, with each client. They must say the same, and leave the same keys.
func (s script) compare(t *testing.T, inline string) {
	if out, err := harness.TryTool(t, "", s.name, inline, s.probe); err != nil {
		celldtest.Missing(t, "a library of %s is not installed (make tools test-all does it): %v\n%s", s.name, err, out)
	}
	celld, redis := harness.Start(t).Addr, celldtest.StartRedis(t)
	for _, kind := range s.kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			celldtest.Again(t, func(attempt string) string { // an hour may end meanwhile
				prefix := kind + attempt
				got, want := s.lines(t, kind, celld, prefix), s.lines(t, kind, redis, prefix)
				for _, line := range s.says {
					if !strings.Contains(want, line+"\n") {
						return "redis-server: the script does not say: " + line
					}
				}
				if difference := firstDifference(got, want); difference != "" {
					return difference
				}
				return firstDifference(keys(t, celld, s.prefix+prefix), keys(t, redis, s.prefix+prefix))
			})
		})
	}
}

// lines is what the script prints.
func (s script) lines(t *testing.T, kind, addr, prefix string) string {
	t.Helper()
	return string(harness.Script(t, nil, celldtest.Need(t, s.name), append(slices.Clone(s.run), kind, addr, prefix)...))
}

// keys lists the keys with a prefix, what they hold and for how long, a line each.
func keys(t *testing.T, addr, prefix string) string {
	t.Helper()
	c := harness.Dial(t, addr)
	var lines strings.Builder
	for _, key := range harness.KeyList(c.Do("KEYS", prefix+"*")) {
		value, _ := harness.Bulk(c.Do("GET", key))
		if strings.HasSuffix(key, ":timer") {
			lines.WriteString("seconds, ")
		}
		fmt.Fprintf(&lines, "%s = %s\nseconds, %s = %d\n", key, value, key, celldtest.IntReply(c.Do("TTL", key)))
	}
	return lines.String()
}

// firstDifference names the first lines that differ, or is "". A line that begins with "seconds" may be off by some seconds, as a machine
// may be slow.
func firstDifference(got, want string) string {
	gots, wants := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i, line := range wants {
		if i >= len(gots) {
			return "celld: nothing, redis-server: " + line
		}
		if gots[i] != line && !sameSeconds(gots[i], line) {
			return "celld: " + gots[i] + ", redis-server: " + line
		}
	}
	if len(gots) > len(wants) {
		return "celld: " + gots[len(wants)] + ", redis-server: nothing"
	}
	return ""
}

func sameSeconds(got, want string) bool {
	what, text, _ := strings.Cut(got, " = ")
	whatToo, textToo, _ := strings.Cut(want, " = ")
	a, err := strconv.ParseInt(text, 10, 64)
	b, errToo := strconv.ParseInt(textToo, 10, 64)
	return err == nil && errToo == nil && what == whatToo && strings.HasPrefix(what, "seconds, ") &&
		max(a-b, b-a) <= 10 && (a < 0) == (b < 0)
}
