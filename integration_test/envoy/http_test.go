package envoy

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// post asks by JSON.
func post(t *testing.T, url, body string) (code int, answer string) {
	t.Helper()
	resp, err := http.Post(url+"/json", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestJSON(t *testing.T) {
	t.Parallel()
	s := start(t, shop, "--envoy-http-bind", "127.0.0.1:0")
	const entry = `"entries": [{"key": "client", "value": "%s"}]`
	client := func(name, more string) string {
		return fmt.Sprintf(`{"domain": "shop", "descriptors": [{`+entry+more+`}]}`, name)
	}
	const left = `{"overallCode":"OK","statuses":[{"code":"OK","currentLimit":{"requestsPerUnit":2,"unit":"YEAR"}`
	for _, test := range []struct {
		q    string
		code int
		says string
	}{
		{client("ann", ""), 200, left + `,"limitRemaining":1,"durationUntilReset":"`},
		{client("ann", ""), 200, left + `,"durationUntilReset":"`},
		{client("ann", ""), 429, `{"overallCode":"OVER_LIMIT","statuses":[{"code":"OVER_LIMIT","currentLimit":{"requestsPerUnit":2,`},
		{client("bob", `, "hitsAddend": 2`), 200, left + `,"durationUntilReset":"`},
		{client("cleo", `, "hits_addend": "2"`), 200, left + `,"durationUntilReset":"`},
		{client("dan", `, "hits_addend": null`), 200, left + `,"limitRemaining":1`},
		{client("bob", `, "hits_addend": 1, "is_negative_hits": true`), 200, left + `,"limitRemaining":1`},
		{client("cleo", `, "hitsAddend": 1, "isNegativeHits": true`), 200, left + `,"limitRemaining":1`},
		{client("eve", `, "limit": {"requests_per_unit": 7, "unit": "DAY"}`), 200, `"requestsPerUnit":7,"unit":"DAY"},"limitRemaining":6`},
		{client("eve", `, "limit": {"requestsPerUnit": 7.0, "unit": 4}`), 200, `"requestsPerUnit":7,"unit":"DAY"},"limitRemaining":5`},
		{strings.Replace(client("fay", ""), `{"domain"`, `{"hitsAddend": 3, "domain"`, 1), 429, `"OVER_LIMIT"`},
		{strings.Replace(client("gus", ""), `{"domain"`, `{"hits_addend": 3, "domain"`, 1), 429, `"OVER_LIMIT"`},
		{strings.Replace(client("ann", ""), "shop", "nosuch", 1), 200, `{"overallCode":"OK","statuses":[{"code":"OK"}]}` + "\n"},
		{`{"domain": "shop", `, 400, "not JSON, at byte 19"},
		{``, 400, "not JSON"},
		{client("ann", "") + "x", 400, "not JSON"},
		{`[]`, 400, "the body: expected an object"},
		{client("ann", `, "nosuch": 1`), 400, "descriptors[0].nosuch: an unknown field"},
		{client("ann", `, "hitsAddend": -1`), 400, "descriptors[0].hitsAddend: expected an integer of 0 or more"},
		{client("ann", `, "hitsAddend": 1.5`), 400, "expected an integer of 0 or more"},
		{client("ann", `, "limit": {"unit": "FORTNIGHT"}`), 400, "descriptors[0].limit.unit: expected a unit, such as MINUTE"},
		{client("ann", `, "limit": {"requestsPerUnit": 1}`), 400, "the unit UNKNOWN of its limit is not known"},
		{client("ann", `, "limit": {"requestsPerUnit": 4294967296, "unit": "DAY"}`), 400, "expected 4294967295 at most"},
		{`{"domain": "shop", "domain": "x"}`, 400, "domain: the field is given twice"},
		{`{"domain": "shop"}`, 400, "rate limit descriptor list must not be empty"},
		{`{"descriptors": [{}]}`, 400, "rate limit domain must not be empty"},
		{client(strings.Repeat("x", 60<<10), ""), 200, left},
		{client(strings.Repeat("x", 64<<10), ""), 413, "at most 65536 bytes"},
	} {
		code, body := post(t, s.http, test.q)
		if code != test.code || !strings.Contains(body, test.says) || strings.Count(body, "\n") != 1 {
			t.Errorf("%.200s: got %d %.300s\nwant %d %s", test.q, code, body, test.code, test.says)
		}
	}
	for _, method := range []string{"GET", "PUT", "DELETE", "HEAD"} {
		q, err := http.NewRequest(method, s.http+"/json", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 405 || resp.Header.Get("Allow") != "POST" {
			t.Errorf("%s: %d %v", method, resp.StatusCode, resp.Header)
		}
	}
	for _, path := range []string{"/", "/json/", "/metrics", "/debug/pprof/"} {
		if code, _, body := harness.Get(s.Server, s.http+path); code != 404 {
			t.Errorf("%s: %d %q", path, code, body)
		}
	}
	expect(t, dial(t, s.grpc), "client=bob", secondOf2) // both doors have the same counts
}

// TestHTTPAlone serves no gRPC.
func TestHTTPAlone(t *testing.T) {
	t.Parallel()
	s := start(t, shop, "--envoy-bind", "", "--envoy-http-bind", "127.0.0.1:0")
	if s.grpc != "" {
		t.Errorf("gRPC is served on %s", s.grpc)
	}
	if code, body := post(t, s.http, `{"domain": "shop", "descriptors": [{"entries": [{"key": "client"}]}]}`); code != 200 {
		t.Errorf("%d %q", code, body)
	}
}

// TestMetrics: where the metrics are served they have envoyproxy/ratelimit's names, and the calls are counted in celld's own ways, too.
func TestMetrics(t *testing.T) {
	t.Parallel()
	s := start(t, shop+`  - key: quiet
    shadow_mode: true
    rate_limit: {unit: year, requests_per_unit: 1}
  - key: tenant
    value_to_metric: true
    descriptors: [{key: path, rate_limit: {unit: year, requests_per_unit: 10}}]
`, "--envoy-metrics-bind", "127.0.0.1:0", "--http-bind", "127.0.0.1:0")
	c := dial(t, s.grpc)
	for range 3 {
		for _, entry := range []string{"client=ann", "quiet=", "slide=ann"} {
			if _, err := ask(c, request("shop", entry)); err != nil {
				t.Fatal(err)
			}
		}
	}
	q := request("shop", "tenant=10.1.2.3")
	q.Descriptors[0].Entries = append(q.Descriptors[0].Entries, request("", "path=/a:b").Descriptors[0].Entries...)
	q.HitsAddend = 9
	for _, q := range []*ratelimit.RateLimitRequest{q, request("no.such", "client=ann"), request("", "client=ann")} {
		_, _ = ask(c, q)
	}
	wants := map[string]string{
		`ratelimit_service_rate_limit_total_hits{domain="shop",key1="client"}`:                                     "3",
		`ratelimit_service_rate_limit_within_limit{domain="shop",key1="client"}`:                                   "2",
		`ratelimit_service_rate_limit_near_limit{domain="shop",key1="client"}`:                                     "1",
		`ratelimit_service_rate_limit_over_limit{domain="shop",key1="client"}`:                                     "1",
		`ratelimit_service_rate_limit_over_limit{domain="shop",key1="slide"}`:                                      "1",
		`ratelimit_service_rate_limit_shadow_mode{domain="shop",key1="client"}`:                                    "",
		`ratelimit_service_rate_limit_shadow_mode{domain="shop",key1="quiet"}`:                                     "2",
		`ratelimit_service_rate_limit_over_limit{domain="shop",key1="quiet"}`:                                      "2",
		`ratelimit_service_rate_limit_total_hits{domain="shop",key1="tenant_10_1_2_3",key2="path"}`:                "9",
		`ratelimit_service_rate_limit_near_limit{domain="shop",key1="tenant_10_1_2_3",key2="path"}`:                "1",
		`ratelimit_service_rate_limit_no_such_domain_not_found`:                                                    "1",
		`ratelimit_service_should_rate_limit_error{err_type="service_error"}`:                                      "1",
		`ratelimit_service_should_rate_limit_error{err_type="redis_error"}`:                                        "0",
		`ratelimit_service_global_shadow_mode`:                                                                     "0",
		`ratelimit_service_config_load_success`:                                                                    "1",
		`ratelimit_service_config_load_error`:                                                                      "0",
		`ratelimit_service_total_requests{grpc_method="ShouldRateLimit"}`:                                          "12",
		`ratelimit_service_response_time_seconds_count{grpc_method="ShouldRateLimit"}`:                             "12",
		`ratelimit_service_response_time_seconds_bucket{grpc_method="ShouldRateLimit",le="+Inf"}`:                  "12",
		`celld_decisions_total{algorithm="window",command="envoy",decision="limited",period="",policy="literals"}`: "1",
	}
	for _, url := range []string{s.metrics, s.metrics + "/metrics", "http://" + s.HTTP() + "/metrics"} {
		code, header, page := harness.Get(s.Server, url)
		if code != 200 || !strings.HasPrefix(header.Get("Content-Type"), "text/plain; version=0.0.4") {
			t.Errorf("%s: %d %v", url, code, header)
		}
		for series, want := range wants {
			if got := metric(page, series); got != want {
				t.Errorf("%s: %s is %q, want %q", url, series, got, want)
			}
		}
		if celldtest.Thorough {
			out, _ := harness.TryTool(t, page, "promtool", "check", "metrics")
			for line := range strings.Lines(out) {
				if !strings.HasPrefix(line, "ratelimit_service_") || !strings.Contains(line, `should have "_total" suffix`) {
					t.Errorf("promtool: %s", line)
				}
			}
		}
		if strings.Contains(page, "ann") {
			t.Errorf("%s: a key is in the metrics", url)
		}
	}
}

// TestCommands: RESP's commands know the keys, and its rules decide.
func TestCommands(t *testing.T) {
	t.Parallel()
	s := start(t, shop)
	c, r := dial(t, s.grpc), harness.Dial(t, s.Addr)
	for _, want := range []string{firstOf2, secondOf2, overOf2, overOf2} {
		expect(t, c, "client=ann", want)
	}
	for _, want := range []string{firstOf2, secondOf2, overOf2} {
		expect(t, c, "slide=a|b", want)
	}
	info := harness.InfoSections(r.Do("INFO", "stats"))["Stats"]
	if info["envoy_allowed"] != "4" || info["envoy_limited"] != "3" || info["take_allowed"] != "0" {
		t.Errorf("INFO: %v", info)
	}
	if got := limitOf(c, "shop"); got != "2" {
		t.Error(got)
	}
	r.Play(
		harness.Step{"EXISTS envoy|shop|client=looks", ":0"}, // who looks leaves nothing
		harness.Step{"CL.TOP", "*2\r\n*2\r\n$21\r\nenvoy|shop|client=ann\r\n:2\r\n*2\r\n$28\r\nenvoy|shop|slide=a%7Cb|slide\r\n:1"},
		harness.Step{"EXISTS envoy|shop|client=ann", ":1"}, harness.Step{"EXISTS envoy|shop|client=bob", ":0"},
		harness.Step{"CL.RULE ADD DENY envoy|shop|client=bob", ":1"}, harness.Step{"CL.RULE ADD ALLOW envoy|shop|slide=*", ":1"},
	)
	if stats := r.Do("CL.STATS"); !strings.Contains(stats, "$7\r\nallowed\r\n:4\r\n$7\r\nlimited\r\n:3\r\n") {
		t.Errorf("CL.STATS: %q", stats)
	}
	expect(t, c, "client=bob", overOf2)
	expect(t, c, "client=cleo", firstOf2)
	expect(t, c, "slide=a|b", "OK / OK of 2 a YEAR, 2 left, ends")
	r.Play(
		harness.Step{"CL.RULE DEL DENY envoy|shop|client=bob", ":1"}, harness.Step{"CL.RULE DEL ALLOW envoy|shop|slide=*", ":1"},
		harness.Step{"CL.RESET envoy|shop|client=ann", ":1"},
	)
	expect(t, c, "client=bob", firstOf2)
	expect(t, c, "client=ann", firstOf2)
	expect(t, c, "slide=a|b", overOf2)
	info = harness.InfoSections(r.Do("INFO", "stats"))["Stats"]
	if info["envoy_allowed"] != "8" || info["envoy_limited"] != "5" || info["rule_denied"] != "1" {
		t.Errorf("INFO: %s allowed, %s limited, %s denied by rules", info["envoy_allowed"], info["envoy_limited"], info["rule_denied"])
	}
}

// TestPolicies: a limit may be a policy, which changes without the file.
func TestPolicies(t *testing.T) {
	t.Parallel()
	s := start(t, "domain: shop\ndescriptors: [{key: plan, rate_limit: {algorithm: '@gold'}}]\n")
	c, r := dial(t, s.grpc), harness.Dial(t, s.Addr)
	expect(t, c, "plan=x", "rpc error: code = FailedPrecondition desc = there is no policy 'gold', which the configuration names")
	r.Play(harness.Step{"CL.POLICY SET gold 2/1d", ":1"})
	expect(t, c, "plan=x", "OK / OK of 2 a DAY, 1 left, ends")
	r.Play(harness.Step{"CL.POLICY SET gold 5/1h 9/1d", ":1"})
	expect(t, c, "plan=y", "OK / OK of 5 a HOUR, 4 left, ends")
}
