package engine

import (
	"fmt"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/integration_test/harness/engines"
)

// TestLeasesEndWithTheProcess stops celld in each way while connections hold leases with BIND, and others wait for one. The engine has
// none of them afterwards, also where it stands for a while.
func TestLeasesEndWithTheProcess(t *testing.T) {
	t.Parallel()
	const leases, limit = 20, "20/1h,algo=conc"
	for _, kind := range engines.Kinds[:2] {
		t.Run(kind.Name, func(t *testing.T) {
			f := kind.Start(engines.Redis(t), t)
			other := harness.Dial(t, harness.Start(t, "--store", f.URL).Addr)
			for name, stop := range map[string]func(srv *harness.Server, key string){
				"SIGTERM": func(srv *harness.Server, _ string) { srv.Stop() },
				"SHUTDOWN": func(srv *harness.Server, _ string) {
					harness.Dial(t, srv.Addr).Send(harness.Frame("SHUTDOWN"))
					srv.Wait(0)
				},
				"an engine that stands": func(srv *harness.Server, key string) {
					master := f.Nodes[0]
					if kind.Name == "cluster" {
						master = f.MasterOf(key)
					}
					master.Pause()
					time.AfterFunc(time.Second, master.Resume)
					srv.Stop()
				},
			} {
				srv := harness.Start(t, "--store", f.URL)
				for i := range 2 * leases {
					c := harness.Dial(t, srv.Addr)
					args := []string{"CL.TAKE", name, limit, "BIND"}
					if i >= leases {
						c.Send(harness.Frame(append(args, "WAIT", "60000")...))
					} else if got := c.Do(args...); got[4:8] != ":0\r\n" {
						t.Fatalf("%s: %q", name, got)
					}
				}
				srv.Waiting(t, leases)
				stop(srv, name)
				if got := other.Do("CL.TAKE", name, limit, "COST", fmt.Sprint(leases)); got[4:8] != ":0\r\n" {
					t.Errorf("%s: %q", name, got)
				}
			}
		})
	}
}
