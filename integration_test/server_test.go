package integration_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	startTimeout = time.Minute // far above what a start takes, for a loaded machine
	stopTimeout  = time.Minute
)

// spec says how a celld is started. Its zero value is the static binary on a free loopback port.
type spec struct {
	binary string   // "" is binary
	flags  []string // besides --port 0 and --log-format json
	env    []string // CELLD_… variables and such, NAME=value
	wrap   []string // a command that the binary is an argument of, such as prlimit
	dir    string   // folder it runs in
	sys    *syscall.SysProcAttr
	dies   bool // the test ends it itself and looks at how
	early  bool // start returns while it still reads its files
}

// server is a running celld.
type server struct {
	t      testing.TB
	cmd    *exec.Cmd
	log    *logBuffer
	addr   string   // the first TCP address
	addrs  []string // every address, as the start line has them
	exited chan struct{}
}

// start runs celld with these flags until the test ends, and returns once it listens.
func start(t testing.TB, flags ...string) *server {
	t.Helper()
	return spec{flags: flags}.start(t)
}

// startStress is start for tests of many clients at once: with go test -race, the race detector watches celld too.
func startStress(t testing.TB, flags ...string) *server {
	t.Helper()
	return spec{binary: stressBinary, flags: flags}.start(t)
}

func (s spec) command() *exec.Cmd {
	path := s.binary
	if path == "" {
		path = binary
	}
	args := append(append([]string{}, s.wrap...), path)
	args = append(append(args, "--port", "0", "--log-format", "json"), s.flags...)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(cleanEnv(), s.env...)
	cmd.Dir = s.dir
	cmd.SysProcAttr = s.sys
	return cmd
}

func (s spec) start(t testing.TB) *server {
	t.Helper()
	cmd := s.command()
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
	srv := &server{t: t, cmd: cmd, log: &logBuffer{}, exited: make(chan struct{})}
	ready := make(chan []string, 2)
	go srv.readLog(stderr, s.early, ready)
	if !s.dies {
		t.Cleanup(srv.stop)
	} else {
		t.Cleanup(func() { cmd.Process.Kill(); <-srv.exited })
	}
	select {
	case srv.addrs = <-ready:
	case <-srv.exited:
		t.Fatalf("%v ended before it was ready: %v\n%s", cmd.Args, cmd.ProcessState, srv.log)
	case <-time.After(startTimeout):
		t.Fatalf("%v is not ready after %v\n%s", cmd.Args, startTimeout, srv.log)
	}
	for _, addr := range srv.addrs {
		if !strings.HasPrefix(addr, "unix:") {
			srv.addr = addr
			break
		}
	}
	return srv
}

// readLog keeps what celld logs, hands out the addresses of the start line, and collects the exit code.
func (s *server) readLog(stderr io.Reader, early bool, ready chan<- []string) {
	lines := bufio.NewReader(stderr)
	for {
		line, err := lines.ReadBytes('\n')
		s.log.Write(line)
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
	s.cmd.Wait()
	close(s.exited)
}

// stop ends celld as an init system would and checks that it went in order.
func (s *server) stop() {
	s.t.Helper()
	select {
	case <-s.exited: // by the test's own hand, or by a crash; the code tells
	default:
		s.cmd.Process.Signal(syscall.SIGTERM)
	}
	s.wait(0)
	if s.t.Failed() {
		s.t.Logf("celld's log:\n%s", s.log)
	}
}

// wait waits until celld has ended and checks its exit code.
func (s *server) wait(wantCode int) {
	s.t.Helper()
	select {
	case <-s.exited:
	case <-time.After(stopTimeout):
		s.cmd.Process.Signal(syscall.SIGQUIT) // its stacks are worth reading
		select {
		case <-s.exited:
		case <-time.After(5 * time.Second):
			s.cmd.Process.Kill()
			<-s.exited
		}
		s.t.Errorf("celld has not ended %v after it was told to\n%s", stopTimeout, s.log)
		return
	}
	if code := s.cmd.ProcessState.ExitCode(); code != wantCode {
		s.t.Errorf("celld ended with %v, want code %d\n%s", s.cmd.ProcessState, wantCode, s.log)
	}
}

// alive fails the test unless celld still answers a new connection.
func (s *server) alive() {
	s.t.Helper()
	c := dial(s.t, s.addr)
	defer c.Close()
	if got := c.do("PING"); got != "+PONG\r\n" {
		s.t.Fatalf("PING: %q", got)
	}
}

// unixPath is the path of the unix socket in the start line.
func (s *server) unixPath() string {
	for _, addr := range s.addrs {
		if path, ok := strings.CutPrefix(addr, "unix:"); ok {
			return path
		}
	}
	s.t.Fatalf("no unix socket in %q", s.addrs)
	return ""
}

// runToEnd runs celld with exactly these arguments until it ends by itself.
func runToEnd(t testing.TB, env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Env = append(cleanEnv(), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(stopTimeout, func() { cmd.Process.Kill() })
	defer timer.Stop()
	err := cmd.Wait()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// cleanEnv is this process's environment without celld's own variables.
func cleanEnv() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "CELLD_") {
			env = append(env, kv)
		}
	}
	return env
}

// logBuffer is a server's standard error, safe to read while it is written.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
