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

// TestREADMECalls runs the calls of CL.TAKE and CL.THROTTLE that the README shows for a language, between what such a program has around
// them. The calls in Java and Rust are not run: services in examples/ make the same ones, and are tested.
func TestREADMECalls(t *testing.T) {
	t.Parallel()
	page := celldtest.ReadFile(t, "../../README.md")
	srv := harness.Start(t)
	host, port := harness.HostPort(srv.Addr)
	node := celldtest.Need(t, "node")
	for language, c := range map[string]struct {
		before, after string
		run           func(file string) *exec.Cmd
	}{
		"python": {"import redis\nclient = redis.Redis(port=" + port + ")\n", "print(limited, limit, remaining, retry_s)\n",
			func(file string) *exec.Cmd { return exec.Command(installedClient(t, "python/bin/python"), file) }},
		"js": {`const client = new (require("ioredis"))(` + port + "); (async () => {\n",
			"console.log(...throttled.slice(0, 4)); client.quit() })()",
			func(file string) *exec.Cmd {
				cmd := exec.Command(node, file)
				cmd.Env = append(harness.CleanEnv(), "NODE_PATH="+filepath.Dir(installedClient(t, "node_modules/ioredis")))
				return cmd
			}},
		"go": {`package main

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

func main() {
	ctx, client := context.Background(), redis.NewClient(&redis.Options{Addr: "` + host + ":" + port + `"})
`, "	_, _, _ = limited, retryAfter, err\n	fmt.Println(reply[0], reply[1], reply[2], reply[3])\n}\n",
			func(file string) *exec.Cmd { return exec.Command("go", "run", file) }},
	} {
		block := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindStringSubmatch(page)
		if block == nil {
			t.Errorf("there is no block in %s", language)
			continue
		}
		file := filepath.Join(t.TempDir(), "main."+map[string]string{"python": "py"}[language]+strings.TrimPrefix(language, "python"))
		celldtest.WriteFile(t, c.before+strings.ReplaceAll(block[1], "mail:42", "mail:"+language)+c.after, file)
		out, err := c.run(file).CombinedOutput()
		if got := strings.Join(strings.Fields(string(out)), " "); err != nil || got != "0 16 15 -1" {
			t.Errorf("%s: %v, %s\n%s", language, err, out, celldtest.ReadFile(t, file))
		}
	}
}
