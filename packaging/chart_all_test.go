//go:build all

package packaging

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"celld/internal/celldtest"
)

// tool runs a program of .cache/bin, and returns what it prints.
func tool(t *testing.T, name string, args ...string) (out string, err error) {
	t.Helper()
	path, err := filepath.Abs("../.cache/bin/" + name)
	if _, missing := os.Stat(path); err != nil || missing != nil {
		celldtest.Missing(t, "no %s: make dist-tools", name)
	}
	var errors strings.Builder
	cmd := exec.Command(path, args...)
	cmd.Stderr = &errors
	text, err := cmd.Output()
	return string(text) + regexp.MustCompile(`(?m)^walk\.go.*\n`).ReplaceAllString(errors.String(), ""), err
}

// template renders the chart with the values of a file, and more on the command line.
func template(t *testing.T, values string, more ...string) (out string, err error) {
	t.Helper()
	return tool(t, "helm", append([]string{"template", "shop", "chart", "--kube-version", "1.31.0", "--namespace", "limits",
		"--values", values}, more...)...)
}

// The chart renders each file of values as it was reviewed, and Kubernetes' and the Prometheus operator's own schemas have nothing against
// that.
func TestChart(t *testing.T) {
	files, err := filepath.Glob("testdata/chart/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("%q, %v", files, err)
	}
	rendered := t.TempDir()
	for _, values := range files {
		got, err := template(t, values)
		if err != nil {
			t.Errorf("%s: %v, %s", values, err, got)
			continue
		}
		golden := strings.TrimSuffix(values, ".yaml") + ".golden"
		if *celldtest.Update {
			celldtest.WriteFile(t, got, golden)
		}
		if want := celldtest.ReadFile(t, golden); got != want {
			t.Errorf("%s: it renders\n%s\nwant\n%s", values, got, want)
		}
		celldtest.WriteFile(t, got, rendered, filepath.Base(values))
		if out, err := tool(t, "helm", "lint", "--strict", "chart", "--values", values); err != nil {
			t.Errorf("%s: %s", values, out)
		}
	}
	if out, err := validate(t, rendered); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	refuses(t, rendered, "default.yaml", "replicas: 1", "replicas: one", "replicas")
}

// refuses checks that the schemas find a wrong word in a file.
func refuses(t *testing.T, dir, file, right, wrong, says string) {
	t.Helper()
	celldtest.WriteFile(t, strings.Replace(celldtest.ReadFile(t, dir, file), right, wrong, 1), dir, file)
	if out, err := validate(t, dir); err == nil || !strings.Contains(out, says) {
		t.Errorf("what is wrong is not found: %v\n%s", err, out)
	}
}

// validate asks the schemas of Kubernetes, of the Prometheus operator and of Envoy Gateway.
func validate(t *testing.T, dir string) (out string, err error) {
	t.Helper()
	args := []string{dir}
	for module, crds := range map[string]string{
		"github.com/prometheus-operator/prometheus-operator@v0.85.0": "example/prometheus-operator-crd",
		"github.com/envoyproxy/gateway@v1.9.1":                       "charts/gateway-helm/charts/crds/crds/generated",
	} {
		text, err := exec.Command("go", "mod", "download", "-json", module).Output()
		var found struct{ Dir string }
		if wrong := json.Unmarshal(text, &found); err != nil || wrong != nil {
			t.Fatalf("%v, %v, %s", err, wrong, text)
		}
		args = append(args, "--local-crds", filepath.Join(found.Dir, crds))
	}
	return tool(t, "kubectl-validate", args...)
}

// The schemas have nothing against the manifests for Envoy Gateway and AI Gateway, but that of QuotaPolicy is in no Go module.
func TestGatewayManifests(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"gateway.yaml", "ai-gateway.yaml"} {
		text, _, _ := strings.Cut(celldtest.ReadFile(t, "../examples/envoy", name), "---\napiVersion: aigateway.")
		celldtest.WriteFile(t, text, dir, name)
	}
	if out, err := validate(t, dir); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	refuses(t, dir, "gateway.yaml", "unit: Minute", "unit: minute", "limit.unit")
}

// What cannot work is refused with a line that says what would be right.
func TestChartRefuses(t *testing.T) {
	for set, want := range map[string]string{
		"auth.existingSecret=":       "mode deployment needs auth.existingSecret or auth.password",
		"mode=sidecar":               "mode sidecar needs app",
		"mode=daemonset":             "'sidecar'",
		"replicas=3":                 "replicas above 1 need engine.url",
		"replica=3":                  "replica",
		"http.enabled=true":          "http.enabled needs http.existingSecret",
		"tls.plain=false":            "tls.plain: false needs tls.secretName",
		"serviceMonitor.enabled=yes": "got string, want boolean",
		"engine.url=valkey:6379":     "does not match pattern",
		"engine.url=redis://v,persistence.enabled=true": "persistence and engine.url exclude each other",
		"serviceMonitor.enabled=true":                   "serviceMonitor.enabled needs http.enabled",
		"auth.key=a b":                                  "does not match pattern",
		"prometheusRule.runbooks=docs":                  "does not match pattern",
	} {
		out, err := template(t, "testdata/chart/default.yaml", "--set", set)
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v, %s, want %s", set, err, out, want)
		}
	}
}

// What celld takes up by itself replaces no pod.
func TestChangesReplaceNoPods(t *testing.T) {
	deployment := func(set string) string {
		t.Helper()
		out, err := template(t, "testdata/chart/everything.yaml", "--set", set)
		_, pods, found := strings.Cut(out, "\nkind: Deployment\n")
		if pods, _, _ = strings.Cut(pods, "\n---\n"); err != nil || !found {
			t.Fatalf("%s: %v, %s", set, err, out)
		}
		return pods
	}
	for _, name := range []string{"policies", "auth.password", "envoy.config"} {
		if one, other := deployment(name+"=api 1/1m"), deployment(name+"=api 2/1m"); one != other {
			t.Errorf("%s: the pods are\n%s\nand\n%s", name, one, other)
		}
	}
	if deployment("settings.loglevel=debug") == deployment("settings.loglevel=notice") {
		t.Error("a setting that celld reads at its start replaces no pod")
	}
}

// The workflows run the targets of make.
func TestWorkflows(t *testing.T) {
	files, err := filepath.Glob("../.github/workflows/*.yml")
	if err != nil || len(files) != 2 {
		t.Fatalf("%q, %v", files, err)
	}
	if out, err := tool(t, "actionlint", append([]string{"-shellcheck=", "-pyflakes="}, files...)...); err != nil {
		t.Error(out)
	}
	for _, file := range files {
		for _, target := range regexp.MustCompile(`run: make (\S+)`).FindAllStringSubmatch(celldtest.ReadFile(t, file), -1) {
			if !strings.Contains(celldtest.ReadFile(t, "../Makefile"), "\n"+target[1]+":") {
				t.Errorf("%s: there is no make %s", file, target[1])
			}
		}
	}
}
