package link

import (
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"celld/internal/celldtest"
)

// An engine is away that answers PING and refuses calls, for whatever reason, from the first look on, and no call has to fail for that. The
// look leaves no key.
func TestAnEngineThatRefusesCallsIsAway(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name           string
		refuses, takes []string // what the engine is told
		why            string
	}{
		{"a replica", []string{"REPLICAOF 127.0.0.1 1"}, []string{"REPLICAOF NO ONE"}, "is a read-only replica"},
		{"too few replicas", []string{"CONFIG SET min-replicas-to-write 1"}, []string{"CONFIG SET min-replicas-to-write 0"}, "has too few replicas"},
		{"no memory", []string{"CONFIG SET maxmemory 1"}, []string{"CONFIG SET maxmemory 0"}, "has no memory left"},
		{"no right to write", []string{"ACL SETUSER default -set"}, []string{"ACL SETUSER default +set"}, "lacks a permission"},
		{"no right to run scripts", []string{"ACL SETUSER default -evalsha"}, []string{"ACL SETUSER default +evalsha"}, "lacks a permission"},
		{"no right to load scripts", []string{"ACL SETUSER default -eval", "SCRIPT FLUSH"}, []string{"ACL SETUSER default +eval"}, "lacks a permission"},
		{"no right to its keys", []string{"ACL SETUSER default resetkeys ~other:*"}, []string{"ACL SETUSER default allkeys"}, "lacks a permission"},
		{"a replica that takes writes", []string{"CONFIG SET replica-read-only no", "REPLICAOF 127.0.0.1 1"}, []string{"REPLICAOF NO ONE"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			addr := celldtest.StartRedis(t)
			client := *newTestLink(t, strings.TrimPrefix(addr, "unix:"), Options{}).client.Load()
			tell := func(words ...string) rueidis.RedisResult {
				return client.Do(t.Context(), client.B().Arbitrary(words...).Build())
			}
			for _, line := range c.refuses {
				if err := tell(strings.Fields(line)...).Error(); err != nil {
					t.Fatal(err)
				}
			}
			s := openLink(t, Options{URL: "unix://" + strings.TrimPrefix(addr, "unix:"), Prefix: "p:"})
			if err := s.Away(); (err != nil) != (c.why != "") || err != nil && !strings.Contains(err.Error(), c.why) {
				t.Errorf("away: %v", err)
			}
			for _, line := range c.takes {
				if err := tell(strings.Fields(line)...).Error(); err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, "it is back", func() bool { return s.Away() == nil })
			for _, line := range c.refuses {
				if err := tell(strings.Fields(line)...).Error(); err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, "it is away again", func() bool { return (s.Away() != nil) == (c.why != "") })
			for _, line := range c.takes {
				if err := tell(strings.Fields(line)...).Error(); err != nil {
					t.Fatal(err)
				}
			}
			keys, err := tell("KEYS", "*").AsStrSlice()
			if len(keys) > 0 || err != nil {
				t.Errorf("keys %q, %v", keys, err)
			}
		})
	}
}
