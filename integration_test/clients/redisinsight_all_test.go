//go:build all

package clients

import (
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// question is what a tool sends, and what makes sense of the answer.
type question struct {
	command string
	fits    func(reply string) bool
}

func startsWith(prefixes ...string) func(string) bool {
	return func(reply string) bool {
		for _, prefix := range prefixes {
			if strings.HasPrefix(reply, prefix) {
				return true
			}
		}
		return false
	}
}

func containsLines(lines ...string) func(string) bool {
	return func(reply string) bool {
		for _, line := range lines {
			if !strings.Contains(reply, "\n"+line) {
				return false
			}
		}
		return true
	}
}

func positive(reply string) bool { return celldtest.IntReply(reply) > 0 }

// refused is an answer that RedisInsight takes for no: celld is no cluster and no sentinel, and has neither indexes nor functions.
var refused = startsWith("-ERR unknown command")

// infoShown are the fields of INFO that RedisInsight shows; without one it shows a gap, or no overview.
var infoShown = containsLines("# Server\r\n", "redis_version:", "uptime_in_seconds:", "uptime_in_days:", "executable:", "# Clients\r\n",
	"connected_clients:", "# Memory\r\n", "used_memory:", "maxmemory_policy:", "loading:0\r\n", "# Stats\r\n", "instantaneous_ops_per_sec:",
	"instantaneous_input_kbps:", "instantaneous_output_kbps:", "keyspace_hits:", "keyspace_misses:", "# Replication\r\n", "role:master\r\n",
	"# CPU\r\n", "used_cpu_sys:", "used_cpu_user:", "# Keyspace\r\n", "db0:keys=2,")

// TestRedisInsight replays what RedisInsight 2.70 sends when a database is added, opened and looked through (redisinsight/api/src of its
// repository): with ioredis, so in RESP2.
func TestRedisInsight(t *testing.T) {
	t.Parallel()
	c := harness.Dial(t, harness.Start(t).Addr)
	defer c.Close()
	c.Do("CL.THROTTLE", "calls", "15", "30", "3600")
	c.Do("CL.TAKE", "limits", "5/1h", "COST", "2")

	ok, one := startsWith("+OK\r\n"), startsWith(":1\r\n")
	for _, step := range []struct { // in its order: the keys that it lists have their expiry removed when it shows them
		name      string
		questions []question
	}{
		{"it connects", []question{
			{"CLIENT SETNAME redisinsight-common-5f1c-0-1--", ok}, {"CLIENT SETINFO LIB-NAME ioredis", ok},
			{"CLIENT SETINFO LIB-VER 5.6.0", ok}, {"SELECT 0", ok}, {"INFO", infoShown},
			{"hello", startsWith("*14\r\n$6\r\nserver\r\n$5\r\nredis\r\n")}, {"cluster info", refused}, {"CLUSTER NODES", refused},
			{"CLUSTER SLOTS", refused}, {"sentinel masters", refused},
			{"module list", containsLines("$4\r\nname\r\n$10\r\nredis-cell\r\n")}, {"info server", containsLines("redis_version:7.")},
			{"command info ft.search ft._list", startsWith("*2\r\n$-1\r\n$-1\r\n")},
			{"config get databases", startsWith("*2\r\n$9\r\ndatabases\r\n$1\r\n1\r\n")},
			{"client list", func(reply string) bool {
				text, isBulk := harness.Bulk(reply)
				return isBulk && strings.Contains(text, " lib-name=ioredis ") && strings.Contains(text, " resp=2")
			}},
		}},
		{"it lists keys", []question{
			{"dbsize", startsWith(":2\r\n")}, {"info keyspace", containsLines("db0:keys=2,")},
			{"scan 0 MATCH * COUNT 500", startsWith("*2\r\n$1\r\n0\r\n*2\r\n")},
			{"scan 0 MATCH * COUNT 500 TYPE hash", startsWith("*2\r\n$1\r\n0\r\n*1\r\n$6\r\nlimits\r\n")},
			{"scan 0 MATCH * COUNT 500 TYPE stream", startsWith("*2\r\n$1\r\n0\r\n*0\r\n")},
			{"scan 0 count 2000", startsWith("*2\r\n$1\r\n0\r\n*2\r\n")}, {"type calls", startsWith("+string\r\n")},
			{"type limits", startsWith("+hash\r\n")}, {"type nosuch", startsWith("+none\r\n")}, {"ttl calls", startsWith(":1")},
			{"ttl limits", startsWith(":1")}, {"ttl nosuch", startsWith(":-2\r\n")}, {"memory usage calls samples 0", positive},
			{"memory usage limits samples 0", positive}, {"memory usage nosuch samples 0", startsWith("$-1\r\n")},
		}},
		{"it shows keys", []question{
			{"exists calls", one}, {"strlen calls", startsWith(":19\r\n")}, {"getrange calls 0 4999", startsWith("$19\r\n")},
			{"get calls", startsWith("$19\r\n")},
			{"hlen limits", one}, {"hscan limits 0 MATCH * COUNT 500", startsWith("*2\r\n$1\r\n0\r\n*2\r\n$7\r\ngcra/1h\r\n")},
			{"hget limits gcra/1h", startsWith("$")}, {"hget limits x", startsWith("$-1\r\n")}, {"expire calls 60", one},
			{"persist calls", one}, {"object encoding calls", startsWith("$3\r\nint\r\n")}, {"exists limits", one},
			{"renamenx limits calls", startsWith(":0\r\n")}, {"renamenx limits renamed", one}, {"renamenx renamed limits", one},
		}},
		{"it analyses", []question{
			{"FT._LIST", refused}, {"TFUNCTION LIST", refused}, {"acl list", startsWith("*1\r\n$")},
			{"info memory", containsLines("used_memory:")}, {"info clients", containsLines("connected_clients:")},
			{"config get set-max-intset-entries", startsWith("*0\r\n")}, {"config get hash-max-ziplist-entries", startsWith("*0\r\n")},
			{"slowlog get 50", startsWith("*")}, {"config get slowlog*", startsWith("*4\r\n")}, {"config set slowlog-max-len 64", ok},
			{"config set slowlog-log-slower-than 5000", ok}, {"slowlog reset", ok}, {"command", startsWith("*")},
			{"COMMAND DOCS get", startsWith("*2\r\n$3\r\nget\r\n")},
		}},
	} {
		t.Run(step.name, func(t *testing.T) {
			for _, q := range step.questions {
				if reply := c.Do(strings.Fields(q.command)...); !q.fits(reply) {
					t.Errorf("%s: %.2000q", q.command, reply)
				}
			}
		})
	}
	for _, q := range []question{{"del calls", one}, {"monitor", ok}} { // what it does last
		if reply := c.Do(strings.Fields(q.command)...); !q.fits(reply) {
			t.Errorf("%s: %.2000q", q.command, reply)
		}
	}
}
