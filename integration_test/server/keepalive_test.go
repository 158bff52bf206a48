package server

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// TestKeepAlive looks at celld's end of a connection in the kernel's table: whether a keep-alive timer runs, and for how
// long.
func TestKeepAlive(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[string]func(timer string, ticks int64) bool{
		"300": func(timer string, ticks int64) bool { return timer == "02" && 29_000 < ticks && ticks <= 30_000 },
		"7":   func(timer string, ticks int64) bool { return timer == "02" && 0 < ticks && ticks <= 700 },
		"0":   func(timer string, _ int64) bool { return timer == "00" },
	} {
		t.Run(seconds, func(t *testing.T) {
			t.Parallel()
			srv := harness.Start(t, "--tcp-keepalive", seconds, "--bind", "127.0.0.1")
			c := harness.Dial(t, srv.Addr)
			c.Do("PING")
			celldtest.Eventually(t, "the keep-alive timer of --tcp-keepalive "+seconds, func() bool {
				return want(kernelTimer(t, c.RemoteAddr(), c.LocalAddr()))
			})
		})
	}
}

// kernelTimer returns which timer runs on a connection (02: keep-alive) and how many hundredths of a second it has left,
// from /proc/net/tcp (Documentation/networking/proc_net_tcp.rst in Linux).
func kernelTimer(t *testing.T, local, remote net.Addr) (timer string, ticks int64) {
	t.Helper()
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		celldtest.Missing(t, "%v", err)
	}
	ends := fmt.Sprintf("0100007F:%04X 0100007F:%04X", local.(*net.TCPAddr).Port, remote.(*net.TCPAddr).Port)
	for line := range strings.Lines(string(table)) {
		if !strings.Contains(line, ends) {
			continue
		}
		if _, err := fmt.Sscanf(strings.Fields(line)[5], "%2s:%x", &timer, &ticks); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		return timer, ticks
	}
	t.Fatalf("%s is not in /proc/net/tcp", ends)
	return "", 0
}
