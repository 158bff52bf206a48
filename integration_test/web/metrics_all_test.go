//go:build all

package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// busy makes celld have all kinds of metrics, with a key that none of them may show.
func busy(t *testing.T, srv *harness.Server) {
	t.Helper()
	c := harness.Dial(t, srv.Addr)
	c.Do("CL.POLICY", "SET", "api", "2/1h")
	for range 3 {
		c.Do("CL.TAKE", "hidden-key", "@api")
		c.Do("CL.THROTTLE", "hidden-key-2", "0", "1", "3600")
	}
	c.Do("CL.TAKE", "hidden-key-3", "1/1h,algo=log")
	c.Do("CONFIG", "GET", "port")
}

// promtool finds no fault, and no key stands in a label. A client without the token gets nothing.
func TestPromtool(t *testing.T) {
	t.Parallel()
	srv := start(t, "--appendonly", "yes", "--http-token-file", tokenFile(t, "secret"))
	busy(t, srv)
	if status, _, body := srv.Get("/metrics"); status != 401 || strings.Contains(body, "celld_") {
		t.Errorf("without the token: %d %q", status, body)
	}
	status, header, body := srv.Get("/metrics", "Authorization", "Bearer secret")
	if status != 200 || !strings.HasPrefix(header.Get("Content-Type"), "text/plain; version=0.0.4") {
		t.Fatalf("%d %v %q", status, header, body)
	}
	if strings.Contains(body, "hidden-key") || strings.Contains(body, "secret") {
		t.Error("a key or the token is in the metrics")
	}
	for _, line := range []string{
		`celld_decisions_total{algorithm="gcra",command="cl.take",decision="limited",period="1h",policy="api"} 1`,
		`celld_decisions_total{algorithm="log",command="cl.take",decision="allowed",period="",policy="literals"} 1`,
		`celld_decisions_total{algorithm="gcra",command="cl.throttle",decision="limited",period="",policy="literals"} 2`,
		`celld_command_duration_seconds_count{command="cl.throttle"} 3`, `celld_keys 3`, `celld_aof_enabled 1`, `celld_connections 1`,
		`celld_http_requests_total{code="401",page="other"} 1`,
	} {
		if !strings.Contains(body, "\n"+line+"\n") {
			t.Errorf("no %s", line)
		}
	}
	if out, err := harness.TryTool(t, body, "promtool", "check", "metrics"); err != nil || out != "" {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

// Prometheus scrapes celld by the configuration that docs/how-to/monitor.md shows, and finds the decisions.
func TestPrometheus(t *testing.T) {
	t.Parallel()
	token := tokenFile(t, "secret")
	srv := start(t, "--http-token-file", token)
	busy(t, srv)
	doc, err := os.ReadFile("../../docs/how-to/monitor.md")
	if err != nil {
		t.Fatal(err)
	}
	_, config, _ := strings.Cut(string(doc), "\nscrape_configs:\n")
	config, _, found := strings.Cut(config, "```")
	if !found {
		t.Fatal("the page has no scrape_configs")
	}
	config = "global: {scrape_interval: 1s}\nscrape_configs:\n" +
		strings.NewReplacer("/etc/celld/token", token, "celld:8080", srv.HTTP()).Replace(config)
	addr := prometheus(t, config)
	for expression, want := range map[string]string{
		`celld_decisions_total{command="cl.take",policy="api",decision="limited"}`: "1",
		`sum(celld_decisions_total)`: "7",
		`up{job="celld"}`:            "1",
		`histogram_quantile(0.5, celld_command_duration_seconds_bucket{command="cl.take"}) > bool 0`: "1",
	} {
		got := ""
		celldtest.Eventually(t, expression, func() bool { got = query(addr, expression); return got != "" })
		if got != want {
			t.Errorf("%s is %s, want %s", expression, got, want)
		}
	}
}

// prometheus runs Prometheus with this configuration, and returns its address.
func prometheus(t *testing.T, config string) (addr string) {
	t.Helper()
	path, dir := celldtest.Need(t, "prometheus"), t.TempDir()
	file := filepath.Join(dir, "prometheus.yml")
	celldtest.WriteFile(t, config, file)
	addr = "127.0.0.1:" + harness.FreePort(t)
	cmd := exec.Command(path, "--config.file", file, "--storage.tsdb.path", dir+"/data", "--web.listen-address", addr)
	cmd.Env = harness.CleanEnv()
	celldtest.RunPeer(t, path, dir, cmd, func() bool { return query(addr, "vector(1)") != "" })
	return addr
}

// query returns the value of an expression in Prometheus, or nothing if it has none or several.
func query(addr, expression string) string {
	if all := queryAll(addr, expression); len(all) == 1 {
		return all[0]
	}
	return ""
}

// queryAll returns the values of an expression.
func queryAll(addr, expression string) (values []string) {
	resp, err := http.Get(fmt.Sprintf("http://%s/api/v1/query?query=%s", addr, url.QueryEscape(expression)))
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	var answer struct {
		Data struct{ Result json.RawMessage }
	}
	var series []struct{ Value [2]any }
	if json.NewDecoder(resp.Body).Decode(&answer) != nil || json.Unmarshal(answer.Data.Result, &series) != nil {
		return nil
	}
	for _, one := range series {
		values = append(values, fmt.Sprint(one.Value[1]))
	}
	return values
}
