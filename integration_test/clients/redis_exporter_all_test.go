//go:build all

package clients

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// TestRedisExporter runs Debian's prometheus-redis-exporter on celld, with both at their defaults. It complains of nothing, and its
// metrics are those of celld.
func TestRedisExporter(t *testing.T) {
	t.Parallel()
	path := celldtest.Need(t, "prometheus-redis-exporter")
	srv := harness.Start(t, "--slowlog-log-slower-than", "-1") // on a busy machine any command may be slow
	c := harness.Dial(t, srv.Addr)
	defer c.Close()
	for i := range 7 {
		c.Do("CL.THROTTLE", fmt.Sprint("key:", i), "15", "1", "86400")
	}
	c.Do("CL.TAKE", "k", "5/1h")
	c.Do("CL.THROTTLE", "key", "x", "30", "60")

	log := &celldtest.LogBuffer{}
	addr := runExporter(t, path, srv.Addr, log)
	for range 2 { // it says some things once only
		metrics := scrape(t, addr)
		for name, want := range map[string]string{
			"redis_up":                                             "1",
			`redis_db_keys{db="db0"}`:                              "8",
			"redis_blocked_clients":                                "0",
			"redis_memory_max_bytes":                               "5.36870912e+08",
			"redis_config_maxclients":                              "10000",
			"redis_evicted_keys_total":                             "0",
			"redis_total_error_replies":                            "1",
			"redis_cluster_enabled":                                "0",
			"redis_slowlog_length":                                 "0",
			`redis_commands_total{cmd="cl.throttle"}`:              "8",
			`redis_commands_failed_calls_total{cmd="cl.throttle"}`: "1",
			`redis_commands_total{cmd="cl.take"}`:                  "1",
			`redis_exporter_last_scrape_error{err=""}`:             "0",
		} {
			if got := metrics[name]; got != want {
				t.Errorf("%s is %q, want %s", name, got, want)
			}
		}
		for _, name := range []string{
			"redis_memory_used_bytes", "redis_memory_used_rss_bytes", "redis_cpu_user_seconds_total", "redis_cpu_sys_seconds_total",
			"redis_connected_clients", "redis_commands_processed_total", `redis_commands_duration_seconds_total{cmd="cl.throttle"}`,
			"redis_net_input_bytes_total", "redis_keyspace_misses_total",
		} {
			if _, ok := metrics[name]; !ok {
				t.Errorf("no %s", name)
			}
		}
	}
	if text := log.String(); !strings.Contains(text, "level=info") || regexp.MustCompile(`level=(warn|err|fatal)`).MatchString(text) {
		t.Errorf("the exporter says\n%s", text)
	}
}

// runExporter starts the exporter on a port of its own until the test ends, and returns its address.
func runExporter(t *testing.T, path, redis string, log *celldtest.LogBuffer) (addr string) {
	t.Helper()
	addr = "127.0.0.1:" + harness.FreePort(t)
	cmd := exec.Command(path, "--redis.addr", "redis://"+redis, "--web.listen-address", addr)
	cmd.Env = harness.CleanEnv()
	cmd.Stdout, cmd.Stderr = log, log
	celldtest.RunPeer(t, path, t.TempDir(), cmd, func() bool {
		resp, err := http.Get("http://" + addr + "/health")
		if err == nil {
			resp.Body.Close()
		}
		return err == nil
	})
	return addr
}

// scrape returns the samples of /metrics by their name and labels.
func scrape(t *testing.T, addr string) map[string]string {
	t.Helper()
	resp, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	metrics := map[string]string{}
	lines := bufio.NewScanner(io.LimitReader(resp.Body, 1<<20))
	for lines.Scan() {
		if at := strings.LastIndexByte(lines.Text(), ' '); at > 0 && lines.Text()[0] != '#' {
			metrics[lines.Text()[:at]] = lines.Text()[at+1:]
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return metrics
}
