package link

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"celld/internal/celldtest"
)

// clusterSlots is a reply of CLUSTER SLOTS, in which each span has a master and a replica.
func clusterSlots(spans ...string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "*%d\r\n", len(spans))
	for _, span := range spans {
		var first, last int
		var master string
		if _, err := fmt.Sscanf(span, "%d-%d %s", &first, &last, &master); err != nil {
			panic(err)
		}
		fmt.Fprintf(&text,
			"*4\r\n:%d\r\n:%d\r\n*4\r\n$9\r\n127.0.0.1\r\n:7000\r\n$1\r\n%s\r\n*0\r\n*4\r\n$9\r\n127.0.0.1\r\n:7001\r\n$1\r\nr\r\n*0\r\n",
			first, last, master)
	}
	return text.String()
}

// No two masters share a pipeline, and each has several.
func TestPipelinesOfMasters(t *testing.T) {
	e := celldtest.NewAiling(t)
	s := newTestLink(t, e.Socket, Options{})
	s.cluster.Store(true)
	key := make([]string, hashSlots) // one of each hash slot
	for i, left := 0, hashSlots; left > 0; i++ {
		k := fmt.Sprint(i)
		if slot := HashSlot(k); key[slot] == "" {
			key[slot] = k
			left--
		}
	}
	lanesOf := func(first, last int) map[*pipeline]bool {
		all := map[*pipeline]bool{}
		for slot := first; slot <= last; slot++ {
			all[s.pipelines.of(key[slot])] = true
		}
		return all
	}
	if len(lanesOf(0, 5460))+len(lanesOf(5461, hashSlots-1)) != pipelineCount+1 { // not known yet: one is of two masters
		t.Errorf("%d and %d lanes at first", len(lanesOf(0, 5460)), len(lanesOf(5461, hashSlots-1)))
	}
	e.Answers(clusterSlots("5461-10922 b", "0-5460 a", "10923-16000 c", "16001-16383 a"))
	s.readOwners(*s.client.Load())
	a, b, c, moved := lanesOf(0, 5460), lanesOf(5461, 10922), lanesOf(10923, 16000), lanesOf(16001, 16383)
	all := lanesOf(0, hashSlots-1)
	if len(a) != 5 || len(b) != 5 || len(c) != 5 || len(all) != 15 || fmt.Sprint(a) != fmt.Sprint(moved) {
		t.Errorf("%d, %d, %d and %d lanes, in all %d", len(a), len(b), len(c), len(moved), len(all))
	}

	clock := s.Clock(key[0])
	clock.Observe(1, time.Now(), time.Now())
	e.Answers(clusterSlots("0-5460 d", "5461-10922 b", "10923-16000 c", "16001-16383 d")) // a replica has taken over
	s.readOwners(*s.client.Load())
	if _, known := clock.Lower(); !known || fmt.Sprint(lanesOf(0, 5460)) != fmt.Sprint(a) {
		t.Error("a replica that takes over has other lanes")
	}
	for _, bad := range []string{"-ERR This instance has cluster support disabled\r\n", "*0\r\n", ":1\r\n", "*1\r\n:1\r\n",
		clusterSlots("0-16384 a"), "*1\r\n*3\r\n:0\r\n:1\r\n*0\r\n"} {
		e.Answers(bad)
		if s.readOwners(*s.client.Load()); fmt.Sprint(lanesOf(0, 5460)) != fmt.Sprint(a) {
			t.Errorf("%q changes the lanes", bad)
		}
	}
	e.Answers(clusterSlots("0-8191 a", "8192-16383 b"))
	s.readOwners(*s.client.Load())
	if _, known := clock.Lower(); known || len(lanesOf(0, hashSlots-1)) != pipelineCount {
		t.Error("the clocks are those of other masters")
	}
	var many []string
	for i := range 32 {
		many = append(many, fmt.Sprintf("%d-%d %c", i*512, i*512+511, 'A'+i))
	}
	e.Answers(clusterSlots(many...))
	s.readOwners(*s.client.Load())
	if len(lanesOf(0, hashSlots-1)) != pipelineCount || len(lanesOf(0, 511)) != 1 {
		t.Error("more masters than lanes")
	}
}

// A breaker that is open when hash slots move probes one that its pipeline serves now.
func TestAProbeFollowsTheHashSlots(t *testing.T) {
	s := newTestLink(t, celldtest.NewAiling(t).Socket, Options{})
	s.cluster.Store(true)
	s.byHand()
	s.breaks(t, "k")
	l := s.pipelines.of("k")
	for turn := range pipelineCount {
		moved := new(owners)
		for slot := range moved {
			moved[slot] = uint8((slot*pipelineCount/hashSlots + turn) % pipelineCount)
		}
		s.pipelines.split(moved)
		if probe := l.breaker.newProbe(nil).Keys[0]; s.pipelines.of(probe) != l {
			t.Fatalf("turn %d: %q is of another lane", turn, probe)
		}
	}
}
