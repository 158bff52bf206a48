package deploy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// wingList is the list in main.go.
var wingList = regexp.MustCompile(`(?s)\nvar wings = \[\]resp\.Wing\{\n(.*?)\n\}`)

// TestWithoutAWing builds the program without each wing, by main.go without its line. It serves, knows nothing of the wing, and the log has
// what it weighs: docs/design.md has a table of that.
func TestWithoutAWing(t *testing.T) {
	main := celldtest.ReadFile(t, "../../main.go")
	list := strings.Split(wingList.FindStringSubmatch(main)[1], "\n")
	if len(list) < 2 {
		t.Fatalf("%q", list)
	}
	whole := buildMain(t, main)
	all, size := settingsOf(t, whole), sizeOf(t, whole)
	t.Logf("%.1f MB with all wings", size)
	gone := map[string]bool{}
	for _, line := range list {
		t.Run(strings.TrimSpace(line), func(t *testing.T) {
			binary := buildMain(t, strings.Replace(main, line+"\n", "", 1))
			left := settingsOf(t, binary)
			t.Logf("%.2f MB less", size-sizeOf(t, binary))
			for _, name := range all {
				if slices.Contains(left, name) {
					continue
				}
				gone[name] = true
				cmd := harness.Command(t, binary, "--check", "--"+name, "1")
				out, _ := cmd.CombinedOutput()
				if cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "unknown flag --"+name) {
					t.Errorf("--%s 1: %s", name, out)
				}
			}
		})
	}
	for _, name := range []string{"store", "http-bind", "envoy-bind", "lua-time-limit"} {
		if slices.Contains(all, name) && !gone[name] {
			t.Errorf("--%s is there without its wing", name)
		}
	}
}

// buildMain builds the program with another main.go, without the imports that this one does not use.
func buildMain(t *testing.T, main string) (binary string) {
	t.Helper()
	for _, path := range regexp.MustCompile(`\n\t"(.*)"`).FindAllStringSubmatch(main, -1) {
		if name := path[1][strings.LastIndex(path[1], "/")+1:]; !regexp.MustCompile(`\b` + name + `\.`).MatchString(main) {
			main = strings.Replace(main, path[0], "", 1)
		}
	}
	dir := t.TempDir()
	celldtest.WriteFile(t, main, dir, "main.go")
	place, err := filepath.Abs("../../main.go")
	if err != nil {
		t.Fatal(err)
	}
	overlay, _ := json.Marshal(map[string]any{"Replace": map[string]string{place: filepath.Join(dir, "main.go")}})
	celldtest.WriteFile(t, string(overlay), dir, "overlay.json")
	binary = filepath.Join(dir, "celld")
	build := harness.Command(t, "go", append(append([]string{"build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary},
		harness.BuildFlags...), ".")...)
	build.Dir = "../.."
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// settingsOf starts a program, lets it decide, and returns the names of its settings. EVAL is there with lua-time-limit.
func settingsOf(t *testing.T, binary string) (names []string) {
	t.Helper()
	c := harness.Dial(t, harness.Spec{Binary: binary}.Start(t).Addr)
	defer c.Close()
	for _, step := range [][2]string{{"PING", "+PONG\r\n"}, {"CL.THROTTLE k 1 1 60", "*5\r\n:0\r\n:2\r\n:1\r\n:-1\r\n:60\r\n"}} {
		if got := c.Do(strings.Fields(step[0])...); got != step[1] {
			t.Errorf("%s: %q", step[0], got)
		}
	}
	words := strings.Split(c.Do("CONFIG", "GET", "*"), "\r\n")
	for i := 2; i < len(words); i += 4 {
		names = append(names, words[i])
	}
	ran := c.Do("EVAL", "return 1", "0") == ":1\r\n"
	if runs := slices.Contains(names, "lua-time-limit"); ran != runs {
		t.Errorf("EVAL runs: %v, and is to run: %v", ran, runs)
	}
	return names
}

func sizeOf(t *testing.T, binary string) (mb float64) {
	t.Helper()
	info, err := os.Stat(binary)
	if err != nil {
		t.Fatal(err)
	}
	return float64(info.Size()) / 1e6
}
