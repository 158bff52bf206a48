//go:build all

package engine

import (
	"testing"

	"celld/integration_test/harness"
	"celld/integration_test/harness/engines"
)

// WAIT counts from the moment that the engine decides, as in memory: the way there takes nothing of it.
func TestWaitIsExact(t *testing.T) {
	f := engines.StartEngine(t)
	c := harness.Dial(t, harness.Start(t, "--store", f.URL).Addr)
	c.Play(
		harness.Step{"CL.TAKE k 1/1h,burst=1 WAIT 0", "0 1 0 -1 3600000 1 0"},
		harness.Step{"CL.TAKE other 1/100ms,burst=1 WAIT 0", "0 1 0 -1 100 1 0"},
		harness.Step{"CL.TAKE other 1/100ms,burst=1 WAIT 100", "0 1 0 -1 100 1 0"},
	)
	if got := c.Take("k", "1/1h,burst=1", "WAIT", "0"); got.Limited != 1 || got.RetryMS < 3_500_000 {
		t.Errorf("%+v", got)
	}
}
