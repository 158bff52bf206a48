package engine

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/integration_test/harness/engines"
	"celld/internal/celldtest"
)

// bursts are limits of which clients know by their own clocks how much may pass.
var bursts = []kind{
	rates,
	{"bucket", 150, "CL.TAKE %[1]s 400/1s,burst=150", nil, 400},
	{"window", 800, "CL.TAKE %[1]s 400/1s,algo=window,align=clock", nil, 400}, // of the first and the last, all may pass
	{"slide", 800, "CL.TAKE %[1]s 400/1s,algo=slide", nil, 400},
	{"several", 150, "CL.TAKE %[1]s 400/1s,burst=150 100000/1h,algo=window", nil, 400},
}

// decidedAhead is how many calls the instances have decided by units.
func decidedAhead(t *testing.T, all ...*harness.Server) (n int) {
	t.Helper()
	for _, srv := range all {
		_, text, _ := strings.Cut(harness.Dial(t, srv.Addr).Do("INFO", "stats"), "store_decided_ahead:")
		text, _, _ = strings.Cut(text, "\r")
		one, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		n += one
	}
	return n
}

// Instances take ahead of calls, and one beside them does not, while the engine stands and an instance is killed.
func TestAheadBesideFaults(t *testing.T) {
	t.Parallel()
	for _, kind := range engines.Kinds[:2] {
		t.Run(kind.Name, func(t *testing.T) {
			f := kind.Start(engines.Redis(t), t)
			var all []*harness.Server
			for _, ms := range []string{"20", "100", "0"} {
				all = append(all, harness.Start(t, "--store", f.URL, "--store-ahead", ms))
			}
			killed := harness.Spec{Flags: []string{"--store", f.URL, "--store-ahead", "50"}, Dies: true}.Start(t)
			l := (&load{clients: 4, keys: 1}).start(t, all, bursts...)
			c := harness.Dial(t, killed.Addr)
			for range 100 {
				for _, k := range bursts {
					c.Do(k.words(k.name + "0")...)
				}
			}
			_ = killed.Cmd.Process.Kill()
			for range 3 {
				master := f.Nodes[0]
				if kind.Name == "cluster" {
					master = f.MasterOf("bucket0")
				}
				master.Pause()
				time.Sleep(150 * time.Millisecond)
				master.Resume()
				l.goesOn(time.Now())
			}
			l.check(0)
			for i, srv := range all {
				if n := decidedAhead(t, srv); (n == 0) != (i == 2) {
					t.Errorf("instance %d has decided %d ahead", i, n)
				}
			}
			celldtest.Eventually(t, "nobody holds units", func() bool {
				return !strings.Contains(harness.Dial(t, all[0].Addr).Do("CL.SHOW", "bucket0"), "ahead")
			})
		})
	}
}
