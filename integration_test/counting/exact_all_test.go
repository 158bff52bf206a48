//go:build all

// Package counting runs what counts by INCR and INCREX: libraries as they are, and many connections at once.
package counting

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"celld/integration_test/harness"
	"celld/integration_test/harness/engines"

	_ "pgregory.net/rapid" // all test packages take its flags
)

// countAtOnce adds to one key up to a bound, and to another without end, by 200 connections that are spread over servers. It returns how
// many additions the bound let pass.
func countAtOnce(t *testing.T, servers []*harness.Server, calls int) (admitted int64) {
	t.Helper()
	const connections = 200
	var mu sync.Mutex
	var running sync.WaitGroup
	for i := range connections {
		c := harness.Dial(t, servers[i%len(servers)].Addr)
		running.Go(func() {
			var sum int64
			for range calls {
				c.Send(append(harness.Frame("INCREX", "{k}", "UBOUND", "1000", "EX", "3600", "ENX"), harness.Frame("INCR", "{k}all")...))
				var value, added int64
				raw := c.Reply()
				if n, err := fmt.Sscanf(raw, "*2\r\n:%d\r\n:%d\r\n", &value, &added); n != 2 || value < 1 || value > 1000 {
					t.Errorf("INCREX: %q, %v", raw, err)
					return
				}
				sum += added
				if raw := c.Reply(); !strings.HasPrefix(raw, ":") {
					t.Errorf("INCR: %q", raw)
					return
				}
			}
			mu.Lock()
			admitted += sum
			mu.Unlock()
		})
	}
	running.Wait()
	c := harness.Dial(t, servers[0].Addr)
	if got, want := c.Do("GET", "{k}all"), fmt.Sprint(connections*calls); !strings.Contains(got, "\r\n"+want+"\r\n") {
		t.Errorf("%q is counted, want %s", got, want)
	}
	if got := c.Do("GET", "{k}"); got != "$4\r\n1000\r\n" {
		t.Errorf("the key holds %q, want its bound", got)
	}
	return admitted
}

// A bound admits as many as it says, also while the files are written with each call.
func TestABoundIsExact(t *testing.T) {
	for name, flags := range map[string][]string{
		"memory": {"--io-threads", "2"}, "always": {"--appendonly", "yes", "--appendfsync", "always", "--io-threads", "2"},
	} {
		t.Run(name, func(t *testing.T) {
			servers := []*harness.Server{harness.StartStress(t, append(flags, "--dir", t.TempDir())...)}
			if n := countAtOnce(t, servers, 20); n != 1000 {
				t.Errorf("%d are admitted, want 1000", n)
			}
		})
	}
}

// Six instances that share an engine admit as many together.
func TestABoundIsExactOnAnEngine(t *testing.T) {
	for _, kind := range engines.Kinds[:2] { // alone, and in a Cluster
		t.Run(kind.Name, func(t *testing.T) {
			f := kind.Start(engines.Redis(t), t)
			var servers []*harness.Server
			for range 6 {
				servers = append(servers, harness.Start(t, "--store", f.URL, "--store-timeout", "20s"))
			}
			if n := countAtOnce(t, servers, 10); n != 1000 {
				t.Errorf("%d are admitted, want 1000", n)
			}
		})
	}
}
