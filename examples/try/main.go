// Command try runs an example as it is, against what it needs: it starts celld and a small service, runs a program that asks them, and ends
// with it.
//
//	go -C examples run ./try go run ./login ann secret
//	go -C examples run ./try -proxy -dir caddy caddy run
//
// The program finds celld by RATE_LIMITER. celld has the policies of the examples. The service has pages, jobs, a number that a lock
// guards, and a model that uses 42 tokens for each request. With -proxy, the service is the app on port 3000 that the proxies expect, and
// celld answers their checks on port 8080.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const policies = `api     100/1m
login   5/15m,algo=log,block=1h,block-at=full
llm     600/1m 100000/1m,name=tokens 20/2m,algo=conc
`

func main() {
	listen := flag.String("listen", "127.0.0.1:8000", "address of the service")
	proxy := flag.Bool("proxy", false, "for a proxy: the service is the app on port 3000, and celld answers checks on port 8080")
	dir := flag.String("dir", ".", "folder to run the program in")
	flag.Parse()
	code, err := run(*listen, *dir, *proxy, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "try:", err)
	}
	os.Exit(code)
}

// run returns the program's exit code.
func run(listen, dir string, proxy bool, program []string) (code int, err error) {
	if len(program) == 0 {
		return 2, errors.New("name a program to run, such as: go run ./login ann secret")
	}
	interrupted, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, fail := context.WithCancelCause(interrupted)
	defer fail(nil)
	var checks []string
	if proxy {
		listen, checks = "127.0.0.1:3000", []string{"--http-bind", "127.0.0.1:8080"}
	}
	service, err := net.Listen("tcp", listen)
	if err != nil {
		return 1, err
	}
	go http.Serve(service, &example{})
	celld, addr, err := start(ctx, fail, checks)
	if err != nil {
		return 1, err
	}
	defer celld()

	cmd := exec.CommandContext(ctx, program[0], program[1:]...)
	cmd.Dir = dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "RATE_LIMITER=redis://"+addr)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	err = cmd.Run()
	if ctx.Err() != nil && interrupted.Err() == nil {
		return 1, context.Cause(ctx)
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// start builds celld and starts it, until stop. It calls fail when celld ends by itself.
func start(ctx context.Context, fail context.CancelCauseFunc, flags []string) (stop func(), addr string, err error) {
	dir, err := os.MkdirTemp("", "celld-try")
	if err != nil {
		return nil, "", err
	}
	file, binary := filepath.Join(dir, "policies"), filepath.Join(dir, "celld")
	if err := os.WriteFile(file, []byte(policies), 0o600); err != nil {
		return nil, "", err
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, ".")
	build.Dir, build.Stderr = "..", os.Stderr
	if err := build.Run(); err != nil {
		return nil, "", fmt.Errorf("build celld: %w", err)
	}
	// celld gets a socket that listens, as from systemd. A free port of which it is told may be another's before celld has it.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	defer listener.Close()
	socket, err := listener.(*net.TCPListener).File()
	if err != nil {
		return nil, "", err
	}
	defer socket.Close()
	celld := exec.Command("sh", "-c", `LISTEN_FDS=1 LISTEN_PID=$$ exec "$0" "$@"`, binary)
	celld.Args = append(append(celld.Args, flags...), "--policies", file, "--loglevel", "warning")
	celld.ExtraFiles, celld.Stderr = []*os.File{socket}, os.Stderr
	if err := celld.Start(); err != nil {
		return nil, "", err
	}
	ended := make(chan struct{})
	go func() {
		fail(fmt.Errorf("celld ended: %w", celld.Wait()))
		close(ended)
	}()
	stop = func() {
		_ = celld.Process.Kill()
		<-ended
		_ = os.RemoveAll(dir)
	}
	addr = listener.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	for ctx.Err() == nil {
		if exec.CommandContext(ctx, binary, "ready", "--port", port).Run() == nil { // HTTP, too, is there then
			return stop, addr, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	stop()
	return nil, "", context.Cause(ctx)
}

// example is the service. It refuses a write to its number under a lock that another has held since.
type example struct {
	mu      sync.Mutex
	number  int
	highest int64
}

func (s *example) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch token, _ := strconv.ParseInt(r.Header.Get("Fencing-Token"), 10, 64); {
	case r.URL.Path == "/number" && r.Method == http.MethodGet:
		fmt.Fprint(w, s.number)
	case r.URL.Path == "/number" && token <= s.highest:
		w.WriteHeader(http.StatusConflict)
	case r.URL.Path == "/number":
		body, _ := io.ReadAll(r.Body)
		s.number, _ = strconv.Atoi(string(body))
		s.highest = token
	case r.Method == http.MethodPost && r.URL.Path == "/model":
		fmt.Fprint(w, `{"usage": {"total_tokens": 42}}`)
	case r.Method == http.MethodPost:
		fmt.Fprint(w, "done")
	default:
		fmt.Fprintln(w, "the page", r.URL.Path)
	}
}
