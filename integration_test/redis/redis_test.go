package redis

import (
	"sync"
	"testing"

	"celld/integration_test/harness"
	"celld/integration_test/harness/engines"
	"celld/internal/celldtest"
)

// TestRedis compares the commands that Redis has too.
func TestRedis(t *testing.T) {
	t.Parallel()
	celldtest.Need(t, "redis-server")
	compareFolder(t, "../../resp/testdata/redis", redisDifferences, func(file string) (celld, redis []string) {
		if file == "auth" {
			celld = []string{"--requirepass", "sesame"}
		}
		return celld, celld
	})
}

// TestCountsOnOthers compares INCR and its kin with Redis 8.2, and with Valkey 8.1. Others say some errors in other words.
func TestCountsOnOthers(t *testing.T) {
	t.Parallel()
	celld := harness.Start(t).Addr
	engines.EachEngine(t, func(t *testing.T, e engines.Engine) {
		if !e.Always() {
			return
		}
		p := &redisPair{t: t, celld: celld, redis: e.Alone(t).Nodes[0].Addr, used: &sync.Map{}}
		for _, c := range celldtest.ReadConversations(t, "../../resp/testdata/redis") {
			for _, paragraph := range c.Paragraphs {
				if c.Name == "count" {
					p.compareAgain(false, paragraph)
				}
			}
		}
	})
}
