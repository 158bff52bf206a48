//go:build all

package peers

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"celld/cell"
	"celld/internal/celldtest"
)

// TestGuavaWarmup compares the waits of Guava's SmoothWarmingUp with those of `CL.TAKE k 5/1s,warmup=5s RESERVE`, for rates,
// warmups and cold factors that differ, with callers who wait, do not wait, and rest.
//
// Guava drops parts of a µs from each call that waits, and celld parts of a ns. So Guava lets the next through that much sooner,
// and has rested as much longer, which makes the calls after it that much dearer, times the steepness of the curve.
func TestGuavaWarmup(t *testing.T) {
	t.Parallel()
	java, javac := celldtest.Need(t, "java"), celldtest.Need(t, "javac")
	if _, err := os.Stat(guavaJar); err != nil {
		celldtest.Missing(t, "no Guava: %v", err)
	}
	classes := t.TempDir()
	run := func(name string, args ...string) string {
		out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
		return string(out)
	}
	run(javac, "-cp", guavaJar, "-d", classes, "testdata/guava/Warm.java")
	const began = 1_800_000_000_000_000_000
	var l cell.Limit
	var st cell.State
	calls, waits, waited := 0, 0, int64(0)
	for line := range strings.Lines(run(java, "-cp", classes+":"+guavaJar, "com.google.common.util.concurrent.Warm")) {
		if text, found := strings.CutPrefix(strings.TrimSpace(line), "limit "); found {
			var err error
			if l, err = cell.ParseLimit(strings.TrimSuffix(text, ".0")); err != nil {
				t.Fatal(err)
			}
			st, waited = cell.State{}, 0
			continue
		}
		var us, permits, wait int64
		if _, err := fmt.Sscan(line, &us, &permits, &wait); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		got := int64(l.Book(&st, began+us*1000, permits))
		if diff, most := got-wait*1000, (waited+1)*(1000+10*int64(l.Cold)); diff < -most || diff > most {
			t.Fatalf("%v: %d permits at %d µs wait %d ns, and Guava's %d µs", l, permits, us, got, wait)
		}
		calls++
		waited++
		if wait == 0 {
			waited = 0
		} else {
			waits++
		}
	}
	if calls != 16000 || waits < calls/2 || waits == calls {
		t.Errorf("%d of %d calls waited", waits, calls)
	}
}
