//go:build all

package web

import (
	"crypto/x509"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/integration_test/harness/engines"
	"celld/internal/celldtest"
)

// Each expression of the board, and each of its variables, has data: Prometheus scrapes a celld with files and TLS, and one on an engine.
func TestBoardHasData(t *testing.T) {
	t.Parallel()
	ca := celldtest.NewAuthority(t)
	cert, key := ca.Sign("server", &x509.Certificate{DNSNames: []string{"localhost"}})
	alone := start(t, "--appendonly", "yes", "--port", harness.FreePort(t),
		"--tls-port", harness.FreePort(t), "--tls-cert-file", cert, "--tls-key-file", key, "--tls-auth-clients", "no")
	shared := start(t, "--store", engines.StartEngine(t).URL)
	addr := prometheus(t,
		fmt.Sprintf("global: {scrape_interval: 1s}\nscrape_configs:\n  - job_name: celld\n    static_configs: [{targets: [%q, %q]}]\n",
			alone.HTTP(), shared.HTTP()))
	clients := []*harness.Conn{harness.Dial(t, alone.Addr), harness.Dial(t, shared.Addr)}
	for _, c := range clients {
		c.Do("CL.POLICY", "SET", "api", "2/1h")
	}
	load := func() {
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
