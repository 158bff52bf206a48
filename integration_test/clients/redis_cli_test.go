package clients

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/creack/pty"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// cli runs redis-cli against a server.
func cli(t *testing.T, addr, stdin string, args ...string) string {
	t.Helper()
	host, port := harness.HostPort(addr)
	out, err := harness.TryTool(t, stdin, "redis-cli", append([]string{"-h", host, "-p", port}, args...)...)
	if err != nil {
		t.Fatalf("redis-cli %q: %v\n%s", args, err, out)
	}
	return out
}

func TestRedisCLI(t *testing.T) {
	t.Parallel()
	celldtest.Need(t, "redis-cli")
	srv := harness.Start(t)
	check := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("redis-cli printed %q, want %q", got, want)
		}
	}
	check(cli(t, srv.Addr, "", "CL.THROTTLE", "laoqian:reply", "15", "30", "60", "1"), "0\n16\n15\n-1\n2\n")
	celldtest.Again(t, func(attempt string) string { // a second that ends between the two is one less to wait
		got := ""
		for range 2 {
			got += cli(t, srv.Addr, "", "--no-raw", "CL.THROTTLE", "k"+attempt, "0", "1", "60")
		}
		want := "1) (integer) 0\n2) (integer) 1\n3) (integer) 0\n4) (integer) -1\n5) (integer) 60\n" +
			"1) (integer) 1\n2) (integer) 1\n3) (integer) 0\n4) (integer) 60\n5) (integer) 60\n"
		if got != want {
			return fmt.Sprintf("redis-cli printed %q, want %q", got, want)
		}
		return ""
	})
	check(cli(t, srv.Addr, "", "-3", "--no-raw", "CL.THROTTLE", "k3", "15", "30", "60"),
		"1) (integer) 0\n2) (integer) 16\n3) (integer) 15\n4) (integer) -1\n5) (integer) 2\n")
	check(cli(t, srv.Addr, "", "-3", "--no-raw", "CONFIG", "GET", "timeout"), "1# \"timeout\" => \"0\"\n")
	check(cli(t, srv.Addr, "", "--json", "-3", "CONFIG", "GET", "timeout"), "{\"timeout\":\"0\"}\n")
	check(cli(t, srv.Addr, "", "--csv", "CL.THROTTLE", "kcsv", "15", "30", "60"), "0,16,15,-1,2\n")
	check(cli(t, srv.Addr, "PING\nCL.THROTTLE a 15 30 60\n\nCL.THROTTLE a 15 30\nPING last\n", "--no-raw"),
		"PONG\n1) (integer) 0\n2) (integer) 16\n3) (integer) 15\n4) (integer) -1\n5) (integer) 2\n"+
			"(error) Cell error: Store error: Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]\n\"last\"\n")
	check(cli(t, srv.Addr, "", "-r", "3", "-i", "0.01", "CL.THROTTLE", "r", "1", "1", "60", "0"), strings.Repeat("0\n2\n2\n-1\n0\n", 3))
	check(cli(t, srv.Addr, "", "-n", "0", "PING"), "PONG\n")
	check(cli(t, srv.Addr, "60", "-x", "CL.THROTTLE", "x", "15", "30"), "0\n16\n15\n-1\n2\n")

	host, port := harness.HostPort(srv.Addr)
	check(harness.Tool(t, "redis-cli", "-u", "redis://"+host+":"+port+"/0", "PING"), "PONG\n")
	if info := cli(t, srv.Addr, "", "INFO"); !strings.Contains(info, "redis_version:") || !strings.Contains(info, "celld_version:") {
		t.Errorf("INFO: %s", info)
	}
	if info := cli(t, srv.Addr, "", "-3", "INFO", "server"); !strings.HasPrefix(info, "# Server") {
		t.Errorf("-3 INFO is not shown as plain text: %s", info)
	}
}

// TestRedisCLIPipe loads 10,000 calls by mass insertion.
func TestRedisCLIPipe(t *testing.T) {
	t.Parallel()
	celldtest.Need(t, "redis-cli")
	srv := harness.Start(t)
	var calls bytes.Buffer
	for i := range 10_000 {
		calls.Write(harness.Frame("CL.THROTTLE", fmt.Sprintf("pipe:%d", i%5000), "15", "30", "6000"))
	}
	out := cli(t, srv.Addr, calls.String(), "--pipe")
	if !strings.HasSuffix(strings.TrimSpace(out), "errors: 0, replies: 10000") {
		t.Errorf("redis-cli --pipe: %s", out)
	}
	if got := cli(t, srv.Addr, "", "DBSIZE"); got != "5000\n" {
		t.Errorf("DBSIZE: %s", got)
	}
	if lines := strings.Count(cli(t, srv.Addr, "", "--scan", "--pattern", "pipe:*"), "\n"); lines < 5000 || lines > 5100 {
		t.Errorf("redis-cli --scan printed %d keys of 5000", lines)
	}
	out = cli(t, srv.Addr, "", "--bigkeys")
	if !strings.Contains(out, "Sampled 5000 keys in the keyspace!") || !strings.Contains(out, "5000 strings with") {
		t.Errorf("redis-cli --bigkeys: %s", out)
	}
}

// TestRedisCLIMemkeys runs redis-cli, which adds up the memory of keys. It asks celld for the rest of MEMORY as it asks redis-server.
func TestRedisCLIMemkeys(t *testing.T) {
	t.Parallel()
	celldtest.Need(t, "redis-cli")
	srv := harness.Start(t)
	for _, line := range []string{
		"SET t:1 9000000000000000000", "SET t:2 9000000000000000000", "CL.TAKE log 100/1h,algo=log", "CL.TAKE more 100/1h 100/2h",
	} {
		cli(t, srv.Addr, "", strings.Fields(line)...)
	}
	sum := 0
	for _, key := range []string{"t:1", "t:2", "log", "more"} {
		n, err := strconv.Atoi(strings.TrimSpace(cli(t, srv.Addr, "", "MEMORY", "USAGE", key)))
		if err != nil || n < 64 {
			t.Errorf("MEMORY USAGE %s: %d, %v", key, n, err)
		}
		sum += n
	}
	if got := cli(t, srv.Addr, "", "INFO", "memory"); !strings.Contains(got, fmt.Sprintf("used_memory_dataset:%d\r\n", sum)) {
		t.Errorf("keys take %d bytes in all: %s", sum, got)
	}
	for _, mode := range [][]string{{"--memkeys"}, {"--memkeys-samples", "0"}} {
		out := cli(t, srv.Addr, "", mode...)
		for _, want := range []string{
			"Sampled 4 keys in the keyspace!", "2 strings with 128 bytes", "2 hashs with ", "Biggest string found", "has 64 bytes",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("redis-cli %s: no %q in\n%s", mode, want, out)
			}
		}
	}
	out := cli(t, srv.Addr, "", "MEMORY", "STATS")
	if !strings.Contains(out, "db.0\n") || !strings.Contains(out, fmt.Sprintf("dataset.bytes\n%d\n", sum)) {
		t.Errorf("MEMORY STATS: %s", out)
	}
}

// TestRedisCLIPassword gives the password in each way redis-cli has.
func TestRedisCLIPassword(t *testing.T) {
	t.Parallel()
	celldtest.Need(t, "redis-cli")
	srv := harness.Start(t, "--requirepass", "sesame")
	host, port := harness.HostPort(srv.Addr)
	for _, args := range [][]string{
		{"-a", "sesame", "--no-auth-warning"}, {"--user", "default", "--pass", "sesame", "--no-auth-warning"},
		{"-3", "-a", "sesame", "--no-auth-warning"},
	} {
		got := cli(t, srv.Addr, "", append(args, "CL.THROTTLE", strings.Join(args, ""), "15", "30", "60")...)
		if got != "0\n16\n15\n-1\n2\n" {
			t.Errorf("redis-cli %q: %q", args, got)
		}
	}
	if got := harness.Tool(t, "redis-cli", "--no-auth-warning", "-u", "redis://default:sesame@"+host+":"+port, "PING"); got != "PONG\n" {
		t.Errorf("redis-cli -u: %q", got)
	}
	if got := cli(t, srv.Addr, "", "PING"); !strings.HasPrefix(got, "NOAUTH Authentication required.") {
		t.Errorf("without the password: %q", got)
	}
	got := cli(t, srv.Addr, "", "-a", "wrong", "--no-auth-warning", "PING")
	if !strings.Contains(got, "WRONGPASS") || strings.Contains(got, "PONG") {
		t.Errorf("with a wrong password: %q", got)
	}
}

// TestRedisCLIUnixSocket connects by path.
func TestRedisCLIUnixSocket(t *testing.T) {
	t.Parallel()
	celldtest.Need(t, "redis-cli")
	srv := harness.Start(t, "--unixsocket", filepath.Join(harness.SocketDir(t), "celld.sock"))
	if got := harness.Tool(t, "redis-cli", "-s", srv.UnixPath(), "CL.THROTTLE", "k", "15", "30", "60"); got != "0\n16\n15\n-1\n2\n" {
		t.Errorf("redis-cli -s: %q", got)
	}
}

// TestRedisCLIEndless starts the modes that run until they are stopped, and sees their first output.
func TestRedisCLIEndless(t *testing.T) {
	t.Parallel()
	celldtest.Need(t, "redis-cli")
	srv := harness.Start(t)
	host, port := harness.HostPort(srv.Addr)
	c := harness.Dial(t, srv.Addr)
	for _, mode := range []struct{ args, want []string }{
		{[]string{"--stat", "-i", "0.1"}, []string{"------- data ------", "requests", "(+"}},
		{[]string{"--latency"}, []string{"min: ", "avg: ", "samples"}},
		{[]string{"MONITOR"}, []string{"OK", `"CL.THROTTLE" "seen\x00by" "15" "30" "60"`}},
	} {
		t.Run(mode.args[0], func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			cmd := exec.CommandContext(ctx, "redis-cli", append([]string{"-h", host, "-p", port}, mode.args...)...)
			screen, err := pty.Start(cmd)
			if err != nil {
				t.Fatal(err)
			}
			defer screen.Close()
			printed := follow(screen)
			for _, want := range mode.want {
				celldtest.Eventually(t, fmt.Sprintf("redis-cli %q prints %q", mode.args, want), func() bool {
					c.Throttle("seen\x00by", "15", "30", "60")
					return strings.Contains(printed(), want)
				})
			}
			cancel()
			cmd.Wait()
		})
	}
	srv.Alive()
}

// TestRedisCLIInteractive types into a terminal, with the hints and the completion that redis-cli makes of COMMAND DOCS.
func TestRedisCLIInteractive(t *testing.T) {
	t.Parallel()
	celldtest.Need(t, "redis-cli")
	srv := harness.Start(t)
	host, port := harness.HostPort(srv.Addr)
	cmd := harness.Command(t, "redis-cli", "-h", host, "-p", port)
	cmd.Env = append(harness.CleanEnv(), "TERM=xterm", "HOME="+t.TempDir())
	screen, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 200})
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	printed := follow(screen)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the terminal: %q", printed())
		}
	})
	seen := 0 // of what is printed, what earlier lines brought
	see := func(want string) {
		t.Helper()
		celldtest.Eventually(t, fmt.Sprintf("redis-cli shows %q", want), func() bool { return strings.Contains(printed()[seen:], want) })
	}
	enter := func(line string, wants ...string) { // and wait for the next prompt: what is typed before it may be lost
		t.Helper()
		seen = len(printed())
		io.WriteString(screen, line)
		for _, want := range wants {
			see(want)
		}
		io.WriteString(screen, "\r")
		see("\r\n")
		celldtest.Eventually(t, "the next prompt", func() bool { return strings.HasSuffix(printed(), "> ") })
	}
	answers := func(want string) {
		t.Helper()
		if !strings.Contains(printed()[seen:], want) {
			t.Errorf("redis-cli shows %q, want %q", printed()[seen:], want)
		}
	}
	see(host + ":" + port + "> ")
	enter("CL.THROTTLE user:1 15 30 6000", "key max_burst count period [quantity]") // the hint, from COMMAND DOCS
	answers("1) (integer) 0\r\n2) (integer) 16\r\n3) (integer) 15\r\n4) (integer) -1\r\n5) (integer) 200\r\n")
	enter("cl.thr\t user:1 15 30 6000", "CL.THROTTLE user:1 15 30 6000") // completed
	answers("3) (integer) 14")
	enter("expire user:1 nonsense", "key seconds [NX|XX|GT|LT]")
	answers("(error) ERR value is not an integer or out of range")
	enter("help cl.throttle")
	enter("multi")
	answers("(TX)> ")
	enter("ping")
	answers("QUEUED")
	enter("exec")
	answers("1) PONG")
	io.WriteString(screen, "quit\r")
	if err := cmd.Wait(); err != nil {
		t.Errorf("redis-cli: %v\n%s", err, printed())
	}
	srv.Alive()
}

// follow reads a terminal until it closes and returns a look at all that was printed so far.
func follow(screen io.Reader) func() string {
	var mu sync.Mutex
	var text bytes.Buffer
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := screen.Read(buf)
			mu.Lock()
			text.Write(buf[:n])
			mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		return text.String()
	}
}
