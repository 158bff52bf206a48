//go:build all

package clients

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// TestHeads types in the command at the head of each example, which runs it against what it needs.
func TestHeads(t *testing.T) {
	t.Parallel()
	shims := map[string]string{
		"python3": "exec " + installedClient(t, "python/bin/python") + ` "$@"`, "node": "exec " + celldtest.Need(t, "node") + ` "$@"`,
		// It would link celld for each, 19 times. That it builds is a test of examples/try.
		"go": "[ $1 = build ] && exec ln -s " + harness.Binary(t) + ` "$5"; exec ` + celldtest.Need(t, "go") + ` "$@"`,
	}
	tried := 0
	for _, name := range []string{"crawler", "jobs", "lock", "login", "tokens", "go", "python", "node-ioredis", "node-redis"} {
		files, err := filepath.Glob("../../examples/" + name + "/*.[gpj]*")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			head := regexp.MustCompile(`(?m)^\W*(go -C examples run \./try .*)$`).FindStringSubmatch(celldtest.ReadFile(t, file))
			if head == nil {
				if ext := filepath.Ext(file); ext != ".json" {
					t.Errorf("%s has no command at its head", file)
				}
				continue
			}
			tried++
			t.Run(filepath.Base(name)+filepath.Ext(file), func(t *testing.T) {
				t.Parallel()
				addr := "127.0.0.1:" + harness.FreePort(t)
				command := strings.ReplaceAll(head[1], "127.0.0.1:8000", addr)
				command = strings.Replace(command, "./try ", "./try -listen "+addr+" ", 1)
				bash := harness.Bash(t, command, "../..", shims, "LISTEN=127.0.0.1:0", "PYTHONDONTWRITEBYTECODE=1",
					"NODE_PATH="+filepath.Dir(installedClient(t, "node_modules/ioredis")))
				if strings.HasPrefix(filepath.Base(file), "service") || name == "go" { // it serves until somebody ends it
					startService(t, bash).back()
					return
				}
				if out, err := bash.CombinedOutput(); err != nil || len(out) == 0 {
					t.Errorf("%s: %v, %s", command, err, out)
				}
			})
		}
	}
	if tried != 19 {
		t.Errorf("%d examples were tried", tried)
	}
}
