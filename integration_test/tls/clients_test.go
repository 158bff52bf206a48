package tls

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"

	"github.com/redis/go-redis/v9"
)

// TestClients connects by clients of Redis, with certificates.
func TestClients(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, addr := w.start(t, "--requirepass", "sesame")
	_, port := harness.HostPort(addr)
	t.Run("redis-cli", func(t *testing.T) {
		flags := []string{"--tls", "-p", port, "--cacert", w.ca.File, "--no-auth-warning", "-a", "sesame"}
		own := append([]string{"--cert", w.mine, "--key", w.myKey}, flags...)
		got := harness.Tool(t, "redis-cli", append(own, "CL.THROTTLE", "cli", "15", "30", "60")...)
		if !strings.HasPrefix(got, "0\n16\n15\n") {
			t.Errorf("%q", got)
		}
		if out, _ := harness.TryTool(t, "", "redis-cli", append(flags, "PING")...); strings.Contains(out, "PONG") {
			t.Errorf("without a certificate: %q", out)
		}
		theirs := append([]string{"--cert", w.theirs, "--key", w.theirKey}, flags...)
		if out, _ := harness.TryTool(t, "", "redis-cli", append(theirs, "PING")...); strings.Contains(out, "PONG") {
			t.Errorf("with a stranger's certificate: %q", out)
		}
		long := strings.Repeat("x", 60_000) // of several records, both ways
		echoed, err := harness.TryTool(t, strings.Repeat("ECHO "+long+"\n", 20), "redis-cli", own...)
		if err != nil || echoed != strings.Repeat(long+"\n", 20) {
			t.Errorf("%v: %d bytes", err, len(echoed))
		}
	})
	t.Run("go-redis", func(t *testing.T) {
		client := redis.NewClient(&redis.Options{Addr: addr, Password: "sesame", TLSConfig: w.ca.Client(w.mine, w.myKey)})
		defer client.Close()
		got, err := client.Do(t.Context(), "CL.THROTTLE", "go", "15", "30", "60").Int64Slice()
		if err != nil || fmt.Sprint(got) != "[0 16 15 -1 2]" {
			t.Errorf("%v, %v", got, err)
		}
	})
	for name, script := range map[string]string{
		"redis-py": `
import sys, redis
port, ca, cert, key = sys.argv[1:]
r = redis.Redis(port=int(port), password="sesame", ssl=True, ssl_ca_certs=ca, ssl_certfile=cert, ssl_keyfile=key,
    socket_timeout=180, socket_connect_timeout=180)
print(r.execute_command("CL.THROTTLE", "py", 15, 30, 60))`,
		"ioredis": `
const [port, ca, cert, key] = process.argv.slice(1), read = require("fs").readFileSync
const r = new (require("ioredis"))({port, password: "sesame", tls: {ca: read(ca), cert: read(cert), key: read(key)}})
r.call("CL.THROTTLE", "js", 15, 30, 60).then(got => { console.log("[" + got.join(", ") + "]"); r.disconnect() })`,
	} {
		t.Run(name, func(t *testing.T) {
			program, flag := harness.CachePath(t, "clients/python/bin/python"), "-c"
			if name == "ioredis" {
				program, flag = celldtest.Need(t, "node"), "-e"
			}
			if _, err := os.Stat(harness.CachePath(t, "clients/node_modules/ioredis")); err != nil {
				celldtest.Missing(t, "not installed (make clients does it): %v", err)
			}
			cmd := harness.Command(t, program, flag, script, port, w.ca.File, w.mine, w.myKey)
			cmd.Env = append(harness.CleanEnv(), "NODE_PATH="+harness.CachePath(t, "clients/node_modules"))
			if out, err := cmd.CombinedOutput(); err != nil || string(out) != "[0, 16, 15, -1, 2]\n" {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
