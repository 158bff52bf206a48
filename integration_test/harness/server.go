package harness

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"celld/internal/celldtest"
)

const (
	StartTimeout = 3 * time.Minute // far above what a start takes, for a loaded machine
	StopTimeout  = 3 * time.Minute // the same for an end, which writes to a disk that others may keep busy
)

// Spec says how a celld is started. Its zero value is the static binary on a free loopback port.
type Spec struct {
	Binary string   // "" is Binary(t)
	Flags  []string // besides --port 0 and --log-format json
	Env    []string // CELLD_… variables and such, NAME=value
	Wrap   []string // a command that the binary is an argument of, such as prlimit
	Dir    string   // folder it runs in
	Sys    *syscall.SysProcAttr
	Files  []*os.File // its descriptors from 3 on
	Dies   bool       // the test ends it itself and looks at how
	Early  bool       // Start returns while it still reads its files
}

// Server is a running celld.
type Server struct {
	T      testing.TB
	Cmd    *exec.Cmd
	Log    *celldtest.LogBuffer
	Addr   string        // the first TCP address
	Addrs  []string      // every address, as the start line has them
	Exited chan struct{} // closed when the process has ended
}

// Start runs celld with these flags until the test ends, and returns once it listens.
func Start(t testing.TB, flags ...string) *Server {
	t.Helper()
	return Spec{Flags: flags}.Start(t)
}

// StartOn runs celld on a directory of files.
func StartOn(t testing.TB, dir string, flags ...string) *Server {
	t.Helper()
	return Start(t, append([]string{"--dir", dir}, flags...)...)
}

// StartStress is Start for tests of many clients at once: with CELLD_RACE=1, the race detector watches celld.
func StartStress(t testing.TB, flags ...string) *Server {
	t.Helper()
	return Spec{Binary: StressBinary(t), Flags: flags}.Start(t)
}

// Command is what Start runs.
func (s Spec) Command(t testing.TB) *exec.Cmd {
	t.Helper()
	path := s.Binary
	if path == "" {
		path = Binary(t)
	}
	args := append(append([]string{}, s.Wrap...), path)
	args = append(args, "--port", "0", "--log-format", "json")
	if slices.Contains(s.Flags, "--store") { // by default calls fail where a loaded machine stands still for half a second
		args = append(args, "--store-timeout", "20s")
	}
	args = append(args, s.Flags...)
	args = append(args, storeFlags()...)
	cmd := exec.Command(args[0], args[1:]...)
	// By default the race detector waits a second at the end for other threads' findings: half a minute of tests with 20 servers.
	cmd.Env = append(append(CleanEnv(), "GORACE=atexit_sleep_ms=50"), s.Env...)
	cmd.Dir = s.Dir
	cmd.SysProcAttr = s.Sys
	cmd.ExtraFiles = s.Files
	return cmd
}

// Start runs celld until the test ends, and returns once it listens.
func (s Spec) Start(t testing.TB) *Server {
	t.Helper()
	cmd := s.Command(t)
	if cmd.Dir == "" {
		cmd.Dir = t.TempDir() // where it has its files unless --dir says otherwise
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %v: %v", cmd.Args, err)
	}
	srv := &Server{T: t, Cmd: cmd, Log: &celldtest.LogBuffer{}, Exited: make(chan struct{})}
	ready := make(chan []string, 2)
	go srv.readLog(stderr, s.Early, ready)
	if !s.Dies {
		t.Cleanup(srv.Stop)
	} else {
		t.Cleanup(func() { cmd.Process.Kill(); <-srv.Exited })
	}
	select {
	case srv.Addrs = <-ready:
	case <-srv.Exited:
		t.Fatalf("%v ended before it was ready: %v\n%s", cmd.Args, cmd.ProcessState, srv.Log)
	case <-time.After(StartTimeout):
		t.Fatalf("%v is not ready after %v\n%s", cmd.Args, StartTimeout, srv.Log)
	}
	for _, addr := range srv.Addrs {
		if !strings.HasPrefix(addr, "unix:") && !strings.HasPrefix(addr, "tls:") {
			srv.Addr = addr
			break
		}
	}
	return srv
}

// readLog keeps what celld logs, hands out the addresses of the start line, and collects the exit code.
func (s *Server) readLog(stderr io.Reader, early bool, ready chan<- []string) {
	lines := bufio.NewReader(stderr)
	for {
		line, err := lines.ReadBytes('\n')
		s.Log.Write(line)
		var event struct {
			Msg  string
			Addr []string
		}
		if json.Unmarshal(line, &event) == nil && (event.Msg == "ready" || early && event.Msg == "loading" && event.Addr != nil) {
			ready <- event.Addr
		}
		if err != nil {
			break
		}
	}
	s.Cmd.Wait()
	close(s.Exited)
}

// Stop ends celld as an init system would and checks that it went in order.
func (s *Server) Stop() {
	s.T.Helper()
	select {
	case <-s.Exited: // by the test's own hand, or by a crash; the code tells
	default:
		s.Cmd.Process.Signal(syscall.SIGTERM)
	}
	s.Wait(0)
	if s.T.Failed() {
		s.T.Logf("celld's log:\n%s", s.Log)
	}
}

// Wait waits until celld has ended and checks its exit code.
func (s *Server) Wait(wantCode int) {
	s.T.Helper()
	select {
	case <-s.Exited:
	case <-time.After(StopTimeout):
		s.Cmd.Process.Signal(syscall.SIGQUIT) // its stacks are worth reading
		select {
		case <-s.Exited:
		case <-time.After(5 * time.Second):
			s.Cmd.Process.Kill()
			<-s.Exited
		}
		s.T.Errorf("celld has not ended %v after it was told to\n%s", StopTimeout, s.Log)
		return
	}
	if code := s.Cmd.ProcessState.ExitCode(); code != wantCode {
		s.T.Errorf("celld ended with %v, want code %d\n%s", s.Cmd.ProcessState, wantCode, s.Log)
	}
}

// Alive fails the test unless celld still answers a new connection.
func (s *Server) Alive() {
	s.T.Helper()
	c := Dial(s.T, s.Addr)
	defer c.Close()
	if got := c.Do("PING"); got != "+PONG\r\n" {
		s.T.Fatalf("PING: %q", got)
	}
}

// Logs waits until the log has all of these. It comes by a pipe, and so perhaps after a reply.
func (s *Server) Logs(wants ...string) {
	s.T.Helper()
	for _, want := range wants {
		celldtest.Eventually(s.T, fmt.Sprintf("the log has %q", want), func() bool { return strings.Contains(s.Log.String(), want) })
	}
}

// UnixPath is the path of the unix socket in the start line.
func (s *Server) UnixPath() string {
	for _, addr := range s.Addrs {
		if path, ok := strings.CutPrefix(addr, "unix:"); ok {
			return path
		}
	}
	s.T.Fatalf("no unix socket in %q", s.Addrs)
	return ""
}

// RunToEnd runs celld with exactly these arguments until it ends by itself.
func RunToEnd(t testing.TB, env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.Command(Binary(t), args...)
	cmd.Env = append(CleanEnv(), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(StopTimeout, func() { cmd.Process.Kill() })
	defer timer.Stop()
	err := cmd.Wait()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// CleanEnv is this process's environment without celld's own variables.
func CleanEnv() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "CELLD_") {
			env = append(env, kv)
		}
	}
	return env
}
