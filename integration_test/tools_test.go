package integration_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// need returns the path of a tool. Without the tool the test is skipped, and fails in CI.
func need(t testing.TB, tool string) string {
	t.Helper()
	path, err := exec.LookPath(tool)
	if err != nil { // where Debian has servers, and who is not root does not look
		path, err = exec.LookPath("/usr/sbin/" + tool)
	}
	if err != nil {
		missing(t, "%s is not installed", tool)
	}
	return path
}

// needRoot skips the test, or fails it in CI, where this process may not chroot or make namespaces.
func needRoot(t testing.TB) {
	t.Helper()
	if os.Getuid() != 0 {
		missing(t, "not root")
	}
}

func missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// largeDownload skips a test that downloads and compiles for minutes, unless `make test-all` runs it. Then its tools must be there.
func largeDownload(t testing.TB, tools ...string) {
	t.Helper()
	if !allTests {
		t.Skip("downloads much: make test-all runs it")
	}
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("%s is not installed", tool)
		}
	}
}

// eventually waits until the condition holds, and fails the test when it does not within a while.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(replyTimeout); !condition(); {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", replyTimeout, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// tool runs a program to its end and returns what it printed on both outputs. Its own exit code must be 0.
func tool(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := tryTool(t, "", name, args...)
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return out
}

// tryTool runs a program with this standard input.
func tryTool(t testing.TB, stdin, name string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, need(t, name), args...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Env = cleanEnv()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// newRand returns a source of random calls and logs the seed that brings them back.
func newRand(t testing.TB) *rand.Rand {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("again with: go test ./integration_test -run '^%s$' -args -seed %d", t.Name(), seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// vmRSS is the resident memory of a process in bytes.
func vmRSS(t testing.TB, pid int) int64 {
	t.Helper()
	return procStatus(t, pid, "VmRSS")
}

// procStatus is a figure of a process in bytes: VmRSS, or VmHWM for the peak of that.
func procStatus(t testing.TB, pid int, name string) int64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == name+":" {
			kb, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kb << 10
		}
	}
	t.Fatalf("no %s in %s", name, text)
	return 0
}

// cpuTime is what a process has had of the CPUs. Unlike the time that passes, it is the same on a loaded machine.
func cpuTime(t testing.TB, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		t.Fatal(err)
	}
	var user, system int64 // in ticks of 10 ms, see proc(5)
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}

// hostPort splits an address for tools that want the two apart.
func hostPort(addr string) (host, port string) {
	i := strings.LastIndexByte(addr, ':')
	return strings.Trim(addr[:i], "[]"), addr[i+1:]
}
