//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
)

// tools are the programs that the rows need.
type tools struct {
	redisBenchmark string
	redis          string // empty: not there
	redisCell      string
	throttlecrab   string
	celld          string
	celldFlags     []string
}

// findTools builds celld as the Makefile does, and looks for the rest.
func findTools(root, dir string, celldFlags []string) (tools, error) {
	t := tools{
		redisCell:    filepath.Join(root, ".cache", "redis-cell", "libredis_cell.so"),
		throttlecrab: filepath.Join(root, ".cache", "throttlecrab", "bin", "throttlecrab-server"),
		celld:        filepath.Join(dir, "celld"),
		celldFlags:   celldFlags,
	}
	if path := os.Getenv("REDIS_CELL_MODULE"); path != "" {
		t.redisCell = path
	}
	t.redis, _ = exec.LookPath("redis-server")
	var err error
	if t.redisBenchmark, err = exec.LookPath("redis-benchmark"); err != nil {
		return t, fmt.Errorf("it drives the servers: %w (make tools installs it)", err)
	}
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", t.celld, ".")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return t, fmt.Errorf("build celld: %w\n%s", err, out)
	}
	return t, nil
}

func (t *tools) redisVersion() string { return firstMatch(`v=(\S+)`, t.redis, "--version") }

// redisCellVersion is in the Cargo.lock beside the module that the Makefile builds.
func (t *tools) redisCellVersion() string {
	lock, _ := os.ReadFile(filepath.Join(filepath.Dir(t.redisCell), "Cargo.lock"))
	m := regexp.MustCompile(`name = "redis-cell"\nversion = "([^"]+)"`).FindSubmatch(lock)
	if m == nil {
		return "of unknown version"
	}
	return string(m[1])
}

// firstMatch is what the expression's group matches in the output of a command.
func firstMatch(expr string, command ...string) string {
	out, err := exec.Command(command[0], command[1:]...).Output()
	if m := regexp.MustCompile(expr).FindSubmatch(out); err == nil && m != nil {
		return string(m[1])
	}
	return "unknown"
}
