package resp

import (
	"fmt"
	"strings"
	"testing"
)

// While a long list is made, others on the same event loop are served, and it comes in its order.
func TestListsAside(t *testing.T) {
	for _, command := range []string{"CL.STATS", "CL.STATS api", "CL.STATS RESET", "CL.POLICY LIST"} {
		carrierTest{settings: []string{"io-threads", "1"}}.run(t, func(t *testing.T, srv *Server, addr string) {
			slow, other := dialTest(t, addr), dialTest(t, addr)
			slow.ask("CL.POLICY SET api 1/1h\r\n", ":1\r\n")
			srv.listing.Lock() // as another list does
			slow.send(command + "\r\nECHO behind\r\n")
			eventually(t, "it waits", func() bool {
				for _, s := range srv.allSessions() {
					if row := s.client.lastCommand.Load(); row != nil && strings.HasPrefix(strings.ToUpper(command), strings.ToUpper(row.fullName()[:8])) {
						return true
					}
				}
				return false
			})
			for range 100 {
				other.ask("PING\r\n", "+PONG\r\n")
			}
			srv.listing.Unlock()
			line, err := slow.ReadString('\n')
			for err == nil && line != "behind\r\n" {
				if strings.HasPrefix(line, "-") {
					t.Errorf("%s: %q", command, line)
				}
				line, err = slow.ReadString('\n')
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// A list is as long as the output limit allows, in a goroutine and in MULTI, and has all policies.
func TestListsOfManyPolicies(t *testing.T) {
	w := newWorld(t)
	p := w.connect()
	for i := range 1000 {
		p.do("CL.POLICY", "SET", fmt.Sprintf("policy-%03d", i), "1/1h")
	}
	p.send("CL.TAKE k @policy-500\r\nCL.TAKE k @policy-500\r\n")
	for command, want := range map[string]string{
		"CL.STATS":       "*2002\r\n$8\r\nliterals\r\n",
		"CL.POLICY LIST": "*2000\r\n$10\r\npolicy-000\r\n",
	} {
		got := p.do(strings.Fields(command)...)
		if !strings.HasPrefix(got, want) || strings.Count(got, "policy-") != 1000 {
			t.Errorf("%s: %.100q", command, got)
		}
		if inMulti := p.send("MULTI\r\n" + command + "\r\nEXEC\r\n"); inMulti != "+OK\r\n+QUEUED\r\n*1\r\n"+got {
			t.Errorf("%s in MULTI: %.100q", command, inMulti)
		}
	}
	if got := p.send("CL.TAKE l 1/1h\r\nCL.STATS literals\r\nCL.STATS @policy-500\r\n"); strings.Count(got, "$7\r\nallowed\r\n:1\r\n$7\r\nlimited\r\n:0\r\n") != 1 || strings.Count(got, "$7\r\nallowed\r\n:1\r\n$7\r\nlimited\r\n:1\r\n") != 1 {
		t.Errorf("%q", got)
	}
	p.want("CONFIG SET client-output-buffer-limit 131072", "+OK\r\n")
	if p.do("CL.STATS"); !p.tr.closed {
		t.Error("it is over the output limit")
	}
}
