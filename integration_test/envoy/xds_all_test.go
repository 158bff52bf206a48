//go:build all

package envoy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	envoytype "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	config "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// worlds draws what a server tells, the i-th time.
type worlds struct {
	*random
	i int
}

// xdsDomains each have one unit, that of their name: the reference knows the counts of two units of a key, and celld those of the last one.
var xdsDomains = []string{"DAY", "HOUR", "WEEK", "YEAR"}

// next is a world of some domains, and of mark, whose limit tells which world is in force. wrong is what is wrong with it, or strange.
func (w *worlds) next(t *testing.T) (r *discovery.DiscoveryResponse, wrong string) {
	if w.one(40) {
		return worldOf(t, fmt.Sprint(w.i)), "empty"
	}
	var domains []*config.RateLimitConfig
	for _, domain := range xdsDomains {
		if w.one(5) {
			continue
		}
		c := configOf(t, w.config(domain))
		all(c.Descriptors, func(d *config.RateLimitDescriptor) {
			if l := d.RateLimit; l != nil && !l.Unlimited {
				l.Unit = config.RateLimitUnit(config.RateLimitUnit_value[domain])
			}
		})
		domains = append(domains, c)
	}
	domains = append(domains, marked(t, w.i+1), configOf(t, last))
	first := domains[0]
	d := first.Descriptors[w.IntN(len(first.Descriptors))]
	if d.RateLimit == nil {
		d.RateLimit = &config.RateLimitPolicy{Unit: config.RateLimitUnit_YEAR, RequestsPerUnit: 3}
	}
	if w.one(3) {
		wrong = w.pick([]string{"a domain twice", "no domain", "no key", "a descriptor twice", "no unit", "unlimited and a unit",
			"replaces itself", "replaces nothing", "a unit that is not known"})
	}
	switch wrong {
	case "a domain twice":
		domains = append(domains, first)
	case "no domain":
		first.Domain = ""
	case "no key":
		d.Key = ""
	case "a descriptor twice":
		first.Descriptors = append(first.Descriptors, d)
	case "no unit":
		d.RateLimit.Unit, d.RateLimit.Unlimited = 0, false
	case "unlimited and a unit":
		d.RateLimit.Unit, d.RateLimit.Unlimited = config.RateLimitUnit_HOUR, true
	case "replaces itself":
		d.RateLimit.Name, d.RateLimit.Replaces = "n", []*config.RateLimitReplace{{Name: "n"}}
	case "replaces nothing":
		d.RateLimit.Replaces = []*config.RateLimitReplace{{}}
	case "a unit that is not known":
		d.RateLimit.Unit, d.RateLimit.Unlimited = 99, false
	}
	r = worldOf(t, fmt.Sprint(w.i), domains...)
	if wrong != "" || !w.one(4) {
		return r, wrong
	}
	one := r.Resources[w.IntN(len(r.Resources))]
	wrong = w.pick([]string{"cut off", "another message", "another prefix", "another envelope", "no nonce", "the same version",
		"unknown fields"})
	switch wrong {
	case "cut off":
		one.Value = one.Value[:len(one.Value)-1]
	case "another message":
		one.TypeUrl = "type.googleapis.com/google.protobuf.Struct"
	case "another prefix":
		one.TypeUrl = "x.example/y" + strings.TrimPrefix(configURL, "type.googleapis.com")
	case "another envelope":
		r.TypeUrl = one.TypeUrl + "s"
	case "no nonce":
		r.Nonce = ""
	case "the same version":
		r.VersionInfo = fmt.Sprint(w.i - 1)
	case "unknown fields":
		one.Value = append(one.Value, "\xaa\x06\x01x"...)
	}
	return r, wrong
}

// worldOf tells these domains.
func worldOf(t *testing.T, version string, domains ...*config.RateLimitConfig) *discovery.DiscoveryResponse {
	t.Helper()
	r := &discovery.DiscoveryResponse{VersionInfo: version, Nonce: "n" + version, TypeUrl: configURL}
	for _, c := range domains {
		one, err := anypb.New(c)
		if err != nil {
			t.Fatal(err)
		}
		r.Resources = append(r.Resources, one)
	}
	return r
}

// marked is a domain whose limit tells which world is in force.
func marked(t *testing.T, limit int) *config.RateLimitConfig {
	return configOf(t, fmt.Sprintf("domain: mark\ndescriptors: [{key: client, rate_limit: {unit: year, requests_per_unit: %d}}]", limit))
}

// configOf is a file's domain as a message.
func configOf(t *testing.T, file string) *config.RateLimitConfig {
	t.Helper()
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(file), &fields); err != nil {
		t.Fatal(err, file)
	}
	text, err := json.Marshal(inUpperCase(fields))
	if err != nil {
		t.Fatal(err)
	}
	c := &config.RateLimitConfig{}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, c); err != nil {
		t.Fatal(err, string(text))
	}
	c.Name = "the " + c.Domain
	return c
}

// inUpperCase writes the names of units as messages do.
func inUpperCase(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			if text, isText := inner.(string); isText && name == "unit" {
				v[name] = strings.ToUpper(text)
			} else {
				inUpperCase(inner)
			}
		}
	case []any:
		for _, inner := range v {
			inUpperCase(inner)
		}
	}
	return v
}

// all calls f for descriptors and those within them.
func all(of []*config.RateLimitDescriptor, f func(*config.RateLimitDescriptor)) {
	for _, d := range of {
		f(d)
		all(d.Descriptors, f)
	}
}

// both are envoyproxy/ratelimit and celld, each with an xDS server of its own.
type both struct {
	t       *testing.T
	theirs  *reference
	ours    *served
	mine    ratelimit.RateLimitServiceClient
	servers [2]*control
	streams [2]*stream
	taken   bool                         // a world on these streams, whose version a refusal names; the reference also an earlier one
	inForce *discovery.DiscoveryResponse // the last that they took
	over    int                          // statuses
}

func startBoth(t *testing.T) *both {
	b := &both{t: t, servers: [2]*control{startControl(t, "", nil), startControl(t, "", nil)}}
	env := func(c *control, more ...string) []string {
		return append(more, "CONFIG_TYPE=GRPC_XDS_SOTW", "CONFIG_GRPC_XDS_SERVER_URL="+c.addr, "FORCE_START_WITHOUT_INITIAL_CONFIG=true")
	}
	b.theirs = startReference(t, t.TempDir(),
		env(b.servers[0], "XDS_CLIENT_BACKOFF_INITIAL_INTERVAL=1s", "XDS_CLIENT_BACKOFF_MAX_INTERVAL=1s")...)
	b.ours = startOn(t, harness.Spec{Binary: ratelimitProgram(t), Env: env(b.servers[1], "USE_PROMETHEUS=true", "HOST=127.0.0.1",
		"GRPC_HOST=127.0.0.1", "PORT="+harness.FreePort(t), "GRPC_PORT="+harness.FreePort(t),
		"PROMETHEUS_ADDR=127.0.0.1:"+harness.FreePort(t))})
	b.mine = dial(t, b.ours.grpc)
	b.connect()
	return b
}

// connect takes their next streams.
func (b *both) connect() {
	b.taken = false
	for i, c := range b.servers {
		b.streams[i] = c.next(b.t)
		if _, err := b.streams[i].Recv(); err != nil {
			b.t.Fatal(err)
		}
	}
}

// told tells both a world, and returns why they refuse it, the reference first; "": they do not.
func (b *both) told(r *discovery.DiscoveryResponse) (why [2]string) {
	var said [2]string
	for i, s := range b.streams {
		if err := s.Send(r); err != nil {
			b.t.Fatal(err)
		}
		q, err := s.Recv()
		if err != nil {
			b.t.Fatal(err)
		}
		said[i] = fmt.Sprintf("nonce %q, refused: %v with code %d", q.ResponseNonce, q.ErrorDetail != nil, q.ErrorDetail.GetCode())
		if b.taken || q.ErrorDetail == nil {
			said[i] += ", version " + q.VersionInfo
		}
		why[i] = q.ErrorDetail.GetMessage()
	}
	if said[0] != said[1] {
		b.t.Fatalf("%v:\n got %s: %s\nwant %s: %s", r, said[1], why[1], said[0], why[0])
	}
	if name, _, has := strings.Cut(why[0], ": "); has && strings.HasPrefix(name, "the ") && !strings.HasPrefix(why[1], name+": ") {
		b.t.Fatalf("%v:\n got %s\nwant %s", r, why[1], why[0])
	}
	if why[0] == "" {
		b.taken, b.inForce = true, r
	}
	return why
}

// has waits until both decide by a world: they acknowledge it before. Its domain mark has this limit; 0: it is not there.
func (b *both) has(mark int) {
	for _, client := range []ratelimit.RateLimitServiceClient{b.theirs.client, b.mine} {
		celldtest.Eventually(b.t, "a world is in force", func() bool {
			limit, err := strconv.Atoi(limitOf(client, "mark"))
			return limit == mark && (err == nil) == (mark > 0)
		})
	}
}

// asked compares their answers.
func (b *both) asked(q *ratelimit.RateLimitRequest) {
	await(func(now time.Time) bool { return now.Unix()%3600 < 3570 }) // else one of them might count in the next hour
	before := time.Now().Unix()
	want, wantErr := ask(b.theirs.client, q)
	got, gotErr := ask(b.mine, q)
	after := time.Now().Unix()
	if (wantErr != nil) != (gotErr != nil) {
		b.t.Fatalf("%v\n%v: got %v, want %v", b.inForce, q, gotErr, wantErr)
	}
	for _, status := range slices.Concat(want.GetStatuses(), got.GetStatuses()) {
		if after != before {
			status.DurationUntilReset = nil
		}
		if status.Code == ratelimit.RateLimitResponse_OVER_LIMIT {
			b.over++
		}
	}
	if wantErr == nil && !proto.Equal(want, got) {
		b.t.Fatalf("%v\n%v\n got %v\nwant %v", b.inForce, q, got, want)
	}
}

// TestSameByXDS tells the same worlds, one of three of them wrong, to envoyproxy/ratelimit and to celld. They take or refuse each of them
// both, give the same answers, also while no server is there, and count the same.
func TestSameByXDS(t *testing.T) {
	t.Parallel()
	n := *domains / 10
	b := startBoth(t)
	w := &worlds{random: &random{Rand: celldtest.NewRand(t), old: newest == ""}}
	mark, refused, unread, seen := 0, 0, 0, map[string]string{}
	asks := func() {
		var q *ratelimit.RateLimitRequest
		for range 12 {
			if q == nil || w.one(3) {
				q = w.request(w.pick(append(xdsDomains, "unknown")))
			}
			for _, d := range q.Descriptors {
				if unit, is := envoytype.RateLimitUnit_value[q.Domain]; !is {
					d.Limit = nil // a request has no unit of a week
				} else if d.Limit != nil {
					d.Limit.Unit = envoytype.RateLimitUnit(unit)
				}
			}
			b.asked(q)
		}
	}
	for w.i = range n {
		switch {
		case w.i%53 == 52: // the streams end, some in the middle of a world
			var partial *discovery.DiscoveryResponse
			if w.one(2) {
				partial, _ = w.next(t)
			}
			for i, s := range b.streams {
				if partial == nil {
					close(s.ends)
					continue
				}
				b.servers[i].passes.Store(w.Int64N(int64(proto.Size(partial))))
				_ = s.Send(partial)
			}
			b.connect()
			b.has(mark)
			asks()
		case w.i%250 == 249: // the servers go, and come again
			for _, c := range b.servers {
				c.server.Stop()
			}
			asks()
			for i, c := range b.servers {
				b.servers[i] = startControl(t, c.addr, nil)
			}
			b.connect()
		}
		r, wrong := w.next(t)
		for w.i == n-1 && wrong != "" {
			r, wrong = w.next(t)
		}
		why := b.told(r)
		switch {
		case why[0] != "":
			refused++
		case wrong == "empty":
			mark = 0
		default:
			mark = w.i + 1
		}
		if wrong == "cut off" || wrong == "another message" {
			unread++
		}
		seen[wrong] = fmt.Sprintf("celld says %q, envoyproxy/ratelimit %q", why[1], why[0])
		b.has(mark)
		asks()
	}
	for wrong, text := range seen {
		t.Logf("%s: %s", wrong, text)
	}
	t.Logf("%d worlds, %d refused, %d statuses over the limit", n, refused, b.over)
	if refused < n/10 || b.over < n/10 {
		t.Error("too little was compared")
	}
	sameSeries(t, b.theirs, b.ours, b.mine, map[string]bool{"mark": true}, func(string) string { return "" })
	for kind, more := range map[string]int{"success": 0, "error": unread} { // the reference does not count what it cannot read
		name := "ratelimit_service_config_load_" + kind
		_, _, want := harness.Get(b.ours.Server, b.theirs.prometheus+"/metrics")
		_, _, got := harness.Get(b.ours.Server, b.ours.metrics+"/metrics")
		n, err := strconv.Atoi(metric(want, name))
		if err != nil || metric(got, name) != fmt.Sprint(n+more) {
			t.Errorf("%s is %s, want %s and %d", name, metric(got, name), metric(want, name), more)
		}
	}
}

// TestGatewayLimits tells both what Envoy Gateway and AI Gateway tell of limits, and asks for each of them until it is denied.
func TestGatewayLimits(t *testing.T) {
	t.Parallel()
	b := startBoth(t)
	n, limits := 0, 0
	for line := range strings.Lines(celldtest.ReadFile(t, "testdata", "gateway-limits.txt")) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		n++
		domains := []*config.RateLimitConfig{marked(t, n)}
		var told []json.RawMessage
		if err := json.Unmarshal([]byte(line), &told); err != nil {
			t.Fatal(err)
		}
		for _, one := range told {
			c := configOf(t, string(one))
			all(c.Descriptors, func(d *config.RateLimitDescriptor) {
				if d.RateLimit.GetUnit() == config.RateLimitUnit_SECOND { // which would end between two answers
					d.RateLimit.Unit = config.RateLimitUnit_YEAR
				}
			})
			domains = append(domains, c)
		}
		if why := b.told(worldOf(t, fmt.Sprint(n), domains...)); why[1] != "" {
			t.Fatal(line, why)
		}
		b.has(n)
		for _, c := range domains[1:] {
			leaves(c.Descriptors, nil, func(path []*common.RateLimitDescriptor_Entry, limit *config.RateLimitPolicy) {
				limits++
				q := &ratelimit.RateLimitRequest{Domain: c.Domain, Descriptors: []*common.RateLimitDescriptor{{Entries: path}}}
				q.HitsAddend = max(1, limit.RequestsPerUnit/4)
				for range 6 {
					b.asked(q)
				}
			})
		}
	}
	t.Logf("%d worlds, %d limits, %d statuses over the limit", n, limits, b.over)
	if b.over < limits {
		t.Error("too little was denied")
	}
}

// leaves calls f for each limit, with the entries of a request for it.
func leaves(of []*config.RateLimitDescriptor, above []*common.RateLimitDescriptor_Entry, f func([]*common.RateLimitDescriptor_Entry,
	*config.RateLimitPolicy)) {
	for _, d := range of {
		path := append(slices.Clip(above), &common.RateLimitDescriptor_Entry{Key: d.Key, Value: cmp.Or(d.Value, "each")})
		if d.RateLimit != nil {
			f(path, d.RateLimit)
		}
		leaves(d.Descriptors, path, f)
	}
}
