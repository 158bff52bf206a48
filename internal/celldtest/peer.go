package celldtest

import (
	"bytes"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// RunPeer runs another server until the test ends, whose directory then goes, and returns when it listens. Its log is shown
// where the test fails.
func RunPeer(t testing.TB, name, dir string, cmd *exec.Cmd, listens func() bool) {
	t.Helper()
	var log bytes.Buffer
	if cmd.Stderr == nil { // else the test reads it itself
		cmd.Stdout, cmd.Stderr = &log, &log
	}
	cmd.WaitDelay = 10 * time.Second // its children may hold its outputs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() { cmd.Wait(); close(exited) }()
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		hangs := time.AfterFunc(Patience, func() { cmd.Process.Kill() })
		<-exited
		if !hangs.Stop() {
			t.Errorf("%s has not ended %v after it was told to", name, Patience)
		}
		if t.Failed() {
			t.Logf("%s's log:\n%s", name, log.String())
		}
		os.RemoveAll(dir)
	})
	Eventually(t, name+" listens", func() bool {
		select {
		case <-exited:
			t.Fatalf("%s ended: %v\n%s", name, cmd.ProcessState, log.String())
		default:
		}
		return listens()
	})
}
