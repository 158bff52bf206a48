package world

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"celld/resp/envoy"
)

// Envoys ask for two limits of a configuration that changes: both are equally large, and each request meets one configuration as a whole.
// At the end, what is used of each is what was hit.

const envoyFile = "envoy.yaml"

// envoyKeys are the descriptors, and the keys of their counters.
var envoyKeys = []string{"one", "two"}

// envoyLimit is how large both limits are in a turn.
func envoyLimit(turn int) int64 { return 1_000_000 + int64(turn) }

func envoyConfig(turn int) string {
	text := "domain: w\ndescriptors:\n"
	for _, key := range envoyKeys {
		text += fmt.Sprintf("  - {key: %s, rate_limit: {unit: year, requests_per_unit: %d}}\n", key, envoyLimit(turn))
	}
	return text
}

// drawEnvoy: the counters follow the wall clock, and do not live in one slot.
func drawEnvoy(p *plan) {
	if p.evicts() || p.steps {
		p.without("envoy")
	}
}

// envoy is where Envoys connect to.
func (m *machine) envoy() string { return m.addr + ":8090" }

// serveEnvoy serves them.
func (l *life) serveEnvoy(listen func(addr string) (net.Listener, error), log *slog.Logger) error {
	return envoy.Serve(l.server, envoy.Options{HTTPBind: l.m.envoy(), Config: l.m.w.plan.folder + "/" + envoyFile, MaxConnections: 100,
		NearLimit: 0.8, Listen: func(_, bind string) (net.Listener, error) {
			if bind == "" {
				return nil, nil
			}
			return listen(bind)
		}}, log)
}

type envoys struct {
	w     *world
	turns turns
	mu    sync.Mutex
	hits  map[string]*spent
}

func runEnvoy(w *world) {
	s := &envoys{w: w, turns: turns{w: w}, hits: map[string]*spent{"one": {}, "two": {}}}
	began := w.event("envoys", "begin")
	s.turns.change(func() {}) // the machines have read the file at their start
	var all sync.WaitGroup
	for n := range 2 {
		c := w.caller(fmt.Sprintf("envoy %d", n), 190+n)
		all.Go(func() {
			for range w.plan.calls {
				time.Sleep(time.Duration(c.rnd.Int64N(int64(w.plan.think + time.Millisecond))))
				s.ask(&c)
			}
		})
	}
	turn := 0
	s.turns.until(&all, w.plan.chance("turns of envoys"), func(next int) {
		if next%3 == 0 {
			w.wrongFile(envoyFile, envoyConfig(next)+"  - key one\n", envoyConfig(turn))
		}
		w.write(envoyFile, envoyConfig(next))
		for _, m := range w.all {
			m.reload()
		}
		turn = next
	})
	c := w.caller("counter", 192)
	for _, key := range envoyKeys {
		for range 600 {
			a := c.do("CL.SHOW", "envoy|w|"+key+"=")
			if list, is := a.value.([]any); is {
				used := int64(0)
				for _, limit := range list {
					used += shown(limit.([]any), "used")
				}
				if hits := s.hits[key]; !w.lost(began, a.ended) && (used < hits.least || used > hits.most) {
					w.wrong("of %s %d are used, and it was hit %d to %d times", key, used, hits.least, hits.most)
				}
				w.count("envoy's hits checked")
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	c.hangUp()
}

// shown is a number of CL.SHOW.
func shown(fields []any, name string) int64 {
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i] == name {
			return fields[i+1].(int64)
		}
	}
	return 0
}

// ask hits both limits.
func (s *envoys) ask(c *caller) {
	m := s.w.all[c.rnd.IntN(len(s.w.all))]
	conn, err := s.w.network.Dial(c.addr, m.envoy())
	if err != nil {
		return
	}
	hits := 1 + c.rnd.Int64N(5)
	body := fmt.Sprintf(`{"domain":"w","hitsAddend":%d,"descriptors":[{"entries":[{"key":"one"}]},{"entries":[{"key":"two"}]}]}`, hits)
	a := answer{began: s.w.event(c.name, "posts /json to %s: %s", m.addr, body)}
	status, text, err := post(conn, m.envoy(), "/json", []byte(body))
	a.ended = s.w.event(c.name, "gets %d: %s, %v", status, text, err)
	var v struct {
		Statuses []struct {
			Code         string
			CurrentLimit struct{ RequestsPerUnit int64 }
		}
	}
	certain := status == http.StatusOK && json.Unmarshal([]byte(text), &v) == nil && len(v.Statuses) == 2
	s.mu.Lock()
	for _, key := range envoyKeys {
		s.hits[key].add(hits, certain)
	}
	s.mu.Unlock()
	switch {
	case err != nil:
	case certain:
		one, two := v.Statuses[0].CurrentLimit.RequestsPerUnit, v.Statuses[1].CurrentLimit.RequestsPerUnit
		if one != two {
			s.w.wrong("%s: a request sees limits of two configurations: %s", c.name, text)
		}
		a.value = text
		s.turns.obeys(c, a, func(turn int) bool { return envoyLimit(turn) == one })
	case status == http.StatusOK, status == http.StatusTooManyRequests, strings.Contains(text, "configuration"):
		s.w.wrong("%s was answered %d: %s", c.name, status, text)
	}
}
