package clients

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// readmeCall is what a program has around the calls that the README shows in its language, in a file of this name. ADDR and PORT stand for
// celld's. It prints the first four integers of the reply of CL.THROTTLE.
type readmeCall struct {
	language, file, before, after string
	run                           func(t *testing.T, file string) *exec.Cmd
}

// runREADME runs the calls of the README in each of these languages.
func runREADME(t *testing.T, calls []readmeCall) {
	page := celldtest.ReadFile(t, "../../README.md")
	for _, c := range calls {
		t.Run(c.language, func(t *testing.T) {
			t.Parallel()
			addr := harness.Start(t).Addr
			_, port := harness.HostPort(addr)
			block := regexp.MustCompile("(?s)```" + c.language + "\n(.*?)```").FindStringSubmatch(page)
			if block == nil {
				t.Fatal("the README has no such block")
			}
			file := filepath.Join(t.TempDir(), c.file)
			text := strings.NewReplacer("ADDR", addr, "PORT", port).Replace(c.before) + block[1] + c.after
			celldtest.WriteFile(t, text, file)
			var problems strings.Builder
			cmd := c.run(t, file)
			cmd.Stderr = &problems
			out, err := cmd.Output()
			if got := strings.Join(strings.Fields(string(out)), " "); err != nil || got != "0 16 15 -1" {
				t.Errorf("%v, %s\n%s\n%s", err, out, problems.String(), text)
			}
		})
	}
}

func TestREADMECalls(t *testing.T) {
	t.Parallel()
	runREADME(t, []readmeCall{
		{"python", "main.py", "import redis\nclient = redis.Redis(port=PORT)\n", "print(limited, limit, remaining, retry_s)\n",
			func(t *testing.T, file string) *exec.Cmd {
				return harness.Command(t, installedClient(t, "python/bin/python"), file)
			}},
		{"js", "main.js", `const client = new (require("ioredis"))(PORT); (async () => {` + "\n",
			"console.log(...throttled.slice(0, 4)); client.quit() })()",
			func(t *testing.T, file string) *exec.Cmd {
				cmd := harness.Command(t, celldtest.Need(t, "node"), file)
				cmd.Env = append(harness.CleanEnv(), "NODE_PATH="+filepath.Dir(installedClient(t, "node_modules/ioredis")))
				return cmd
			}},
		{"go", "main.go", `package main

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

func main() {
	ctx, client := context.Background(), redis.NewClient(&redis.Options{Addr: "ADDR"})
`, "	_, _, _ = limited, retryAfter, err\n	fmt.Println(reply[0], reply[1], reply[2], reply[3])\n}\n",
			func(t *testing.T, file string) *exec.Cmd { return harness.Command(t, "go", "run", file) }},
	})
}
