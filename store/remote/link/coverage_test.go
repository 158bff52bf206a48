package link

import (
	"fmt"
	"strings"
	"testing"

	"celld/internal/celldtest"
)

// clusterInfo is an answer of CLUSTER INFO, as RESP3 has it.
func clusterInfo(state string, assigned, failed int) string {
	text := fmt.Sprintf("cluster_state:%s\r\ncluster_slots_assigned:%d\r\n"+
		"cluster_slots_ok:0\r\ncluster_slots_pfail:7\r\ncluster_slots_fail:%d\r\n", state, assigned, failed)
	return fmt.Sprintf("=%d\r\ntxt:%s\r\n", len("txt:")+len(text), text)
}

// A Cluster that serves nothing is away once that has lasted for longer than a failover. One that serves a part never is.
func TestCoverage(t *testing.T) {
	for _, test := range []struct {
		name      string
		answer    string
		uncovered int
		known     bool
		away      string
		said      string
	}{
		{"whole", clusterInfo("ok", hashSlots, 0), 0, true, "", ""},
		{"a part", clusterInfo("ok", hashSlots, 5461), 5461, true, "", `"slots":5461,"of":16384,"serves_the_rest":true`},
		{"down", clusterInfo("fail", hashSlots, 5461), 5461, true, "the Cluster is down, and 5461 of its 16384 slots have no master", `"slots":5461,"of":16384,"serves_the_rest":false`},
		{"slots of nobody", clusterInfo("fail", hashSlots-1, 0), 1, true, "the Cluster is down, and 1 of its 16384 slots have no master", `"slots":1,"of":16384,"serves_the_rest":false`},
		{"in a minority", clusterInfo("fail", hashSlots, 0), 0, true, "the Cluster is down, and 0 of its", `"slots":0`},
		{"no right to ask", "-NOPERM this user has no permissions to run the 'cluster|info' command\r\n", 0, false, "", ""},
		{"busy", "-BUSY Redis is busy running a script.\r\n", 0, false, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var log lines
			e := celldtest.NewAiling(t)
			e.Does(map[string]string{"CLUSTER INFO": test.answer})
			s := newTestLink(t, e.Socket, Options{Log: log.log()})
			s.cluster.Store(true)
			c, h := &s.coverage, s.byHand()
			c.goesBy(h)
			look := func() { s.lookAtHashSlots(*s.client.Load()) }
			look()
			if n, known := s.Uncovered(); n != test.uncovered || known != test.known || s.Away() != nil {
				t.Fatalf("%d slots, known %v, away: %v", n, known, s.Away())
			}
			h.Pass(failoverTakes)
			look()
			if s.Away() != nil || strings.Contains(log.String(), "no master") {
				t.Fatalf("it may be a failover, and is away: %v\n%s", s.Away(), log.String())
			}
			h.Pass(1)
			look()
			look()
			if err := s.Away(); (err == nil) != (test.away == "") || err != nil && !strings.HasPrefix(err.Error(), test.away) {
				t.Errorf("away: %v", err)
			}
			n := strings.Count(log.String(), "have no master")
			if !strings.Contains(log.String(), test.said) || (n == 1) != (test.said != "") {
				t.Errorf("the log says %d times, want %q:\n%s", n, test.said, log.String())
			}
			if asked := e.Asks("CLUSTER INFO"); test.name == "no right to ask" && asked != 1 {
				t.Errorf("it was refused, and asked %d times in %v", asked, failoverTakes)
			}
			h.Pass(refusalLasts)
			e.Does(map[string]string{"CLUSTER INFO": clusterInfo("ok", hashSlots, 0)})
			look()
			if n, known := s.Uncovered(); n != 0 || !known || s.Away() != nil ||
				strings.Contains(log.String(), "a master again") != (test.said != "") {
				t.Errorf("whole again: %d slots, known %v, away: %v\n%s", n, known, s.Away(), log.String())
			}
		})
	}
}

// Of several nodes the one that sees most is right.
func TestTheBetterView(t *testing.T) {
	order := []clusterView{{false, 0}, {false, 5}, {true, 0}, {true, 5}}
	for i, a := range order {
		for j, b := range order {
			if a.better(b) != (i < j) {
				t.Errorf("%v better than %v", a, b)
			}
		}
	}
}

func (c *coverage) goesBy(h *celldtest.Hands) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = h.Now
}

// Where calls fail, the parts of a Cluster that nobody has called are asked as well. It is away only if none of them answers, for longer
// than a failover takes.
func TestAwayInAClusterNeedsAllOfIt(t *testing.T) {
	for _, all := range []bool{false, true} {
		e := celldtest.NewAiling(t)
		s := newTestLink(t, e.Socket, Options{})
		s.cluster.Store(true)
		h := s.byHand()
		s.coverage.goesBy(h)
		e.AnswersBy(func(command string) string {
			if strings.HasPrefix(command, "EVALSHA ") && (all || s.pipelines.of(keyOf(command)) == s.pipelines.of("k")) {
				return "-CLUSTERDOWN Hash slot not served\r\n"
			}
			return ":1\r\n"
		})
		s.breaks(t, "k")
		eventually(t, "all parts are asked", func() bool {
			s.probeRest()
			for i := range s.pipelines.all {
				if l := &s.pipelines.all[i]; !l.asked.Load() && l.breaker.down() == nil || all && l.breaker.down() == nil {
					return false
				}
			}
			return true
		})
		note := func() { s.coverage.noteCalls(s.Down()) }
		note()
		h.Pass(failoverTakes)
		if note(); s.Away() != nil {
			t.Error("it may be a failover:", s.Away())
		}
		h.Pass(1)
		if note(); (s.Away() != nil) != all {
			t.Errorf("all of it does not answer: %v, away: %v", all, s.Away())
		}
	}
}
