//go:build all

package web

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

const ruleTests = "testdata/rules.yaml"

type alert struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

func readAlerts(t *testing.T) []alert {
	t.Helper()
	var file struct {
		Groups []struct{ Rules []alert }
	}
	if err := yaml.Unmarshal([]byte(celldtest.ReadFile(t, examples+"celld-rules.yaml")), &file); err != nil || len(file.Groups) != 1 {
		t.Fatalf("%v, %d groups", err, len(file.Groups))
	}
	return file.Groups[0].Rules
}

// promtool finds the rules right, and each alert fires when testdata/rules.yaml says, with the texts that are there.
func TestRules(t *testing.T) {
	t.Parallel()
	harness.Tool(t, "promtool", "check", "rules", examples+"celld-rules.yaml")
	harness.Tool(t, "promtool", "test", "rules", ruleTests)
}

// Each alert is tested while it fires and while it does not, and is of metrics that there are.
func TestRulesAreTested(t *testing.T) {
	t.Parallel()
	var file struct {
		Tests []struct {
			Cases []struct {
				Name  string `yaml:"alertname"`
				Fires []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	if err := yaml.Unmarshal([]byte(celldtest.ReadFile(t, ruleTests)), &file); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, test := range file.Tests {
		for _, one := range test.Cases {
			if len(one.Fires) > 0 {
				seen[one.Name+" fires"] = true
			} else {
				seen[one.Name+" is silent"] = true
			}
		}
	}
	page := celldtest.ReadFile(t, "../../docs/reference/metrics.md")
	for _, a := range readAlerts(t) {
		if !seen[a.Alert+" fires"] || !seen[a.Alert+" is silent"] {
			t.Errorf("%s is not tested both ways", a.Alert)
		}
		for _, name := range regexp.MustCompile(`celld_\w+`).FindAllString(a.Expr, -1) {
			if !strings.Contains(page, "`"+strings.TrimSuffix(name, "_bucket")+"`") {
				t.Errorf("%s: there is no metric %s", a.Alert, name)
			}
		}
	}
}

// The runbook_url of each alert leads to a section of docs/how-to/monitor.md, and the page contains no other.
func TestRunbooks(t *testing.T) {
	t.Parallel()
	_, page, _ := strings.Cut(celldtest.ReadFile(t, "../../docs/how-to/monitor.md"), "\n## Alerts\n")
	var want, got []string
	for _, a := range readAlerts(t) {
		want = append(want, a.Alert)
		url := "docs/how-to/monitor.md#" + strings.ToLower(a.Alert)
		if a.Annotations["runbook_url"] != url || a.Annotations["summary"] == "" {
			t.Errorf("%s: %q", a.Alert, a.Annotations)
		}
		if severity := a.Labels["severity"]; severity != "critical" && severity != "warning" {
			t.Errorf("%s: severity %q", a.Alert, severity)
		}
	}
	for _, section := range strings.Split(page, "\n### ")[1:] {
		name, text, _ := strings.Cut(section, "\n")
		got = append(got, name)
		if len(text) < 60 {
			t.Errorf("%s: %q", name, text)
		}
	}
	if !slices.Equal(got, want) || len(want) < 15 {
		t.Errorf("sections\n%q\nalerts\n%q", got, want)
	}
}

// Prometheus takes the configuration that docs/how-to/monitor.md shows.
func TestPrometheusConfiguration(t *testing.T) {
	t.Parallel()
	_, config, _ := strings.Cut(celldtest.ReadFile(t, "../../docs/how-to/monitor.md"), "```yaml\n")
	config, _, found := strings.Cut(config, "```")
	if !found {
		t.Fatal("the page shows no configuration")
	}
	dir := t.TempDir()
	celldtest.WriteFile(t, strings.ReplaceAll(config, "/etc/celld/token", tokenFile(t, "secret")), dir, "prometheus.yml")
	celldtest.WriteFile(t, celldtest.ReadFile(t, examples+"celld-rules.yaml"), dir, "celld-rules.yaml")
	out := harness.Tool(t, "promtool", "check", "config", filepath.Join(dir, "prometheus.yml"))
	if !strings.Contains(out, "rules found") {
		t.Errorf("the rules are not in it: %s", out)
	}
}
