package deploy

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"celld/integration_test/harness"
	"celld/integration_test/harness/engines"
	"celld/internal/celldtest"
)

// docPages are the pages whose examples are run.
func docPages(t *testing.T) []string {
	t.Helper()
	pages := []string{"../../README.md"}
	for _, pattern := range []string{"*.md", "*/*.md"} {
		found, err := filepath.Glob("../../docs/" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	if len(pages) < 6 {
		t.Fatalf("%q", pages)
	}
	return pages
}

// blocks returns the fenced blocks of a language.
func blocks(page, language string) (found []string) {
	for _, block := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(page, -1) {
		found = append(found, block[1])
	}
	return found
}

// TestConsoleExamples types what stands behind a $ in the pages, and compares the answers. Each block gets its own celld.
func TestConsoleExamples(t *testing.T) {
	t.Parallel()
	typeAll(t, func() *harness.Server { return harness.Start(t) })
}

// TestConsoleExamplesOnAnEngine does the same where celld keeps its limits on a redis-server.
func TestConsoleExamplesOnAnEngine(t *testing.T) {
	t.Parallel()
	typeAll(t, func() *harness.Server { return harness.Start(t, "--store", engines.StartEngine(t).URL) })
}

// typeAll types in all console blocks. Times may differ where the machine stood still meanwhile, so a block that differs is tried again.
func typeAll(t *testing.T, start func() *harness.Server) {
	t.Helper()
	celldtest.Need(t, "redis-cli")
	typed := 0
	for _, page := range docPages(t) {
		for _, block := range blocks(celldtest.ReadFile(t, page), "console") {
			typed += strings.Count(block, "$ ")
			celldtest.Again(t, func(string) string {
				if got := typeIn(t, start().Addr, block, harness.CleanEnv()); got != block {
					return fmt.Sprintf("%s shows\n%s\nand celld answers\n%s", page, block, got)
				}
				return ""
			})
		}
	}
	if typed < 5 {
		t.Errorf("%d commands are shown", typed)
	}
}

// typeIn runs the commands of a block and returns the block with the output that they have.
func typeIn(t *testing.T, addr, block string, env []string) (screen string) {
	t.Helper()
	host, port := harness.HostPort(addr)
	for line := range strings.Lines(block) {
		command, isCommand := strings.CutPrefix(line, "$ ")
		if !isCommand {
			continue
		}
		rest, known := strings.CutPrefix(command, "redis-cli ")
		if !known {
			t.Fatalf("%q: only redis-cli is run", command)
		}
		shell := harness.Command(t, "sh", "-c", "redis-cli --no-raw -h "+host+" -p "+port+" "+rest)
		shell.Env = env
		out, _ := shell.CombinedOutput() // an error is in the output as well
		screen += line + string(out)
	}
	return screen
}

// TestShellExamples checks that a shell can read the commands of the pages, and that celld knows their flags and variables.
func TestShellExamples(t *testing.T) {
	t.Parallel()
	help, _, _ := harness.RunToEnd(t, nil, "--help")
	flags := 0
	for _, page := range docPages(t) {
		for _, block := range blocks(celldtest.ReadFile(t, page), "sh") {
			check := harness.Command(t, "sh", "-n")
			check.Stdin = strings.NewReader(block)
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("%s: %v, %s\n%s", page, err, out, block)
			}
			for _, variable := range regexp.MustCompile(`CELLD_([A-Z_]+)=`).FindAllStringSubmatch(block, -1) {
				if flag := "--" + strings.ReplaceAll(strings.ToLower(variable[1]), "_", "-"); !strings.Contains(help, flag+" ") {
					t.Errorf("%s: %s is no setting", page, variable[0])
				}
			}
			for _, line := range regexp.MustCompile(`(?m)^celld (.*)$`).FindAllStringSubmatch(block, -1) {
				for _, flag := range regexp.MustCompile(`--[a-z0-9-]+`).FindAllString(line[1], -1) {
					if flags++; !strings.Contains(help, flag+" ") {
						t.Errorf("%s: %s is no flag", page, flag)
					}
				}
			}
		}
	}
	if flags < 5 {
		t.Errorf("%d flags are shown", flags)
	}
}

// TestPoliciesExample starts a celld with each file of policies that a page shows. CL.POLICY SAVE would change a line that is not in force.
func TestPoliciesExample(t *testing.T) {
	t.Parallel()
	files := 0
	for _, page := range docPages(t) {
		for _, block := range blocks(celldtest.ReadFile(t, page), "text") {
			if !strings.HasPrefix(block, "#") {
				continue
			}
			files++
			path := filepath.Join(t.TempDir(), "policies")
			celldtest.WriteFile(t, block, path)
			client := harness.Dial(t, harness.Start(t, "--policies", path).Addr)
			if got := client.Do("CL.POLICY", "SAVE"); got != "+OK\r\n" {
				t.Errorf("%s: %q", page, got)
			}
			if got := celldtest.ReadFile(t, path); got != block {
				t.Errorf("%s: saved as\n%s\nwant\n%s", page, got, block)
			}
		}
	}
	if files < 2 {
		t.Errorf("%d files are shown", files)
	}
}

// TestEnvoyPage starts celld as the container of docs/how-to/envoy.md, on the limits that the page shows.
func TestEnvoyPage(t *testing.T) {
	t.Parallel()
	shown := blocks(celldtest.ReadFile(t, "../../docs/how-to/envoy.md"), "yaml")
	var manifest struct {
		Containers []struct {
			Command      []string
			Env          []struct{ Name, Value string }
			VolumeMounts []struct {
				MountPath string `yaml:"mountPath"`
			} `yaml:"volumeMounts"`
			Probe struct {
				HTTPGet struct{ Path string } `yaml:"httpGet"`
			} `yaml:"readinessProbe"`
		}
	}
	if err := yaml.Unmarshal([]byte(shown[0]), &manifest); err != nil {
		t.Fatal(err)
	}
	container, root := manifest.Containers[0], t.TempDir()
	dir := filepath.Join(root, container.VolumeMounts[0].MountPath)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	celldtest.WriteFile(t, shown[2], dir, "limits.yaml") // behind what Envoy Gateway is told
	celldtest.WriteFile(t, "gold 5/1m\n", root, "policies")
	env := []string{"PORT=" + harness.FreePort(t), "GRPC_PORT=" + harness.FreePort(t), "CELLD_POLICIES=" + filepath.Join(root, "policies")}
	for _, v := range container.Env {
		if v.Name == "RUNTIME_ROOT" {
			v.Value = root + v.Value
		}
		env = append(env, v.Name+"="+v.Value)
	}
	program := filepath.Join(root, container.Command[0])
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(harness.Binary(t), program); err != nil {
		t.Fatal(err)
	}
	srv := harness.Spec{Binary: program, Env: env}.Start(t)
	url := "http://127.0.0.1:" + strings.TrimPrefix(env[0], "PORT=")
	if status, _, body := harness.Get(srv, url+container.Probe.HTTPGet.Path); status != 200 || body != "OK" {
		t.Errorf("healthcheck: %d %q", status, body)
	}
	if strings.Contains(srv.Log.String(), `"level":"WARN"`) {
		t.Errorf("it warns: %s", srv.Log)
	}
	ask := `{"domain":"shop","descriptors":[{"entries":[{"key":"client","value":"ann"}]},{"entries":[{"key":"plan","value":"gold"}]}]}`
	answer, err := http.Post(url+"/json", "application/json", strings.NewReader(ask))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	for _, want := range []string{`"limitRemaining":99`, `"limitRemaining":4`} {
		if answer.StatusCode != 200 || !strings.Contains(string(body), want) {
			t.Errorf("%d %s, want %s", answer.StatusCode, body, want)
		}
	}
}

// TestFlagsInText looks for each flag that a page names in its text: one of celld's, or one of the tools that are named there.
func TestFlagsInText(t *testing.T) {
	t.Parallel()
	help, _, _ := harness.RunToEnd(t, nil, "--help")
	others := map[string]bool{"--memkeys": true, "--pipe": true, "--help": true, "--version": true, "--memory": true, "--scale": true,
		"--rdb": true, "--json": true, "--read-only": true, "--cap-drop": true, "--security-opt": true,
		"--tls": true, "--cacert": true, "--cert": true, "--key": true, "--user": true, "--pass": true, "--rm": true,
		"--scan": true, "--pattern": true, "--name": true, "--config": true, "--web": true, "--configfile": true, "--set": true,
		"--all": true} // of other tools
	for _, page := range docPages(t) {
		for _, flag := range regexp.MustCompile("[` ](--[a-z][a-z0-9-]+)").FindAllStringSubmatch(celldtest.ReadFile(t, page), -1) {
			if !others[flag[1]] && !strings.Contains(help, flag[1]+" ") {
				t.Errorf("%s: %s is no flag", page, flag[1])
			}
		}
	}
}
