package clients

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// clientsDir is where `make clients` installs what requirements.txt and package.json in testdata name.
const clientsDir = "../../.cache/clients"

// clientFacts is what each script of testdata prints, whatever its language.
type clientFacts struct {
	Throttle []int64
	Allowed  int     // of 100 calls on a burst of 50
	Tx       []int64 // what remained after each of two calls in a transaction
	Watch    string
	Error    string
	Name     string
	Scan     []string
	TTL      int64
	Missing  *string
	Info     bool
	Config   map[string]string
	Take     []int64 // all seven elements of a first call
	MTake    []int64 // the five of all keys, and limit and remaining of each
	RESP     int
	Denied   []bool // the value of `if (limited)`: for the first call, and for a limited one
}

// installedClient is the path of what `make clients` installs. Without it the test is skipped, and fails in CI.
func installedClient(t testing.TB, path string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(clientsDir, path))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		celldtest.Missing(t, "not installed (make clients does it): %v", err)
	}
	return path
}

// runScript runs a script of testdata with the client that it needs, and reads what it prints, one JSON object, into facts.
func runScript(t *testing.T, facts any, client, script string, args ...string) {
	t.Helper()
	installed := installedClient(t, client)
	program := installed
	if strings.HasSuffix(script, ".js") {
		program = celldtest.Need(t, "node")
	}
	text := harness.Script(t, []string{"NODE_PATH=" + filepath.Dir(installed)}, program, append([]string{script}, args...)...)
	if err := json.Unmarshal(text, facts); err != nil {
		t.Fatalf("%s: %v: %s", script, err, text)
	}
}

// TestScriptClients runs redis-py, ioredis and node-redis, with the protocol that they ask for by default, RESP3, and with RESP2.
func TestScriptClients(t *testing.T) {
	t.Parallel()
	for _, client := range []struct{ name, client, script string }{
		{"redis-py", "python/bin/python", "redis_py.py"},
		{"redis-py asyncio", "python/bin/python", "redis_py_asyncio.py"},
		{"ioredis", "node_modules/ioredis", "ioredis.js"},
		{"node-redis", "node_modules/redis", "node_redis.js"},
	} {
		for name, args := range map[string][]string{client.name: nil, client.name + " RESP2": {"2"}} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				var got clientFacts
				srv := harness.Start(t, "--requirepass", "sesame")
				runScript(t, &got, client.client, client.script, append([]string{"redis://:sesame@" + srv.Addr + "/0"}, args...)...)
				want := clientFacts{
					Throttle: []int64{0, 16, 15, -1, 200}, Allowed: 50, Tx: []int64{15, 14}, Watch: "refused",
					Error: "Cell error: Store error: Couldn't parse as integer: x", Take: []int64{0, 2, 1, -1, 1_800_000, 1, 0},
					MTake: []int64{0, 0, 1, -1, 0, 2, 0, 5, 4}, Denied: []bool{false, true},
					Name: "limiter", Scan: []string{"k", "other", "piped", "take", "tx"}, TTL: got.TTL, Info: true,
					Config: map[string]string{"timeout": "0"}, RESP: 3,
				}
				if args != nil {
					want.RESP = 2
				}
				if !reflect.DeepEqual(got, want) || got.TTL < 9_900 || got.TTL > 10_000 {
					t.Errorf("%s\n got %+v\nwant %+v", name, got, want)
				}
			})
		}
	}
}
