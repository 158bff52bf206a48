package envoy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"celld/internal/celldtest"
	"celld/resp"
	"celld/resp/config"
	"celld/resp/envoy/grpc"
	"celld/resp/envoy/message"
	"celld/resp/metrics"
	"celld/store/memory"
)

// newPort is a port of a server that does not listen, on a file with this text.
func newPort(t *testing.T, text string) (*port, *celldtest.LogBuffer) {
	t.Helper()
	log := &celldtest.LogBuffer{}
	server := resp.NewServer(resp.Options{Config: config.New(), Store: memory.New(memory.Options{})})
	d := &port{service: &newWorld(t, Options{}).service, server: server, log: slog.New(slog.NewTextHandler(log, nil))}
	d.options.Config = celldtest.TempFile(t, text)
	d.watch()
	server.Watch(&d.file)
	d.set.Store(nil)
	d.panicked = server.Door.Panic
	return d, log
}

// post asks /json.
func (d *port) post(body io.Reader) (code int, text string) {
	w := httptest.NewRecorder()
	newHTTP(d).Handler.ServeHTTP(w, httptest.NewRequest("POST", "/json", body))
	return w.Code, w.Body.String()
}

func TestJSONByHTTP(t *testing.T) {
	d, _ := newPort(t, limits("a rate_limit: {unit: minute, requests_per_unit: 1}"))
	const ask = `{"domain":"d","descriptors":[{"entries":[{"key":"a","value":"x"}]}]}`
	want := func(body io.Reader, code int, says string) {
		t.Helper()
		if got, text := d.post(body); got != code || !strings.Contains(text, says) || strings.Count(text, "\n") != 1 {
			t.Errorf("%d %q, want %d %q", got, text, code, says)
		}
	}
	want(strings.NewReader(ask), http.StatusServiceUnavailable, "no rate limit configuration loaded")
	d.server.ReadNow(&d.file)
	want(strings.NewReader(ask), http.StatusOK, `{"overallCode":"OK","statuses":[{"code":"OK"`)
	want(strings.NewReader(ask), http.StatusTooManyRequests, `"overallCode":"OVER_LIMIT"`)
	want(strings.NewReader(`{"domain":""}`), http.StatusBadRequest, "domain must not be empty")
	want(strings.NewReader(`{`), http.StatusBadRequest, "not JSON, at byte 1")
	want(strings.NewReader(strings.Repeat(" ", grpc.MaxMessage+1)), http.StatusRequestEntityTooLarge, "at most 65536 bytes")
	want(io.MultiReader(strings.NewReader(ask), cutOff{}), http.StatusBadRequest, "the request ends too early")
	d.limits = panicking{}
	if code, text := d.post(strings.NewReader(ask)); code != http.StatusInternalServerError || text != "" {
		t.Errorf("after a panic: %d %q", code, text)
	}
	w, chunked := httptest.NewRecorder(), httptest.NewRequest("POST", "/json", nil)
	chunked.TransferEncoding = []string{"chunked"}
	if newHTTP(d).Handler.ServeHTTP(w, chunked); w.Header().Get("Connection") != "close" {
		t.Error("a connection goes on after chunks")
	}
	w = httptest.NewRecorder()
	newHTTP(d).Handler.ServeHTTP(w, httptest.NewRequest("GET", "/json", nil))
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "POST" {
		t.Errorf("GET: %d, Allow %q", w.Code, w.Header().Get("Allow"))
	}
}

// The page of a web site takes nothing from a limit, whether it makes its browser ask an address or has its own name lead here, and reads
// no metrics. By the network, any name will do that no page can have sent.
func TestNoPagesAsk(t *testing.T) {
	const ask = `{"domain":"d","descriptors":[{"entries":[{"key":"a","value":"x"}]}]}`
	for _, of := range []struct {
		bind, host string
		headers    []string
		code       int
	}{
		{"127.0.0.1:8080", "127.0.0.1:8080", nil, 200},
		{"localhost:8080", "localhost:8080", []string{"Accept", "*/*"}, 200},
		{"127.0.0.1:8080", "ratelimit:8080", nil, 200},
		{"127.0.0.1:8080", "rebound.example:8080", []string{"Accept", "*/*"}, 403},
		{"127.0.0.1:8080", "127.0.0.1:8080", []string{"Origin", "https://evil.example"}, 403},
		{"127.0.0.1:8080", "127.0.0.1:8080", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"*:8080", "ratelimit.shop.svc.cluster.local:8080", []string{"Accept", "*/*"}, 200},
		{"*:8080", "rebound.example:8080", []string{"Origin", "http://rebound.example:8080"}, 403},
		{"*:8080", "192.0.2.1:8080", []string{"Origin", "https://evil.example"}, 403},
	} {
		d, _ := newPort(t, limits("a rate_limit: {unit: minute, requests_per_unit: 1}"))
		d.options.HTTPBind, d.options.MetricsBind = of.bind, of.bind
		d.server.ReadNow(&d.file)
		for path, server := range map[string]*http.Server{"/json": newHTTP(d), "/metrics": newMetrics(d), "/healthcheck": newHTTP(d)} {
			r, w, code := httptest.NewRequest("POST", path, strings.NewReader(ask)), httptest.NewRecorder(), of.code
			r.Host = of.host
			for i := 0; i < len(of.headers); i += 2 {
				r.Header.Set(of.headers[i], of.headers[i+1])
			}
			if path == "/healthcheck" {
				code = 200
			}
			if server.Handler.ServeHTTP(w, r); w.Code != code {
				t.Errorf("%s of %+v: %d %s", path, of, w.Code, w.Body)
			}
		}
	}
}

// cutOff is a body whose sender has gone.
type cutOff struct{}

func (cutOff) Read([]byte) (int, error) { return 0, errors.New("gone") }

// A configuration is taken if it is good; the one before stays if not.
func TestReload(t *testing.T) {
	d, log := newPort(t, limits("a rate_limit: {unit: minute, requests_per_unit: 1}"))
	if err := d.unwell(); err == nil || err.Error() != "no configuration is loaded" {
		t.Errorf("before: %v", err)
	}
	if about, err := d.take(); err != nil || fmt.Sprint(about) != "[domains 1 limits 1]" || d.unwell() != nil {
		t.Errorf("%v, %v, %v", about, err, d.unwell())
	}
	path := d.options.Config
	celldtest.WriteFile(t, limits("a rate_limit: {unit: minute, requests_per_unit: 1}")+"\n---\ndomain: e\n", path)
	_, err := d.take()
	warnings, wrong := Check(d.options)
	if err != nil || len(warnings) != 1 || wrong != nil || !strings.Contains(log.String(), "what stands behind --- is a second document") {
		t.Errorf("%v, %q, %v, %s", err, warnings, wrong, log)
	}
	set := d.set.Load()
	celldtest.WriteFile(t, "domain: d\ndescriptors: [{key: a, rate_limit: {unit: x}}, {key: ''}]\n", path)
	if about, err := d.take(); about != nil || err == nil || strings.Count(err.Error(), path) != 2 || d.set.Load() != set {
		t.Errorf("%v, %v", about, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if about, err := d.take(); about != nil || err == nil || !strings.Contains(err.Error(), "no such file") || d.set.Load() != set {
		t.Errorf("%v, %v", about, err)
	}
	d.options.HealthNeedsDomain, d.options.Config = true, t.TempDir()
	if about, err := d.take(); err != nil || len(about) == 0 {
		t.Errorf("%v, %v", about, err)
	}
	if err := d.unwell(); err == nil || err.Error() != "the configuration has no domain" {
		t.Errorf("without a domain: %v", err)
	}
}

// What Serve opens is closed when the server stops.
func TestServe(t *testing.T) {
	server := resp.NewServer(resp.Options{Config: config.New(), Store: memory.New(memory.Options{})})
	log := &celldtest.LogBuffer{}
	dir := celldtest.Tree(t, map[string]string{"a.yaml": limits("a rate_limit: {unit: minute, requests_per_unit: 1}")})
	o := Options{Bind: "127.0.0.1:0", HTTPBind: "[::]:0", MetricsBind: "127.0.0.1:0", Config: dir, MaxConnections: 3}
	if err := Serve(server, o, slog.New(slog.NewTextHandler(log, nil))); err != nil {
		t.Fatal(err)
	}
	find := func(name string) string {
		t.Helper()
		found := regexp.MustCompile(name + `=\S*?(:\d+)`).FindStringSubmatch(log.String())
		if found == nil {
			t.Fatalf("no %s in %s", name, log)
		}
		return "http://127.0.0.1" + found[1]
	}
	get := func(url string) (int, string) {
		t.Helper()
		answer, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(body)
	}
	if code, text := get(find("envoy_http") + "/healthcheck"); code != http.StatusOK || text != "OK" {
		t.Errorf("healthcheck: %d %q", code, text)
	}
	code, text := get(find("envoy_metrics") + "/any")
	if code != http.StatusOK || !strings.Contains(text, "\nratelimit_service_config_load_success 1\n") {
		t.Errorf("metrics: %d %q", code, text)
	}
	find("envoy")
	celldtest.WriteFile(t, "nosuch: 1\n", filepath.Join(dir, "b.yaml"))
	server.Reload()
	code, text = get(find("envoy_metrics") + "/any")
	if !strings.Contains(text, "\nratelimit_service_config_load_error 1\n") {
		t.Errorf("metrics after a mistake: %d %q", code, text)
	}

	if Serve(server, Options{}, nil) != nil {
		t.Error("without an address there is an error")
	}
	for bind, want := range map[string]string{
		"unix:///no/such/socket": "--envoy-bind: ",
		"192.0.2.1:1":            "--envoy-bind: listen on 192.0.2.1:1",
	} {
		o.Bind = bind
		if err := Serve(server, o, slog.New(slog.DiscardHandler)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", bind, err)
		}
	}
}

// A stop ends slow requests by HTTP with its context.
func TestStop(t *testing.T) {
	d, _ := newPort(t, "domain: d\n")
	d.server.ReadNow(&d.file)
	d.stopped = make(chan struct{})
	d.grpc = newGRPC(d.service, &health{d.stats, d.unwell}, false)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		d.grpc.Serve(ln)
		close(served)
	}()
	inside, out := make(chan struct{}), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(inside)
		<-out
	}))
	defer close(out)
	d.http = []*http.Server{slow.Config}
	failed := make(chan error, 1)
	go func() {
		_, err := http.Get(slow.URL)
		failed <- err
	}()
	<-inside
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	d.stop(ctx)
	if err := <-failed; err == nil {
		t.Error("a slow request was answered")
	}
	select {
	case <-d.stopped:
	default:
		t.Error("who looks goes on")
	}
	if got := (&health{d.stats, d.unwell}).state(""); got != message.NotServing {
		t.Errorf("its health is then %v", got)
	}
	select {
	case <-served:
	case <-time.After(celldtest.Patience):
		t.Error("gRPC is still served")
	}
}

// Metrics have the names of envoyproxy/ratelimit.
func TestMetrics(t *testing.T) {
	w := newWorld(t, Options{Shadow: true}, limits("a rate_limit: {unit: minute, requests_per_unit: 5}",
		"s shadow_mode: true, rate_limit: {unit: minute, requests_per_unit: 1}"))
	w.ask1("a=1 hits=7", "s=1", "s=1")
	w.json(`{"domain":"9z-é.x","descriptors":[{}]}`)
	w.json(`{}`)
	m := &w.stats.methods[shouldRateLimit]
	for _, took := range []time.Duration{0, 7 * time.Millisecond, 20 * time.Second} {
		m.done(time.Now().Add(-took))
	}
	page := string(metrics.AppendText(nil, metrics.New().Read(0, w.stats.declare)))
	for _, want := range []string{
		`ratelimit_service_rate_limit_total_hits{domain="d",key1="a"} 7`, `ratelimit_service_rate_limit_over_limit{domain="d",key1="a"} 2`,
		`ratelimit_service_rate_limit_near_limit{domain="d",key1="a"} 1`,
		`ratelimit_service_rate_limit_within_limit{domain="d",key1="s"} 1`,
		`ratelimit_service_rate_limit_shadow_mode{domain="d",key1="s"} 1`, `ratelimit_service_rate_limit_9z___x_domain_not_found 1`,
		`ratelimit_service_global_shadow_mode 1`, `ratelimit_service_should_rate_limit_error{err_type="service_error"} 1`,
		`ratelimit_service_total_requests{grpc_method="ShouldRateLimit"} 3`,
		`ratelimit_service_response_time_seconds_bucket{grpc_method="ShouldRateLimit",le="0.005"} 1`,
		`ratelimit_service_response_time_seconds_bucket{grpc_method="ShouldRateLimit",le="10"} 2`,
		`ratelimit_service_response_time_seconds_bucket{grpc_method="ShouldRateLimit",le="+Inf"} 3`,
		`ratelimit_service_response_time_seconds_count{grpc_method="ShouldRateLimit"} 3`,
	} {
		if !strings.Contains(page, want+"\n") {
			t.Errorf("no %s in\n%s", want, page)
		}
	}
	if !regexp.MustCompile(`response_time_seconds_sum\{grpc_method="ShouldRateLimit"\} 20\.0`).MatchString(page) {
		t.Errorf("the sum of the times is wrong in\n%s", page)
	}
}

// The metadata of limits is merged, the first wins, and what the configuration has stays as it is.
func TestMetadataIsMerged(t *testing.T) {
	w := newWorld(t, Options{Metadata: true}, limits(
		"a metadata: {x: 1, m: {p: 1, q: {r: 1}}}, rate_limit: {unit: minute, requests_per_unit: 9}",
		"b metadata: {x: 2, y: 2, m: {p: 2, q: {s: 2}}, t: {u: 2}}, rate_limit: {unit: minute, requests_per_unit: 1}"))
	const ask = `{"domain":"d","descriptors":[{"entries":[{"key":"a"}]},{"entries":[{"key":"b"}]}]}`
	const both = `"metadata":{"m":{"p":1,"q":{"r":1,"s":2}},"t":{"u":2},"x":1,"y":2}`
	const first = `"metadata":{"m":{"p":1,"q":{"r":1}},"x":1}`
	for _, want := range []string{both, first} { // the second call is over the limit of b
		if got := w.json(ask); !strings.Contains(got, want) {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}
