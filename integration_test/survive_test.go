package integration_test

import (
	"bufio"
	"encoding/json"
	"os/exec"
	"syscall"
	"testing"
)

// TestHangup closes the terminal that started celld.
func TestHangup(t *testing.T) {
	t.Parallel()
	srv := start(t)
	c := dial(t, srv.addr)
	c.do("CL.THROTTLE", "k", "0", "1", "600")
	srv.cmd.Process.Signal(syscall.SIGHUP)
	if got := string(c.do("CL.THROTTLE", "k", "0", "1", "600")); got != "*5\r\n:1\r\n:1\r\n:0\r\n:600\r\n:600\r\n" {
		t.Errorf("after SIGHUP: %q", got)
	}
}

// TestLogReaderGone takes away who reads the log, so that the next line that celld logs meets a broken pipe.
func TestLogReaderGone(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(binary, "--port", "0", "--log-format", "json")
	cmd.Env = cleanEnv()
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	line, err := bufio.NewReader(stderr).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var start struct{ Addr []string }
	if err := json.Unmarshal(line, &start); err != nil || len(start.Addr) == 0 {
		t.Fatalf("%q: %v", line, err)
	}
	stderr.Close()
	c := dial(t, start.Addr[0])
	c.do("CONFIG", "SET", "timeout", "600") // is logged
	if got := string(c.do("PING")); got != "+PONG\r\n" {
		t.Errorf("PING: %q", got)
	}
	cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}
