package link

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"celld/internal/celldtest"
	"celld/store"
)

// breaks opens the breaker of a key by failures in a row, whatever the engine does.
func (s *Link) breaks(t *testing.T, key string) {
	t.Helper()
	for range failuresToOpen {
		if s.DownAt(key) != nil {
			t.Fatal("it is open already")
		}
		s.pipelines.of(key).breaker.answered(&Request{Keys: []string{key}}, &DownError{Cause: "a test says so", Sent: true})
	}
	if s.DownAt(key) == nil {
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
			e := celldtest.NewAiling(t)
			s := newTestLink(t, e.Socket, Options{})
			h := s.byHand()
			if err := s.askFor("k", patient); err != nil || s.DownAt("k") != nil {
				t.Fatal(err, s.DownAt("k"))
			}
			e.Answers(c.answer)
			for i := range failuresToOpen {
				if s.DownAt("k") != nil {
					t.Fatalf("open after %d failures", i)
				}
				if err := s.askFor("k", patient); !isDown(err) {
					t.Fatal(err)
				}
			}
			if s.DownAt("k") == nil || s.Down() == nil {
				t.Fatal("closed")
			}
			asked := e.Count()
			if err := s.askFor("k", patient); !isDown(err) || err.(*DownError).Sent || e.Count() != asked {
				t.Fatalf("%v, and %d were sent", err, e.Count()-asked)
			}
			for probes := 1; probes <= 3; probes++ {
				if h.Waiting() != 1 {
					t.Fatalf("%d probes wait", h.Waiting())
				}
				h.Pass(probePause)
				eventually(t, "the probe has failed", func() bool { return h.Waiting() == 1 })
				if e.Count() != asked+probes || s.DownAt("k") == nil {
					t.Fatalf("%d probes were sent, and not %d", e.Count()-asked, probes)
				}
			}
			e.Answers("-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.\r\n")
			before := s.DownAt("k").Error()
			h.Pass(probePause)
			eventually(t, "callers are told what is wrong now", func() bool {
				is := s.DownAt("k").Error()
				return is != before && h.Waiting() == 1
			})
			e.Answers(":0\r\n")
			h.Pass(probePause)
			eventually(t, "it is closed", func() bool { return s.DownAt("k") == nil })
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
		s := newTestLink(t, celldtest.NewAiling(t).Socket, Options{})
		s.byHand()
		b := &s.pipelines.of("k").breaker
		down := &DownError{Cause: "a test says so"}
		for i := range 2 * failuresToOpen {
			b.answered(&Request{Keys: []string{"k"}}, down)
			if i%2 == 1 {
				b.answered(&Request{Keys: []string{"k"}, ReadOnly: c.readOnly}, c.err)
			}
		}
		if open := b.down() != nil; open != c.opens {
			t.Errorf("%s: open is %v", c.name, open)
		}
	}
}

// While all is well there are no timers.
func TestAnEngineThatIsWellIsNotProbed(t *testing.T) {
	e := celldtest.NewAiling(t)
	s := newTestLink(t, e.Socket, Options{})
	h := s.byHand()
	for i := range 100 {
		if err := s.askFor(fmt.Sprint(i), patient); err != nil {
			t.Fatal(err)
		}
	}
	if h.Waiting() != 0 || e.Count() != 100 || s.options.Stats.Requests.Load() != 100 {
		t.Errorf("%d timers, %d commands, %d requests", h.Waiting(), e.Count(), s.options.Stats.Requests.Load())
	}
}

// When the Store is closed, the probes end.
func TestProbesEnd(t *testing.T) {
	e := celldtest.NewAiling(t)
	s := newTestLink(t, e.Socket, Options{})
	h := s.byHand()
	s.breaks(t, "k")
	s.stop()
	h.Pass(time.Hour)
	l := s.pipelines.of("k")
	l.mu.Lock()
	sending := l.inFlight
	l.mu.Unlock()
	if h.Waiting() != 0 || sending != 0 || e.Count() != 0 {
		t.Errorf("%d timers, %d under way, %d commands", h.Waiting(), sending, e.Count())
	}
}

// In a Cluster, a master that is away stops its pipelines, and no others. Each pipeline's probe is about its own hash slots.
func TestAPipelineStopsByItself(t *testing.T) {
	for _, prefix := range []string{"", "celld:", "{one}"} {
		e := celldtest.NewAiling(t)
		s := newTestLink(t, e.Socket, Options{Prefix: prefix})
		s.cluster.Store(true)
		h := s.byHand()
		away, others := prefix+"k", 0
		e.AnswersBy(func(command string) string {
			if s.pipelines.of(keyOf(command)) == s.pipelines.of(away) {
				return "-CLUSTERDOWN Hash slot not served\r\n"
			}
			return ":1\r\n"
		})
		for i := range 20 * pipelineCount {
			key := prefix + fmt.Sprint(i)
			err, own := s.askFor(key, patient), s.pipelines.of(key) == s.pipelines.of(away)
			if isDown(err) != own {
				t.Fatalf("%s: %v", key, err)
			}
			if !own {
				others++
			}
		}
		if s.DownAt(away) == nil || (others > 0) == (s.Down() != nil) {
			t.Fatalf("prefix %q, %d others: %v, as a whole %v", prefix, others, s.DownAt(away), s.Down())
		}
		h.Pass(probePause)
		eventually(t, "the probe has failed", func() bool { return h.Waiting() == 1 })
		if probes := e.Probes(); len(probes) != 1 || !strings.HasPrefix(keyOf(probes[0]), prefix) || s.DownAt(away) == nil {
			t.Fatalf("the probes are %q: %v", probes, s.DownAt(away))
		}
		e.Answers(":1\r\n")
		h.Pass(probePause)
		eventually(t, "it is closed", func() bool { return s.DownAt(away) == nil })
	}
}

// A master that becomes a replica is found, though it answers PING and what only reads; and so is its return.
func TestARealReplica(t *testing.T) {
	s := newTestLink(t, strings.TrimPrefix(celldtest.StartRedis(t), "unix:"), Options{})
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
		if err := s.outcome(&Request{Args: []string{"GET"}, Keys: []string{"k"}, ReadOnly: true,
			Deadline: time.Now().Add(patient)}); err != nil && !isDown(err) {
			t.Fatal(err)
		}
	}
	h.Pass(probePause)
	eventually(t, "the probe has failed", func() bool { return h.Waiting() == 1 })
	if s.DownAt("k") == nil {
		t.Fatal("a replica closes it")
	}
	tell("REPLICAOF", "NO", "ONE")
	h.Pass(probePause)
	eventually(t, "it is closed", func() bool { return s.DownAt("k") == nil })
}
