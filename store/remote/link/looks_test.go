package link

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"

	"celld/internal/celldtest"
)

// watched runs a test with a Store that watches its engine in fake time. log is what it has logged since the last call.
func watched(t *testing.T, test func(t *testing.T, s *Link, e *celldtest.Ailing, log func() string)) {
	t.Helper()
	inFakeTime(t, Options{}, func(t *testing.T, s *Link, e *celldtest.Ailing) {
		var all lines
		s.log = all.log()
		told := 0
		test(t, s, e, func() string {
			synctest.Wait()
			text := all.String()[told:]
			told += len(text)
			return text
		})
		s.stop()
	})
}

const readOnlyReply = "-READONLY You can't write against a read only replica.\r\n"

// An engine is looked at every second until the Store is closed. The log tells once that it is away, and once that it is back, unless calls
// have found out. Then the client is closed.
func TestAnEngineIsLookedAtEverySecond(t *testing.T) {
	watched(t, func(t *testing.T, s *Link, e *celldtest.Ailing, log func() string) {
		client := *s.client.Load()
		ended := false
		go func() {
			s.watch(client)
			ended = true
		}()
		celldtest.Pass(3*watchInterval + 1)
		if text := log(); text != "" || len(e.Probes()) != 4 || s.Away() != nil {
			t.Errorf("%d probes, away: %v, the log says %s", len(e.Probes()), s.Away(), text)
		}
		for range 2 {
			e.Answers(readOnlyReply)
			celldtest.Pass(2 * watchInterval)
			if text := log(); strings.Count(text, "\n") != 1 || !strings.Contains(text, `"level":"WARN","msg":"the engine is away"`) ||
				!strings.Contains(text, "read-only replica") || s.Away() == nil {
				t.Errorf("away: %v, the log says %s", s.Away(), text)
			}
			e.Answers(":1\r\n")
			celldtest.Pass(2 * watchInterval)
			if text := log(); strings.Count(text, "\n") != 1 || !strings.Contains(text, `"level":"INFO","msg":"the engine is back"`) ||
				s.Away() != nil {
				t.Errorf("away: %v, the log says %s", s.Away(), text)
			}
		}
		s.pipelines.all[0].breaker.cause.Store(testDown)
		e.Answers(readOnlyReply)
		celldtest.Pass(watchInterval)
		if text := log(); text != "" || s.Away() == nil {
			t.Errorf("away: %v, calls have found out, and the log says %s", s.Away(), text)
		}
		s.pipelines.all[0].breaker.cause.Store(nil)
		e.Answers(":1\r\n")
		celldtest.Pass(watchInterval)
		if text := log(); text != "" || s.Away() != nil || ended {
			t.Errorf("away: %v, it has ended: %v, the log says %s", s.Away(), ended, text)
		}
		s.stop()
		if log(); !ended || s.open.Load() != 0 {
			t.Errorf("it has ended: %v, %d connections are open", ended, s.open.Load())
		}
	})
}

// Why an engine takes no calls: it has no memory, or says something else, or does not answer PING.
func TestWhatALookFinds(t *testing.T) {
	watched(t, func(t *testing.T, s *Link, e *celldtest.Ailing, _ func() string) {
		client := *s.client.Load()
		for reply, want := range map[string]string{
			":1\r\n": "", "_\r\n": "", readOnlyReply: "the engine is a read-only replica",
			"-OOM command not allowed when used memory > 'maxmemory'.\r\n": "the engine has no memory left",
		} {
			e.Answers(reply)
			if why := s.look(client); why != want || (s.Away() == nil) != (want == "") || want != "" && s.Away().Error() != want {
				t.Errorf("%q: %s, away: %v", reply, why, s.Away())
			}
		}
		client.Close()
		asked := e.Count()
		if why := s.look(client); why == "" || e.Count() != asked {
			t.Errorf("without a PONG: %q", why)
		}
	})
	for timeout, want := range map[time.Duration]time.Duration{time.Millisecond: watchInterval, 5 * time.Second: 5 * time.Second} {
		watched(t, func(t *testing.T, s *Link, e *celldtest.Ailing, _ func() string) {
			s.options.Timeout = timeout
			e.Takes(10 * time.Second)
			e.Answers(":1\r\n")
			began := time.Now()
			if why := s.look(*s.client.Load()); why != CauseTimeout || time.Since(began)-want > alike {
				t.Errorf("a timeout of %v: %s after %v", timeout, why, time.Since(began))
			}
			s.stop()
			celldtest.Pass(time.Minute) // until the engine has answered all
		})
	}
}

// In a Cluster a look asks for its hash slots, and all of its parts, and sends no probe: PING is enough.
func TestLookingAtACluster(t *testing.T) {
	watched(t, func(t *testing.T, s *Link, e *celldtest.Ailing, log func() string) {
		s.cluster.Store(true)
		var info, parts int
		e.AnswersBy(func(command string) string {
			switch {
			case command == "CLUSTER INFO":
				info++
				return clusterInfo("ok", hashSlots, 0)
			case strings.HasSuffix(command, "celld:probe"):
				parts++
			}
			return ":1\r\n"
		})
		go s.watch(*s.client.Load())
		celldtest.Pass(watchInterval + 1)
		if text := log(); info != 2 || parts != 2*pipelineCount || text != "" {
			t.Errorf("asked %d times for the slots, and %d times a part of it, and the log says %s", info, parts, text)
		}
		if n, known := s.Uncovered(); n != 0 || !known {
			t.Errorf("%d slots, known %v", n, known)
		}
		for i := range s.pipelines.all {
			s.pipelines.all[i].breaker.cause.Store(testDown)
		}
		celldtest.Pass(failoverTakes + 2*watchInterval)
		if err := s.Away(); err == nil || err.Error() != testDown.Cause || parts != 2*pipelineCount || s.away.Load() != nil {
			t.Errorf("away: %v, asked a part of it %d times", err, parts)
		}
	})
}

// A node that was connected to is checked with the next look, once. What is known of nodes that are no longer there is forgotten then.
func TestNodesAreCheckedOnce(t *testing.T) {
	watched(t, func(t *testing.T, s *Link, e *celldtest.Ailing, log func() string) {
		client, infos := *s.client.Load(), 0
		var addr string
		for addr = range client.Nodes() {
		}
		e.AnswersBy(func(command string) string {
			if command == "INFO" {
				infos++
				return bulk("redis_version:7.0.15\r\n")
			}
			return "%0\r\n"
		})
		s.nodes.all = map[string]*node{"gone": {}}
		go s.watch(client)
		celldtest.Pass(watchInterval / 2)
		if infos != 0 || s.nodes.all["gone"] == nil {
			t.Errorf("%d nodes are checked, known are %v", infos, s.nodes.all)
		}
		s.dialed.add(addr)
		s.dialed.add("gone")
		celldtest.Pass(3 * watchInterval)
		if log(); infos != 1 || len(s.nodes.all) != 1 || s.nodes.all[addr] == nil {
			t.Errorf("%d nodes are checked, known are %v", infos, s.nodes.all)
		}
	})
}

// All nodes of a Cluster are asked for its hash slots where the first says that something is wrong, or nothing; the one that sees most
// is right. Where none tells, nothing is noted.
func TestWhichNodesAreAskedForHashSlots(t *testing.T) {
	addresses := []string{"h:1", "h:2", "h:3"}
	s, engines := aCluster(t, Options{}, addresses...)
	all := (*s.client.Load()).Nodes()
	client := rueidis.Client(manyNodes{all["h:1"], all})
	const silent = "-LOADING Redis is loading the dataset in memory\r\n"
	whole, part, down := clusterInfo("ok", hashSlots, 0), clusterInfo("ok", hashSlots, 5), clusterInfo("fail", hashSlots, 0)
	for i, c := range []struct {
		says      []string
		asked     int
		known     bool
		uncovered int
		down      bool
	}{
		{[]string{whole, part, down}, 1, true, 0, false},
		{[]string{part, whole, down}, 4, true, 0, false},
		{[]string{part, down, silent}, 4, true, 5, false},
		{[]string{down, part, silent}, 4, true, 5, false},
		{[]string{down, silent, silent}, 4, true, 0, true},
		{[]string{silent, down, silent}, 4, true, 0, true},
		{[]string{silent, down, part}, 4, true, 5, false},
		{[]string{silent, clusterInfo("fail", 0, 0), silent}, 4, true, hashSlots, true},
		{[]string{silent, silent, silent}, 4, false, 0, false},
		{[]string{"-NOPERM no\r\n", whole, whole}, 1, false, 0, false},
		{[]string{whole, whole, whole}, 0, false, 0, false}, // it has been refused
	} {
		before := 0
		for j, address := range addresses {
			before += engines[address].Count()
			engines[address].Answers(c.says[j])
		}
		s.coverage.known, s.coverage.uncovered, s.coverage.down = false, 0, false
		s.lookAtHashSlots(client)
		asked := -before
		for _, address := range addresses {
			asked += engines[address].Count()
		}
		if v := &s.coverage; asked != c.asked || v.known != c.known || v.uncovered != c.uncovered || v.down != c.down {
			t.Errorf("%d: asked %d times, known %v, %d uncovered, down %v", i, asked, v.known, v.uncovered, v.down)
		}
	}
}
