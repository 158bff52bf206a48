package link

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"celld/internal/celldtest"
)

func TestWarningsAboutANode(t *testing.T) {
	warns := func(n node) string {
		var all []string
		for name, text := range map[string]string{"version": n.versionWarning(), "role": warnings[n.role], "eviction": n.evictionWarning(),
			"persistence": warnings[n.persistence], "clock": n.clockWarning()} {
			if text != "" {
				all = append(all, name)
			}
		}
		return strings.Join(all, " ")
	}
	for i, c := range []struct {
		n    node
		want string
	}{
		{node{version: "Redis 6.2.0"}, "eviction"},
		{node{version: "Redis 6.1.9", eviction: notKnown}, "version"},
		{node{version: "Redis 6.2", eviction: notKnown}, ""},
		{node{version: "Redis 5.9.9", eviction: notKnown}, "version"},
		{node{version: "Redis 7.0.1", eviction: notKnown}, ""},
		{node{version: "Redis 6", eviction: notKnown}, ""},
		{node{version: "Redis 5.x", eviction: notKnown}, ""},
		{node{version: "Redis x.1", eviction: notKnown}, ""},
		{node{version: "Valkey 5.0", eviction: notKnown}, ""},
		{node{role: "slave", eviction: "noeviction"}, "role"},
		{node{role: "sentinel", eviction: "noeviction, no maxmemory"}, "role"},
		{node{role: "master", eviction: "allkeys-lru, no maxmemory"}, ""},
		{node{eviction: "allkeys-lru"}, "eviction"},
		{node{eviction: notKnown, persistence: "none"}, "persistence"},
		{node{eviction: notKnown, persistence: "snapshots"}, ""},
		{node{eviction: notKnown, clockKnown: true, clock: mostClockOff + 3, clockError: 3}, ""},
		{node{eviction: notKnown, clockKnown: true, clock: mostClockOff + 4, clockError: 3}, "clock"},
		{node{eviction: notKnown, clockKnown: true, clock: -mostClockOff - 4, clockError: 3}, "clock"},
		{node{eviction: notKnown, clock: time.Hour}, ""},
	} {
		if got := warns(c.n); got != c.want {
			t.Errorf("%d: %q, want %q", i, got, c.want)
		}
	}
	for want, n := range map[string]node{
		notKnown:                     {clock: time.Second},
		"0s ahead, give or take 1ms": {clockKnown: true, clockError: time.Millisecond},
		"1.5s ahead, give or take 0s": {clockKnown: true, clock: 1500*time.Millisecond + 4*time.Microsecond,
			clockError: 4 * time.Microsecond},
		"1.5s behind, give or take 10µs":     {clockKnown: true, clock: -1500 * time.Millisecond, clockError: 6 * time.Microsecond},
		"10µs behind, give or take 1m40.01s": {clockKnown: true, clock: -9 * time.Microsecond, clockError: 100*time.Second + 10*time.Millisecond},
	} {
		if got := n.clockText(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Lines about a node are logged that differ from before. The clock's is logged at first, and when its warning comes or goes.
func TestWhatIsLoggedOfANode(t *testing.T) {
	known := node{version: "Redis 7.0.0", role: "master", eviction: "noeviction", persistence: "none", clockKnown: true,
		clock: time.Millisecond}
	with := func(f func(n *node)) node { n := known; f(&n); return n }
	for i, c := range []struct {
		old, is node
		want    string
	}{
		{node{}, known, "INFO version, INFO role, INFO eviction policy, WARN persistence, INFO clock"},
		{known, known, ""},
		{known, with(func(n *node) { n.clock = 2 * time.Millisecond }), ""},
		{known, with(func(n *node) { n.clock = time.Second }), "WARN clock"},
		{with(func(n *node) { n.clock = time.Second }), known, "INFO clock"},
		{known, with(func(n *node) { n.clockKnown = false }), "INFO clock"},
		{known, with(func(n *node) { n.role = "slave" }), "WARN role"},
		{known, with(func(n *node) { n.persistence = "snapshots" }), "INFO persistence"},
	} {
		var log lines
		c.is.log(log.log(), "n", &c.old)
		var got []string
		for line := range strings.Lines(log.String()) {
			level, rest, _ := strings.Cut(strings.SplitN(line, `"level":"`, 2)[1], `"`)
			thing, _, _ := strings.Cut(strings.SplitN(rest, `the engine's `, 2)[1], `"`)
			got = append(got, level+" "+thing)
		}
		if is := strings.Join(got, ", "); is != c.want {
			t.Errorf("%d: %s, want %s", i, is, c.want)
		}
	}
}

func TestWhatANodeSays(t *testing.T) {
	const refused = "no append-only file; CONFIG GET is refused, so snapshots are not known"
	for i, c := range []struct {
		info  string
		save  string
		known bool
		want  string
	}{
		{"", "", false, "not known|not known|not known|not known"},
		{"redis_version:7.2.4\r\nvalkey_version:8.1.1\r\n", "", false, "Valkey 8.1.1|not known|not known|not known"},
		{"redis_version:7.2.4\n", "", true, "Redis 7.2.4|not known|not known|not known"},
		{"role:master\r\naof_enabled:1\r\nno field\r\n", "60 1", true, "not known|master|not known|append-only file"},
		{"aof_enabled:0\r\n", "60 1", true, "not known|not known|not known|snapshots"},
		{"", "60 1", true, "not known|not known|not known|snapshots"},
		{"aof_enabled:0\r\n", "", true, "not known|not known|not known|none"},
		{"aof_enabled:0\r\n", "60 1", false, "not known|not known|not known|" + refused},
		{"maxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n", "", false, "not known|not known|allkeys-lru, no maxmemory|not known"},
		{"maxmemory:5\r\nmaxmemory_policy:a:b\r\n", "", false, "not known|not known|a:b|not known"},
		{"role:master\r\nredis_mode:sentinel", "", false, "not known|sentinel|not known|not known"},
	} {
		n := &node{version: notKnown, eviction: notKnown, persistence: notKnown, role: notKnown}
		n.read(parseInfo(c.info), c.save, c.known)
		if got := strings.Join([]string{n.version, n.role, n.eviction, n.persistence}, "|"); got != c.want {
			t.Errorf("%d: %s, want %s", i, got, c.want)
		}
	}
}

// A node's clock is compared with this machine's in the middle of the question.
func TestLookingAtANode(t *testing.T) {
	inFakeTime(t, Options{}, func(t *testing.T, s *Link, e *celldtest.Ailing) {
		var log lines
		s.log = log.log()
		timeParts := 2
		e.AnswersBy(func(command string) string {
			switch command {
			case "INFO":
				return bulk("redis_version:7.0.15\r\n")
			case "TIME":
				time.Sleep(5 * time.Millisecond)
				now := time.Now().Add(3 * time.Second)
				time.Sleep(5 * time.Millisecond)
				return fmt.Sprintf("*%d\r\n", timeParts) + strings.Join([]string{bulk(fmt.Sprint(now.Unix())),
					bulk(fmt.Sprint(now.Nanosecond() / 1000)), bulk("0")}[:timeParts], "")
			}
			return "%0\r\n"
		})
		client := *s.client.Load()
		s.check("a", client)
		n := s.nodes.all["a"]
		if n == nil || n != s.nodes.last || !n.clockKnown || n.clock != 3*time.Second || n.clockError != 5*time.Millisecond ||
			n.version != "Redis 7.0.15" {
			t.Fatalf("%+v", n)
		}
		timeParts = 3
		s.check("b", client)
		if b := s.nodes.all["b"]; b == nil || b.clockKnown || s.nodes.last != b {
			t.Errorf("%+v", b)
		}
		s.nodes.keep(map[string]rueidis.Client{"a": client})
		if len(s.nodes.all) != 1 || s.nodes.all["a"] == nil {
			t.Errorf("kept %v", s.nodes.all)
		}
		// Who is busy or gone is looked at later, and any other refusal is an answer.
		for reply, again := range map[string]bool{
			"-BUSY a script\r\n": true, "close": true, "-NOPERM no\r\n": false, "-ERR unknown\r\n": false,
		} {
			before := s.nodes.all["a"]
			s.dialed.drain()
			e.AnswersBy(func(command string) string {
				if command == "INFO" {
					return reply
				}
				return "%0\r\n"
			})
			s.check("a", client)
			if later := len(s.dialed.drain()) == 1; later != again || (s.nodes.all["a"] == before) != again {
				t.Errorf("%q: later %v", reply, later)
			}
		}
	})
}

// What the nodes say together: the versions of all, and the rest of the last.
func TestWhatIsKnownOfAnEngine(t *testing.T) {
	s := newLink(Options{})
	if got := s.Engine(); len(got.Versions) > 0 || got.Eviction != "" || got.ClockKnown || s.Kind() != "standalone" {
		t.Errorf("%+v", got)
	}
	s.address.Master = "m"
	a, b := &node{version: "Redis 7.0.1", eviction: "noeviction", persistence: "none"},
		&node{version: "Redis 6.2.0", clockKnown: true, clock: 1500 * time.Microsecond, eviction: "x", persistence: "y"}
	s.nodes.all, s.nodes.last = map[string]*node{"a": a, "b": b, "c": {version: "Redis 7.0.1"}}, a
	got, want := fmt.Sprintf("%v %s", s.Engine(), s.Kind()), "{[Redis 6.2.0 Redis 7.0.1] noeviction none 0s false} sentinel"
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
	s.nodes.last = b
	s.coverage.known, s.coverage.uncovered = true, 5
	if got, want := fmt.Sprint(s.Engine()), "{[Redis 6.2.0 Redis 7.0.1] x y 1.5ms true}"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if _, known := s.Uncovered(); known {
		t.Error("an engine that is no Cluster has slots")
	}
	s.cluster.Store(true)
	if n, known := s.Uncovered(); n != 5 || !known || s.Kind() != "cluster" {
		t.Error(n, known)
	}
	s.coverage.known = false
	if _, known := s.Uncovered(); known {
		t.Error("no node has told")
	}
}
