//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// tools are the programs that the rows need.
type tools struct {
	redisBenchmark string
	redis          string // empty: not there
	redisCell      string
	throttlecrab   string
	ratelimit      string
	celld          string
	before         string // empty: none
	celldFlags     []string
	trees          map[string]string // where the sources of celld and of the peer before are
}

// findTools builds celld as the Makefile does, and looks for the rest.
func findTools(root, dir string, o options) (tools, error) {
	t := tools{
		redisCell:    filepath.Join(root, ".cache", "redis-cell", "libredis_cell.so"),
		throttlecrab: filepath.Join(root, ".cache", "throttlecrab", "bin", "throttlecrab-server"),
		ratelimit:    filepath.Join(root, ".cache", "ratelimit", "service_cmd"),
		celld:        filepath.Join(dir, "celld"),
		celldFlags:   strings.Fields(o.celld),
		trees:        map[string]string{"celld": root},
	}
	if path := os.Getenv("REDIS_CELL_MODULE"); path != "" {
		t.redisCell = path
	}
	t.redis, _ = exec.LookPath("redis-server")
	var err error
	if t.redisBenchmark, err = exec.LookPath("redis-benchmark"); err != nil {
		return t, fmt.Errorf("it drives the servers: %w (make tools installs it)", err)
	}
	if err := build(root, t.celld); err != nil || o.before == "" {
		return t, err
	}
	t.before = filepath.Join(dir, "celld-before")
	old := filepath.Join(dir, "before")
	t.trees["before"] = old
	if out, err := exec.Command("git", "clone", "--quiet", "--shared", root, old).CombinedOutput(); err != nil {
		return t, fmt.Errorf("git clone: %w\n%s", err, out)
	}
	if out, err := exec.Command("git", "-C", old, "checkout", "--quiet", o.before).CombinedOutput(); err != nil {
		return t, fmt.Errorf("git checkout: %w\n%s", err, out)
	}
	return t, build(old, t.before)
}

func build(dir, binary string) error {
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", binary, ".")
	build.Dir, build.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build celld in %s: %w\n%s", dir, err, out)
	}
	return nil
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
