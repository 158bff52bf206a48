package integration_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// clientsDir is where `make clients` installs what requirements.txt and package.json in testdata/clients name.
const clientsDir = "../.cache/clients"

// clientFacts is what each script of testdata/clients prints, whatever its language.
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
}

// TestScriptClients runs redis-py, ioredis and node-redis.
func TestScriptClients(t *testing.T) {
	t.Parallel()
	dir, err := filepath.Abs(clientsDir)
	if err != nil {
		t.Fatal(err)
	}
	python, node := filepath.Join(dir, "python/bin/python"), "node"
	for _, run := range []struct {
		name, installed string // what must be there
		command         []string
	}{
		{"redis-py", python, []string{python, "redis_py.py", "", "2"}},
		{"redis-py RESP3", python, []string{python, "redis_py.py", "", "3"}},
		{"redis-py asyncio", python, []string{python, "redis_py_asyncio.py", "", "2"}},
		{"redis-py asyncio RESP3", python, []string{python, "redis_py_asyncio.py", "", "3"}},
		{"ioredis", filepath.Join(dir, "node_modules/ioredis"), []string{node, "ioredis.js", ""}},
		{"node-redis", filepath.Join(dir, "node_modules/redis"), []string{node, "node_redis.js", "", "2"}},
		{"node-redis RESP3", filepath.Join(dir, "node_modules/redis"), []string{node, "node_redis.js", "", "3"}},
	} {
		t.Run(run.name, func(t *testing.T) {
			t.Parallel()
			if _, err := os.Stat(run.installed); err != nil {
				missing(t, "not installed (make clients does it): %v", err)
			}
			srv := start(t, "--requirepass", "sesame")
			command := append([]string{need(t, run.command[0])}, run.command[1:]...)
			command[2] = "redis://:sesame@" + srv.addr + "/0"
			cmd := exec.Command(command[0], command[1:]...)
			cmd.Dir = "testdata/clients"
			cmd.Env = append(cleanEnv(), "NODE_PATH="+filepath.Join(dir, "node_modules"), "PYTHONDONTWRITEBYTECODE=1")
			var stderr strings.Builder
			cmd.Stderr = &stderr
			text, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, stderr.String())
			}
			var got clientFacts
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			want := clientFacts{
				Throttle: []int64{0, 16, 15, -1, 2}, Allowed: 50, Tx: []int64{15, 14}, Watch: "refused", Error: "Cell error: Store error: Couldn't parse as integer: x",
				Name: "limiter", Scan: []string{"k", "piped", "tx"}, TTL: got.TTL, Info: true, Config: map[string]string{"timeout": "0"},
			}
			if !reflect.DeepEqual(got, want) || got.TTL < 9_900 || got.TTL > 10_000 {
				t.Errorf("%s\n got %+v\nwant %+v", run.name, got, want)
			}
			if stderr.Len() > 0 {
				t.Errorf("%s complains: %s", run.name, stderr.String())
			}
		})
	}
}
