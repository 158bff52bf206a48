package deploy

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
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
		shell := exec.Command("sh", "-c", "redis-cli --no-raw -h "+host+" -p "+port+" "+rest)
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
			check := exec.Command("sh", "-n")
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
				for _, flag := range regexp.MustCompile(`--[a-z-]+`).FindAllString(line[1], -1) {
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

// TestEnvoyExample derives the policies of docs/how-to/migrate.md from the descriptors that it shows beside them.
func TestEnvoyExample(t *testing.T) {
	t.Parallel()
	type descriptor struct {
		Key, Value string
		RateLimit  struct {
			Unit            string
			RequestsPerUnit int `yaml:"requests_per_unit"`
		} `yaml:"rate_limit"`
		ShadowMode  bool `yaml:"shadow_mode"`
		Descriptors []descriptor
	}
	page := celldtest.ReadFile(t, "../../docs/how-to/migrate.md")
	var file struct {
		Domain      string
		Descriptors []descriptor
	}
	decoder := yaml.NewDecoder(strings.NewReader(blocks(page, "yaml")[0]))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil {
		t.Fatal(err)
	}
	policies := "# " + file.Domain + "\n"
	var add func(parent string, all []descriptor)
	add = func(parent string, all []descriptor) {
		for _, d := range all {
			name := strings.TrimSuffix(parent+d.Key+":"+strings.ReplaceAll(d.Value, "/", ""), ":")
			policies += fmt.Sprintf("%-25s %d/1%s,algo=window,align=clock", name, d.RateLimit.RequestsPerUnit, d.RateLimit.Unit[:1])
			if d.ShadowMode {
				policies += ",shadow"
			}
			policies += "\n"
			add(name+":", d.Descriptors)
		}
	}
	add("", file.Descriptors)
	if !slices.Contains(blocks(page, "text"), policies) {
		t.Errorf("the page does not show\n%s", policies)
	}
}

// TestFlagsInText looks for each flag that a page names in its text: one of celld's, or one of the tools that are named there.
func TestFlagsInText(t *testing.T) {
	t.Parallel()
	help, _, _ := harness.RunToEnd(t, nil, "--help")
	others := map[string]bool{"--memkeys": true, "--pipe": true, "--help": true, "--version": true, "--memory": true, "--scale": true,
		"--rdb": true, "--json": true, "--read-only": true, "--cap-drop": true, "--security-opt": true,
		"--tls": true, "--cacert": true, "--cert": true, "--key": true, "--user": true, "--pass": true, "--rm": true,
		"--name": true, "--config": true, "--web": true, "--configfile": true, "--set": true, "--all": true} // of other tools
	for _, page := range docPages(t) {
		for _, flag := range regexp.MustCompile("[` ](--[a-z][a-z-]+)").FindAllStringSubmatch(celldtest.ReadFile(t, page), -1) {
			if !others[flag[1]] && !strings.Contains(help, flag[1]+" ") {
				t.Errorf("%s: %s is no flag", page, flag[1])
			}
		}
	}
}
