package integration_test

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// startRedis runs Debian's redis-server on a unix socket until the test ends and returns its address.
func startRedis(t testing.TB, args ...string) (addr string) {
	t.Helper()
	path := need(t, "redis-server")
	dir, err := os.MkdirTemp("", "redis-") // not t.TempDir: a socket's path holds 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s")
	cmd := exec.Command(path, append([]string{"--port", "0", "--unixsocket", socket, "--save", "", "--dir", dir}, args...)...)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() { cmd.Wait(); close(exited) }()
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		<-exited
		if t.Failed() {
			t.Logf("redis-server's log:\n%s", log.String())
		}
		os.RemoveAll(dir)
	})
	eventually(t, "redis-server listens", func() bool {
		select {
		case <-exited:
			t.Fatalf("redis-server ended: %v", cmd.ProcessState)
		default:
		}
		c, err := net.Dial("unix", socket)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return "unix:" + socket
}
