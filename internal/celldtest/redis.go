package celldtest

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// StartRedis runs Debian's redis-server on a unix socket until the test ends and returns its address.
func StartRedis(t testing.TB, args ...string) (addr string) {
	t.Helper()
	path := Need(t, "redis-server")
	dir, err := os.MkdirTemp("", "redis-") // not t.TempDir: a socket's path holds 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s")
	cmd := exec.Command(path, append([]string{"--port", "0", "--unixsocket", socket, "--save", "", "--dir", dir}, args...)...)
	RunPeer(t, "redis-server", dir, cmd, func() bool {
		c, err := net.Dial("unix", socket)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return "unix:" + socket
}
