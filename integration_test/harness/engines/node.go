package engines

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// Node is a server of a Fleet, on a port of the loopback that it keeps when it is started again.
type Node struct {
	T        testing.TB
	Addr     string
	Port     string
	TLSPort  string // with --tls-cluster, by which others know it then
	Password string // of --requirepass

	path, dir string
	args, env []string
	process   *os.Process
	exited    chan struct{}
}

// node runs a server that writes nothing to the disk unless told to.
func (e Engine) node(t testing.TB, args ...string) *Node {
	t.Helper()
	n := &Node{T: t, path: e.path, dir: t.TempDir(), args: args, env: e.env}
	if i := slices.Index(args, "--requirepass"); i >= 0 {
		n.Password = args[i+1]
	}
	t.Cleanup(func() {
		n.end()
		if t.Failed() {
			lines := strings.SplitAfter(n.Log(), "\n")
			t.Logf("log of %s on port %s:\n%s", e.Name, n.Port, strings.Join(lines[max(len(lines)-40, 0):], ""))
		}
	})
	for range 10 {
		n.Port = portOfNode(t)
		if slices.Contains(args, "--tls-cluster") {
			n.TLSPort = portOfNode(t)
		}
		if n.start() {
			return n
		}
	}
	t.Fatalf("%s does not start:\n%s", e.Name, n.Log())
	return nil
}

// portOfNode is a free port whose Cluster bus, 10,000 above, is free too.
func portOfNode(t testing.TB) string {
	for {
		port, _ := strconv.Atoi(harness.FreePort(t))
		if port >= 20_000 {
			continue
		}
		if l, err := net.Listen("tcp", ":"+strconv.Itoa(port+10_000)); err == nil {
			l.Close()
			return strconv.Itoa(port)
		}
	}
}

// start reports whether the server listens. It does not where another process took the port meanwhile.
func (n *Node) start() bool {
	n.T.Helper()
	n.Addr = "127.0.0.1:" + n.Port
	log, err := os.OpenFile(n.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		n.T.Fatal(err)
	}
	defer log.Close()
	var cmd *exec.Cmd
	if i := slices.Index(n.args, "--sentinel"); i >= 0 {
		conf := filepath.Join(n.dir, "sentinel.conf")
		if _, err := os.Stat(conf); err != nil {
			celldtest.WriteFile(n.T, "port "+n.Port+"\nbind 127.0.0.1\ndir "+n.dir+"\n"+n.args[i+1], conf)
		}
		cmd = exec.Command(n.path, conf, "--sentinel")
	} else {
		cmd = exec.Command(n.path, append([]string{
			"--port", n.Port, "--bind", "127.0.0.1", "--dir", n.dir, "--save", "", "--appendonly", "no",
			"--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0",
		}, n.args...)...)
		if n.TLSPort != "" {
			cmd.Args = append(cmd.Args, "--tls-port", n.TLSPort)
		}
	}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), n.env...)
	if err := cmd.Start(); err != nil {
		n.T.Fatal(err)
	}
	n.process, n.exited = cmd.Process, make(chan struct{})
	exited := n.exited
	go func() { cmd.Wait(); close(exited) }()
	for deadline := time.Now().Add(harness.StartTimeout); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		select {
		case <-n.exited:
			return false
		default:
		}
		if n.listens() {
			return true
		}
	}
	return false
}

// listens reports whether it is this server that listens on the port.
func (n *Node) listens() bool {
	c, err := net.Dial("tcp", n.Addr)
	if err != nil {
		return false
	}
	defer c.Close()
	conn := &harness.Conn{Conn: c, T: n.T, R: bufio.NewReader(c)}
	if n.Password != "" {
		conn.TryDo([]string{"AUTH", n.Password})
	}
	info, _ := conn.TryDo([]string{"INFO", "server"})
	return strings.Contains(info, fmt.Sprintf("\nprocess_id:%d\r\n", n.process.Pid))
}

func (n *Node) logPath() string { return filepath.Join(n.dir, "log") }

// Log is what the server has logged.
func (n *Node) Log() string { return celldtest.ReadFile(n.T, n.logPath()) }

// end kills the server, and waits for its end.
func (n *Node) end() {
	n.process.Kill()
	<-n.exited
}

// Kill ends the server at once, as kill -9 does.
func (n *Node) Kill() { n.end() }

// With sets the server's variables of the environment, NAME=value, from its next start on.
func (n *Node) With(env ...string) { n.env = env }

// Restart starts a server that was killed again, on its port and folder. With no --appendonly or --save it is empty then.
func (n *Node) Restart() {
	n.T.Helper()
	if !n.start() {
		n.T.Fatalf("the engine does not start again:\n%s", n.Log())
	}
}

// Pause stops the server's process until Resume. Connections stay, and the kernel takes what is sent.
func (n *Node) Pause()  { n.process.Signal(syscall.SIGSTOP) }
func (n *Node) Resume() { n.process.Signal(syscall.SIGCONT) }

// Dial connects to the server, with its password.
func (n *Node) Dial() *harness.Conn {
	n.T.Helper()
	c := harness.Dial(n.T, n.Addr)
	if n.Password != "" {
		if got := c.Do("AUTH", n.Password); got != "+OK\r\n" {
			n.T.Fatalf("AUTH: %q", got)
		}
	}
	return c
}

// Do asks the server by a connection of its own.
func (n *Node) Do(args ...string) string {
	n.T.Helper()
	c := n.Dial()
	defer c.Close()
	return c.Do(args...)
}

// OK is Do for what must be answered with OK.
func (n *Node) OK(args ...string) {
	n.T.Helper()
	if got := n.patient(args...); got != "+OK\r\n" {
		n.T.Fatalf("%.200q on port %s: %q", args, n.Port, got)
	}
}

// patient is Do, again and again while the Cluster of a busy machine lacks a master or good replicas.
func (n *Node) patient(args ...string) (got string) {
	n.T.Helper()
	celldtest.Eventually(n.T, "port "+n.Port+" does "+args[0], func() bool {
		got = n.Do(args...)
		return !strings.HasPrefix(got, "-NOREPLICAS ") && !strings.HasPrefix(got, "-CLUSTERDOWN ")
	})
	return got
}

// Info is a field of INFO. A server that becomes a replica closes connections, so it is asked again where one ends.
func (n *Node) Info(field string) string {
	n.T.Helper()
	var info string
	celldtest.Eventually(n.T, "port "+n.Port+" tells INFO", func() bool {
		c := n.Dial()
		defer c.Close()
		var err error
		info, err = c.TryDo([]string{"INFO", "all"})
		return err == nil
	})
	for _, section := range harness.InfoSections(info) {
		if value, ok := section[field]; ok {
			return value
		}
	}
	return ""
}

// IsMaster reports what the server takes itself for.
func (n *Node) IsMaster() bool { return n.Info("role") == "master" }

// Running reports whether the server's process is there.
func (n *Node) Running() bool {
	select {
	case <-n.exited:
		return false
	default:
		return true
	}
}

// text is a bulk reply's text, without the last line end.
func (n *Node) text(args ...string) string {
	n.T.Helper()
	text, ok := harness.Bulk(n.Do(args...))
	if !ok {
		n.T.Fatalf("%.200q on port %s has no text", args, n.Port)
	}
	return strings.TrimSpace(text)
}
