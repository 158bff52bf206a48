package remote

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"celld/store"
)

// open has failures in a row open the breaker of a key, whatever the engine does.
func (s *Store) open(t *testing.T, key string) {
	t.Helper()
	for range failuresToOpen {
		if s.failure.downAt(key) != nil {
			t.Fatal("it is open already")
		}
		s.lanes.of(key).breaker.answered(&request{keys: []string{key}}, &DownError{Cause: "a test says so", Sent: true})
	}
	if s.failure.downAt(key) == nil {
		t.Fatalf("it is closed after %d failures in a row", failuresToOpen)
	}
}

// Each kind of engine that does not decide opens the breaker. Then nothing is sent but probes, one at a time, and they go on to fail
// until the engine decides again.
func TestTheBreakerOpensAndCloses(t *testing.T) {
	for _, c := range []struct{ name, answer string }{
		{"a replica", "-READONLY You can't write against a read only replica.\r\n"},
		{"loading", "-LOADING Redis is loading the dataset in memory\r\n"},
		{"busy", "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n"},
		{"a Cluster that is down", "-CLUSTERDOWN Hash slot not served\r\n"},
		{"no password", "-NOAUTH Authentication required.\r\n"},
		{"no replicas", "-NOREPLICAS Not enough good replicas to write.\r\n"},
		{"connections that break", "close"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newAiling(t)
			s := newTestStore(t, e.socket, Options{})
			h := s.byHand()
			if err := s.askFor("k", patient); err != nil || s.failure.downAt("k") != nil {
				t.Fatal(err, s.failure.downAt("k"))
			}
			e.answers(c.answer)
			for i := range failuresToOpen {
				if s.failure.downAt("k") != nil {
					t.Fatalf("open after %d failures", i)
				}
				if err := s.askFor("k", patient); !isDown(err) {
					t.Fatal(err)
				}
			}
			if s.failure.downAt("k") == nil || s.failure.down() == nil {
				t.Fatal("closed")
			}
			asked := e.count()
			if err := s.askFor("k", patient); !isDown(err) || err.(*DownError).Sent || e.count() != asked {
				t.Fatalf("%v, and %d were sent", err, e.count()-asked)
			}
			for probes := 1; probes <= 3; probes++ {
				if h.waiting() != 1 {
					t.Fatalf("%d probes wait", h.waiting())
				}
				h.pass(probePause)
				until(t, "the probe has failed", func() bool { return h.waiting() == 1 })
				if e.count() != asked+probes || s.failure.downAt("k") == nil {
					t.Fatalf("%d probes were sent, and not %d", e.count()-asked, probes)
				}
			}
			e.answers("-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.\r\n")
			before := s.failure.downAt("k").Error()
			h.pass(probePause)
			until(t, "callers are told what is wrong now", func() bool {
				is := s.failure.downAt("k").Error()
				return is != before && h.waiting() == 1
			})
			e.answers(":0\r\n")
			h.pass(probePause)
			until(t, "it is closed", func() bool { return s.failure.downAt("k") == nil })
			if err := s.askFor("k", patient); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// An answer between failures ends the row, unless it is to what only reads: a replica gives these, too.
func TestWhatEndsARowOfFailures(t *testing.T) {
	for _, c := range []struct {
		name     string
		readOnly bool
		err      error
		opens    bool
	}{
		{"a write's answer", false, nil, false},
		{"an error of the engine's", false, store.ErrWrongType, false},
		{"a full engine", false, store.ErrFull, false},
		{"a read's answer", true, nil, true},
	} {
		s := newTestStore(t, newAiling(t).socket, Options{})
		s.byHand()
		b := &s.lanes.of("k").breaker
		down := &DownError{Cause: "a test says so"}
		for i := range 2 * failuresToOpen {
			b.answered(&request{keys: []string{"k"}}, down)
			if i%2 == 1 {
				b.answered(&request{keys: []string{"k"}, readOnly: c.readOnly}, c.err)
			}
		}
		if open := b.down() != nil; open != c.opens {
			t.Errorf("%s: open is %v", c.name, open)
		}
	}
}

// While all is well there are no timers.
func TestAnEngineThatIsWellIsNotProbed(t *testing.T) {
	e := newAiling(t)
	s := newTestStore(t, e.socket, Options{})
	h := s.byHand()
	for i := range 100 {
		if err := s.askFor(fmt.Sprint(i), patient); err != nil {
			t.Fatal(err)
		}
	}
	if h.waiting() != 0 || e.count() != 100 || s.stats.Requests.Load() != 100 {
		t.Errorf("%d timers, %d commands, %d requests", h.waiting(), e.count(), s.stats.Requests.Load())
	}
}

// When the Store is closed, the probes end.
func TestProbesEnd(t *testing.T) {
	e := newAiling(t)
	s := newTestStore(t, e.socket, Options{})
	h := s.byHand()
	s.open(t, "k")
	s.failure.close()
	h.pass(time.Hour)
	l := s.lanes.of("k")
	l.mu.Lock()
	sending := l.inFlight
	l.mu.Unlock()
	if h.waiting() != 0 || sending != 0 || e.count() != 0 {
		t.Errorf("%d timers, %d under way, %d commands", h.waiting(), sending, e.count())
	}
}

// In a Cluster, a master that is away stops its lanes, and no other. Each lane's probe is about its own slots.
func TestALaneStopsByItself(t *testing.T) {
	for _, prefix := range []string{"", "celld:", "{one}"} {
		e := newAiling(t)
		s := newTestStore(t, e.socket, Options{Prefix: prefix})
		s.cluster.Store(true)
		h := s.byHand()
		away, others := prefix+"k", 0
		e.answersBy(func(command string) string {
			if s.lanes.of(keyOf(command)) == s.lanes.of(away) {
				return "-CLUSTERDOWN Hash slot not served\r\n"
			}
			return ":1\r\n"
		})
		for i := range 20 * laneCount {
			key := prefix + fmt.Sprint(i)
			err, own := s.askFor(key, patient), s.lanes.of(key) == s.lanes.of(away)
			if isDown(err) != own {
				t.Fatalf("%s: %v", key, err)
			}
			if !own {
				others++
			}
		}
		if s.failure.downAt(away) == nil || (others > 0) == (s.failure.down() != nil) {
			t.Fatalf("prefix %q, %d others: %v, as a whole %v", prefix, others, s.failure.downAt(away), s.failure.down())
		}
		h.pass(probePause)
		until(t, "the probe has failed", func() bool { return h.waiting() == 1 })
		if probes := e.probes(); len(probes) != 1 || !strings.HasPrefix(keyOf(probes[0]), prefix) || s.failure.downAt(away) == nil {
			t.Fatalf("the probes are %q: %v", probes, s.failure.downAt(away))
		}
		e.answers(":1\r\n")
		h.pass(probePause)
		until(t, "it is closed", func() bool { return s.failure.downAt(away) == nil })
	}
}

// A master that becomes a replica is found, though it answers PING and what only reads; and so is its return.
func TestARealReplica(t *testing.T) {
	s := newTestStore(t, startRedis(t), Options{})
	h := s.byHand()
	tell := func(args ...string) {
		t.Helper()
		client := *s.client.Load()
		if err := client.Do(t.Context(), client.B().Arbitrary(args...).Build()).Error(); err != nil {
			t.Fatal(err)
		}
	}
	tell("REPLICAOF", "127.0.0.1", "1")
	for range failuresToOpen {
		if err := s.askFor("k", patient); !isDown(err) {
			t.Fatal(err)
		}
		if err := s.outcome(&request{args: []string{"GET"}, keys: []string{"k"}, readOnly: true, deadline: time.Now().Add(patient)}); err != nil && !isDown(err) {
			t.Fatal(err)
		}
	}
	h.pass(probePause)
	until(t, "the probe has failed", func() bool { return h.waiting() == 1 })
	if s.failure.downAt("k") == nil {
		t.Fatal("a replica closes it")
	}
	tell("REPLICAOF", "NO", "ONE")
	h.pass(probePause)
	until(t, "it is closed", func() bool { return s.failure.downAt("k") == nil })
}

// The log tells once that an outage begins, and once that it has ended, however often the engine comes and goes meanwhile.
func TestTheLogOfAnOutage(t *testing.T) {
	var text bytes.Buffer
	e := newAiling(t)
	s := newTestStore(t, e.socket, Options{Log: slog.New(slog.NewTextHandler(&text, nil)), Failures: Failures{all: FailDeny}})
	h := s.byHand()
	lines := func() int { return strings.Count(text.String(), "\n") }
	want := func(name string, ago time.Duration) {
		t.Helper()
		if is, since := s.Mode(); is != name || h.now().Sub(since) != ago {
			t.Fatalf("%s since %v ago, want %s since %v", is, h.now().Sub(since), name, ago)
		}
	}
	comesBack := func() {
		t.Helper()
		h.pass(probePause)
		until(t, "it is closed", func() bool { return s.failure.down() == nil })
		until(t, "who settles waits", func() bool { return h.waiting() == 1 })
	}
	h.pass(time.Hour)
	want("engine", time.Hour)
	s.open(t, "k")
	want("deny", 0)
	h.pass(0)
	for range 3 {
		s.failure.throttle(&store.Request{Bucket: bucketOf(t, 15, 30, 60)}, s.failure.down(), store.Access{})
	}
	comesBack()
	want("engine", 0)
	if lines() != 1 || !strings.Contains(text.String(), `msg="the engine does not answer, calls go by --store-failure" mode=deny why="a test says so"`) {
		t.Fatalf("the log says\n%s", &text)
	}
	h.pass(settled - 1)
	s.open(t, "k")
	comesBack()
	h.pass(settled - 1)
	if lines() != 1 {
		t.Fatalf("it flaps, and the log says\n%s", &text)
	}
	h.pass(1)
	if lines() != 2 || !strings.Contains(text.String(), `msg="the engine answers again" after=1.3s decided_without=3 refused=0`) {
		t.Fatalf("the log says\n%s", &text)
	}
	want("engine", settled)

	h.pass(time.Second) // another outage, soon: its end is told later
	s.open(t, "k")
	comesBack()
	h.pass(flapping - 1)
	if lines() != 3 {
		t.Fatalf("the log says\n%s", &text)
	}
	h.pass(1)
	if lines() != 4 {
		t.Fatalf("the log says\n%s", &text)
	}
}
