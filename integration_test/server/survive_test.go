package server

import (
	"bufio"
	"encoding/json"
	"os/exec"
	"syscall"
	"testing"

	"celld/integration_test/harness"
)

// TestHangup closes the terminal that started celld.
func TestHangup(t *testing.T) {
	t.Parallel()
	srv := harness.Start(t)
	c := harness.Dial(t, srv.Addr)
	c.Do("CL.THROTTLE", "k", "0", "1", "600")
	srv.Cmd.Process.Signal(syscall.SIGHUP)
	if got := c.Throttle("k", "0", "1", "600"); got[0] != 1 {
		t.Errorf("after SIGHUP: %v", got)
	}
}

// TestLogReaderGone takes away who reads the log, so that the next line that celld logs meets a broken pipe.
func TestLogReaderGone(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(harness.Binary(t), "--port", "0", "--log-format", "json")
	cmd.Env = harness.CleanEnv()
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
	c := harness.Dial(t, start.Addr[0])
	c.Do("CONFIG", "SET", "timeout", "600") // is logged
	if got := string(c.Do("PING")); got != "+PONG\r\n" {
		t.Errorf("PING: %q", got)
	}
	cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}
