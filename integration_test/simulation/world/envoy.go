package world

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

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

// envoy and envoyHTTP are where Envoys connect to, by gRPC and by HTTP.
func (m *machine) envoy() string     { return m.addr + ":8081" }
func (m *machine) envoyHTTP() string { return m.addr + ":8090" }

// serveEnvoy serves them.
func (l *life) serveEnvoy(listen func(addr string) (net.Listener, error), log *slog.Logger) error {
	return envoy.Serve(l.server, envoy.Options{Bind: l.m.envoy(), HTTPBind: l.m.envoyHTTP(),
		Config: l.m.w.plan.folder + "/" + envoyFile, MaxConnections: 100,
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
			for range c.rounds(w.plan.calls, w.plan.think+time.Millisecond) {
				s.ask(&c)
			}
		})
	}
	turn := 0
	s.turns.until(&all, w.plan.chance("turns of envoys"), func(next int) {
		if next%2 == 1 {
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
	hits := 1 + c.rnd.Int64N(5)
	to, ask := m.envoyHTTP(), (*caller).askEnvoyByJSON
	if c.rnd.IntN(2) == 0 {
		to, ask = m.envoy(), (*caller).askEnvoyByGRPC
	}
	conn, err := s.w.network.Dial(c.addr, to)
	if err != nil {
		return
	}
	a := answer{began: s.w.event(c.name, "hits %d times at %s", hits, to)}
	limits, text, err := ask(c, conn, to, hits)
	a.ended = s.w.event(c.name, "gets %v: %s, %v", limits, text, err)
	certain := len(limits) == 2
	s.mu.Lock()
	for _, key := range envoyKeys {
		s.hits[key].add(hits, certain)
	}
	s.mu.Unlock()
	switch {
	case err != nil:
	case certain:
		if limits[0] != limits[1] {
			s.w.wrong("%s: a request sees limits of two configurations: %v", c.name, limits)
		}
		a.value = limits
		s.turns.obeys(c, a, func(turn int) bool { return envoyLimit(turn) == limits[0] })
	case len(limits) > 0, text == "", strings.Contains(text, "configuration"):
		s.w.wrong("%s was answered %v: %s", c.name, limits, text)
	}
}

// askEnvoyByJSON returns the limits that an answer tells, or the text of an error.
func (c *caller) askEnvoyByJSON(conn net.Conn, to string, hits int64) (limits []int64, text string, err error) {
	body := fmt.Sprintf(`{"domain":"w","hitsAddend":%d,"descriptors":[{"entries":[{"key":"one"}]},{"entries":[{"key":"two"}]}]}`, hits)
	status, text, err := post(conn, to, "/json", []byte(body))
	var v struct {
		Statuses []struct {
			CurrentLimit struct{ RequestsPerUnit int64 }
		}
	}
	if err != nil || status != http.StatusOK || json.Unmarshal([]byte(text), &v) != nil {
		return nil, text, err
	}
	for _, s := range v.Statuses {
		limits = append(limits, s.CurrentLimit.RequestsPerUnit)
	}
	return limits, "", nil
}

// askEnvoyByGRPC is askEnvoyByJSON by gRPC. Generated messages would make the program half as large again.
func (c *caller) askEnvoyByGRPC(conn net.Conn, to string, hits int64) (limits []int64, text string, err error) {
	field := func(b []byte, n protowire.Number, value []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), value)
	}
	message := field(nil, 1, []byte("w"))
	for _, key := range envoyKeys {
		message = field(message, 2, field(nil, 1, field(nil, 1, []byte(key))))
	}
	message = protowire.AppendVarint(protowire.AppendTag(message, 3, protowire.VarintType), uint64(hits))
	transport := &http.Transport{Protocols: new(http.Protocols),
		DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer conn.Close() // CloseIdleConnections leaves one open whose call has just failed
	request, err := http.NewRequest(http.MethodPost, "http://"+to+"/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
		bytes.NewReader(append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)))
	if err != nil {
		return nil, "", err
	}
	request.Header.Set("Content-Type", "application/grpc")
	request.Header.Set("Te", "trailers")
	client := http.Client{Timeout: time.Minute, Transport: transport}
	got, err := client.Do(request)
	if err != nil {
		return nil, "", err
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	if text = got.Trailer.Get("Grpc-Message") + got.Header.Get("Grpc-Message"); err != nil || len(body) < 5 {
		return nil, text, err
	}
	for _, status := range fieldsOf(body[5:], 2) {
		for _, limit := range fieldsOf(status, 2) {
			for _, n := range fieldsOf(limit, 1) {
				value, _ := protowire.ConsumeVarint(n)
				limits = append(limits, int64(value))
			}
		}
	}
	return limits, text, nil
}

// fieldsOf are the values of a message's field, bytes or varints.
func fieldsOf(message []byte, field protowire.Number) (values [][]byte) {
	for len(message) > 0 {
		n, kind, length := protowire.ConsumeTag(message)
		if length < 0 {
			return nil
		}
		message = message[length:]
		if length = protowire.ConsumeFieldValue(n, kind, message); length < 0 {
			return nil
		}
		if value := message[:length]; n == field {
			if kind == protowire.BytesType {
				value, _ = protowire.ConsumeBytes(value)
			}
			values = append(values, value)
		}
		message = message[length:]
	}
	return values
}
