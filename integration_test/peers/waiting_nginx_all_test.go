//go:build all

package peers

import (
	"fmt"
	"io"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// nginxClock is how much too early nginx may be: it reads the kernel's coarse clock, in whole milliseconds.
const nginxClock = 10 * time.Millisecond

// TestWaitNginx sends more at once than nginx delays: rate=5r/s with burst=4, and with burst=5 delay=2.
func TestWaitNginx(t *testing.T) {
	t.Parallel()
	const n = 8
	passes, conns := startNginx(t), callers(t, harness.Start(t).Addr, n)
	for _, limit := range []struct {
		location, literal, wait string
		want                    timetable
	}{
		{"queued", "5/1s,burst=1", "800", every(200*time.Millisecond, 5)},
		{"later", "5/1s,burst=3", "600", append(timetable{0, 0}, every(200*time.Millisecond, 4)...)},
	} {
		celldtest.Again(t, func(attempt string) string {
			if difference := limit.want.differs(t, "nginx", nginxClock, atOnce(time.Now(), n, func(int) bool {
				return passes("/" + limit.location + "?key=" + limit.location + attempt)
			})); difference != "" {
				return difference
			}
			return limit.want.differs(t, "celld", 0, atOnce(time.Now(), n, func(i int) bool {
				return takes(conns[i], limit.location+attempt, limit.literal, "WAIT", limit.wait)
			}))
		})
	}
}

// TestWaitNginxConnections holds connections open: three may be, and another one once one of them ends.
func TestWaitNginxConnections(t *testing.T) {
	t.Parallel()
	get, c := startNginxClient(t), harness.Dial(t, harness.Start(t).Addr)
	type held struct {
		body io.Closer
		id   string
	}
	var all []held
	open := func() (nginx, celld bool) {
		body, nginx := get("/held?key=k")
		reply, id := c.Lease("k", "3/1h,algo=conc")
		all = append(all, held{body, fmt.Sprint(id)})
		return nginx, reply.Limited == 0
	}
	end := func(i int) {
		all[i].body.Close()
		if got := c.Do("CL.RELEASE", "k", all[i].id); got != ":1\r\n" {
			t.Errorf("CL.RELEASE: %q", got)
		}
	}
	for i := range 5 {
		if nginx, celld := open(); nginx != (i < 3) || celld != nginx {
			t.Errorf("connection %d: nginx %v, celld %v", i, nginx, celld)
		}
	}
	for i := range 3 {
		end(i)
		if reply, id := c.Lease("k", "3/1h,algo=conc"); reply.Limited != 0 {
			t.Errorf("connection %d has ended, and celld has no room: %+v", i, reply)
		} else {
			all[i].id = fmt.Sprint(id)
		}
		celldtest.Eventually(t, "nginx sees that a connection has ended", func() bool {
			body, passed := get("/held?key=k")
			all[i].body = body
			return passed
		})
		if nginx, celld := open(); nginx || celld {
			t.Errorf("one more than three: nginx %v, celld %v", nginx, celld)
		}
	}
	for _, h := range all {
		h.body.Close()
	}
}
