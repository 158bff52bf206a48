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
llm     100000/1m
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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var checks []string
	if proxy {
		listen, checks = "127.0.0.1:3000", []string{"--http-bind", "127.0.0.1:8080"}
	}
	service, err := net.Listen("tcp", listen)
	if err != nil {
		return 1, err
	}
	go http.Serve(service, &example{})
	celld, addr, err := start(ctx, checks)
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
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// start builds celld and starts it on a free port, until stop.
func start(ctx context.Context, flags []string) (stop func(), addr string, err error) {
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
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	addr = free.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	free.Close()
	celld := exec.Command(binary, append(flags, "--port", port, "--policies", file, "--loglevel", "warning")...)
	celld.Stderr = os.Stderr
	if err := celld.Start(); err != nil {
		return nil, "", err
	}
	stop = func() {
		_ = celld.Process.Kill()
		_ = celld.Wait()
		_ = os.RemoveAll(dir)
	}
	for ctx.Err() == nil {
		if exec.Command(binary, "ready", "--port", port).Run() == nil {
			return stop, addr, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	stop()
	return nil, "", ctx.Err()
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
