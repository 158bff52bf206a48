//go:build all

package engine

import (
	"os"
	"slices"
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/integration_test/harness/engines"
)

// otherwise are tests of folder take that an engine fails, or need not be asked, by the reason.
var otherwise = map[string]string{
	"TestKeyExpires":         "it asks the table how many have expired",
	"TestMaxKeys":            "the engine has the memory",
	"TestPoliciesFile":       "it starts celld again, which gets another prefix then",
	"TestScanLimits":         "its cursor goes past the keys of others",
	"TestTooManyPolicies":    "store/remote/settings has its bounds, on an engine that is filled at once",
	"TestTakeInTransactions": "a policy concerns the whole engine, and cannot be set in MULTI",
}

// TestSameAsInMemory runs the tests of CL.TAKE in folder take with an engine behind each celld: they demand bytes. An engine
// alone also has those of CL.THROTTLE in folder peers, and three engines are a Cluster and have Sentinels.
func TestSameAsInMemory(t *testing.T) {
	run := func(t *testing.T, f *engines.Fleet, args ...string) {
		cmd := harness.Command(t, "go",
			append([]string{"test", "-tags=all", "-count=1", "-timeout=20m", "-vet=off", "-ldflags=-s -w"}, args...)...)
		cmd.Env = append(os.Environ(), harness.StoreVariable+"="+f.URL)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %v\n%s", cmd.Args, err, out)
		}
	}
	for _, kind := range engines.Kinds {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			engines.EachEngine(t, func(t *testing.T, e engines.Engine) {
				if kind.Name != "alone" && !e.Always() {
					return
				}
				f := kind.Start(e, t)
				var skipped []string
				for name := range otherwise {
					skipped = append(skipped, "^"+name+"$")
				}
				slices.Sort(skipped)
				run(t, f, "-skip="+strings.Join(skipped, "|"), "../take")
				if kind.Name == "alone" {
					run(t, f, "-run=TestVectors|TestModule|TestPeerRedis|TestPeerIncr|TestThrottled|TestFromLibraries|TestLibraries|TestTwoNumbers|TestWaitNginx|TestWaitReserve|TestWaitLeaky", "../peers")
				}
			})
		})
	}
}
