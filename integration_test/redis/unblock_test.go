package redis

import (
	"fmt"
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// TestUnblock ends waits in both servers: of BLPOP there, of CL.TAKE with WAIT here. Both report the wait, and its end by an error,
// alike.
func TestUnblock(t *testing.T) {
	type server struct {
		addr string
		call []string
	}
	celld := server{harness.Start(t).Addr, strings.Fields("CL.TAKE k 1/50s,burst=1 WAIT 60000")}
	redis := server{celldtest.StartRedis(t), strings.Fields("BLPOP k 60")}
	harness.Dial(t, celld.addr).Do("CL.TAKE", "k", "1/50s,burst=1")
	var said [2][]string
	for i, s := range []server{celld, redis} {
		say := func(text string) { said[i] = append(said[i], text) }
		waits, other := harness.Dial(t, s.addr), harness.Dial(t, s.addr)
		id := strings.Trim(waits.Do("CLIENT", "ID"), ":\r\n")
		flags := func() string {
			_, rest, _ := strings.Cut(other.Do("CLIENT", "LIST", "ID", id), " flags=")
			flags, _, _ := strings.Cut(rest, " ")
			return flags
		}
		begin := func() {
			waits.Send(harness.Frame(s.call...))
			celldtest.Eventually(t, "it waits", func() bool { return strings.Contains(flags(), "b") })
		}
		blocked := func() string { return harness.InfoSections(other.Do("INFO", "clients"))["Clients"]["blocked_clients"] }
		say(other.Do("CLIENT", "UNBLOCK", id))
		begin()
		say(blocked())
		say(other.Do("CLIENT", "UNBLOCK", id, "ERROR"))
		say(other.Do("CLIENT", "UNBLOCK", id))
		say(waits.Reply())
		say(waits.Do("PING"))
		say(blocked())
		begin()
		say(other.Do("CLIENT", "UNBLOCK", id))
		waits.Reply()
		say(fmt.Sprint(strings.Contains(flags(), "b")))
		begin()
		say(other.Do("CLIENT", "KILL", "ID", id))
		waits.Closed()
		say(other.Do("CLIENT", "UNBLOCK", id))
		celldtest.Eventually(t, "nobody waits", func() bool { return blocked() == "0" })
	}
	if a, b := strings.Join(said[0], " "), strings.Join(said[1], " "); a != b {
		t.Errorf("celld %q\nredis %q", a, b)
	}
}
