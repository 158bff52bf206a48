package engines

import (
	"os"
	"slices"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// Engine is a Redis or Valkey server that celld may keep its limits on.
type Engine struct {
	Name string // for subtests: redis, valkey-8.1
	path string // of its binary, or of a script that runs it
	env  []string
}

// With is the Engine with variables of the environment, NAME=value.
func (e Engine) With(env ...string) Engine {
	e.env = env
	return e
}

// always are the Engines that are tested with and without build tag all, beside Redis.
var always = []string{"redis-8.2", "valkey-8.1"}

// Always reports whether the Engine is one that is tested without build tag all, too.
func (e Engine) Always() bool { return e.Name == "redis" || slices.Contains(always, e.Name) }

// Redis is the machine's redis-server: Debian's 7.0.
func Redis(t testing.TB) Engine {
	t.Helper()
	return Engine{Name: "redis", path: celldtest.Need(t, "redis-server")}
}

// Engines are Redis and those that `make engines` puts into .cache/engines; with build tag all also those of `make engines-all`.
func Engines(t testing.TB) []Engine {
	t.Helper()
	all, names := []Engine{Redis(t)}, always
	if celldtest.Thorough {
		names = append(slices.Clone(names), "redis-6.2", "redis-8.0", "valkey-8.0", "valkey-9.1")
	}
	for _, name := range names {
		path := harness.CachePath(t, "engines/"+name+"/server")
		if _, err := os.Stat(path); err != nil {
			celldtest.Missing(t, "%s is not installed (make engines-all): %v", name, err)
		}
		all = append(all, Engine{Name: name, path: path})
	}
	return all
}

// Fleet is one engine, a Cluster, or a master that Sentinels watch. It ends with the test.
type Fleet struct {
	T         testing.TB
	Engine    Engine
	URL       string // for celld's --store
	Nodes     []*Node
	Sentinels []*Node
}

// Kinds are the ways to start a Fleet.
var Kinds = []struct {
	Name  string
	Start func(e Engine, t testing.TB, args ...string) *Fleet
}{{"alone", Engine.Alone}, {"cluster", Engine.Cluster}, {"sentinel", Engine.Sentinel}}

// StartEngine runs Debian's redis-server with these arguments, such as --maxmemory 2mb.
func StartEngine(t testing.TB, args ...string) *Fleet {
	t.Helper()
	return Redis(t).Alone(t, args...)
}

// Alone runs one server.
func (e Engine) Alone(t testing.TB, args ...string) *Fleet {
	t.Helper()
	n := e.node(t, args...)
	return &Fleet{T: t, Engine: e, Nodes: []*Node{n}, URL: "redis://" + n.Addr}
}

// EachEngine runs a test on every Engine, as a subtest of its name.
func EachEngine(t *testing.T, test func(*testing.T, Engine)) {
	for _, e := range Engines(t) {
		t.Run(e.Name, func(t *testing.T) { test(t, e) })
	}
}

// EachFleet runs a test on every Engine alone; with build tag all in every kind of Fleet, which takes minutes. Without it the simulation
// has Clusters and Sentinels.
func EachFleet(t *testing.T, test func(*testing.T, *Fleet)) {
	kinds := Kinds
	if !celldtest.Thorough {
		kinds = kinds[:1]
	}
	for _, kind := range kinds {
		t.Run(kind.Name, func(t *testing.T) {
			EachEngine(t, func(t *testing.T, e Engine) { test(t, kind.Start(e, t)) })
		})
	}
}

// addrs are the addresses of nodes as a URL has them.
func addrs(nodes []*Node) string {
	var all string
	for i, n := range nodes {
		if i > 0 {
			all += ","
		}
		all += n.Addr
	}
	return all
}

// Flush removes all keys, scripts included.
func (f *Fleet) Flush() {
	f.T.Helper()
	for _, n := range f.Nodes {
		if n.IsMaster() {
			n.OK("FLUSHALL")
			n.OK("SCRIPT", "FLUSH")
		}
	}
}
