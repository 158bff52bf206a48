//go:build all

package web

import (
	"crypto/x509"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"celld/integration_test/harness"
	"celld/integration_test/harness/engines"
	"celld/internal/celldtest"
)

// Each expression of the board, and each of its variables, has data: Prometheus scrapes a celld with files and TLS, one on an engine, and
// one whose limits come by xDS.
func TestBoardHasData(t *testing.T) {
	t.Parallel()
	ca := celldtest.NewAuthority(t)
	cert, key := ca.Sign("server", &x509.Certificate{DNSNames: []string{"localhost"}})
	limits := celldtest.TempFile(t, "domain: d\ndescriptors: [{key: a, rate_limit: {unit: hour, requests_per_unit: 10}}]\n")
	envoy := "127.0.0.1:" + harness.FreePort(t)
	alone := start(t, "--envoy-bind", envoy, "--envoy-config", limits, "--appendonly", "yes", "--port", harness.FreePort(t),
		"--tls-port", harness.FreePort(t), "--tls-cert-file", cert, "--tls-key-file", key, "--tls-auth-clients", "no")
	shared := start(t, "--store", engines.StartEngine(t).URL)
	kept := t.TempDir()
	celldtest.WriteFile(t, "", kept, "envoy-xds.pb") // an empty world
	told := start(t, "--envoy-bind", "127.0.0.1:0", "--envoy-xds", "127.0.0.1:1", "--dir", kept)
	addr := prometheus(t,
		fmt.Sprintf("global: {scrape_interval: 1s}\nscrape_configs:\n  - job_name: celld\n    static_configs: [{targets: [%q, %q, %q]}]\n",
			alone.HTTP(), shared.HTTP(), told.HTTP()))
	clients := []*harness.Conn{harness.Dial(t, alone.Addr), harness.Dial(t, shared.Addr)}
	for _, c := range clients {
		c.Do("CL.POLICY", "SET", "api", "2/1h")
	}
	conn, err := grpc.NewClient(envoy, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	asked := &ratelimit.RateLimitRequest{Domain: "d", Descriptors: []*common.RateLimitDescriptor{
		{Entries: []*common.RateLimitDescriptor_Entry{{Key: "a", Value: "x"}}},
	}}
	load := func() {
		if _, err := ratelimit.NewRateLimitServiceClient(conn).ShouldRateLimit(t.Context(), asked); err != nil {
			t.Error(err)
		}
		for _, c := range clients {
			for _, call := range []string{
				"CL.THROTTLE a 1 100 1", "CL.TAKE b @api", "CL.TAKE c 20/1s,burst=1 WAIT 1000",
				"CL.TAKE c 20/1s,burst=1 WAIT 1000", "NOSUCH",
			} {
				c.Do(strings.Fields(call)...)
			}
		}
	}
	hasData := func(what, expression string) {
		t.Helper()
		expression = strings.NewReplacer("$job", "celld", "$instance", ".*", "$__rate_interval", "1m").Replace(expression)
		celldtest.Eventually(t, what+": "+expression, func() bool {
			if slices.ContainsFunc(queryAll(addr, expression), func(value string) bool { return value != "NaN" }) {
				return true
			}
			load()
			return false
		})
	}
	b := readBoard(t)
	for _, p := range b.Panels {
		for _, target := range p.Targets {
			hasData(p.Title, target.Expr)
		}
	}
	labels := 0
	for _, v := range b.Templating.List {
		if v.Type == "datasource" {
			continue
		}
		q := regexp.MustCompile(`^label_values\((.+), (\w+)\)$`).FindStringSubmatch(v.Query)
		if q == nil {
			t.Fatalf("$%s: %q", v.Name, v.Query)
		}
		labels++
		hasData("$"+v.Name, fmt.Sprintf(`count by (%s) (%s) and on (%[1]s) up{%[1]s!=""}`, q[2], q[1]))
	}
	if labels != 2 {
		t.Errorf("%d variables", labels)
	}
}
