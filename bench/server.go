//go:build linux

package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// room is what a row needs of a server beyond its defaults. Zero values leave the default.
type room struct {
	keys           int
	connections    int
	cleanupSeconds int     // throttlecrab's: how often it drops expired keys; 0: its default
	fsync          string  // celld's and redis-server's --appendfsync, or snapshotOnly; empty: nothing on the disk
	engine         *server // where celld keeps limits, and envoyproxy/ratelimit counts; nil: in celld's memory
	tls            bool    // a port with TLS, too
	policy         string  // the limit that the HTTP port checks; empty: none
	scraped        bool    // an HTTP port for metrics
	envoy          bool    // Envoy's rate limit service
	dir            string  // of a server that was killed, to go on from its files; empty: a new one
}

// snapshotOnly starts a server that reads dump.rdb.
const snapshotOnly = "no file"

// server is a process of a peer, listening on loopback.
type server struct {
	peer      *peer
	room      room
	dir       string
	addr      string
	port      int
	otherPort int // throttlecrab's HTTP port; the others' port of TLS, HTTP or gRPC
	cmd       *exec.Cmd
	exited    chan struct{}
}

// start runs a peer's server and returns when it answers PING.
func (b *bench) start(p *peer, r room) (_ *server, err error) {
	if r.cleanupSeconds == 0 {
		r.cleanupSeconds = 300
	}
	s := &server{peer: p, room: r, dir: r.dir, exited: make(chan struct{})}
	if s.dir == "" {
		if s.dir, err = os.MkdirTemp(b.dir, p.name+"-"); err != nil {
			return nil, err
		}
	}
	if s.port, s.otherPort, err = freePorts(); err != nil {
		return nil, err
	}
	s.addr = fmt.Sprintf("127.0.0.1:%d", s.port)
	if r.tls {
		if err := s.writeCertificate(); err != nil {
			return nil, err
		}
	}
	if r.policy != "" {
		if err := writePolicy(s); err != nil {
			return nil, err
		}
	}
	if r.envoy {
		if err := writeEnvoyLimits(s); err != nil {
			return nil, err
		}
	}
	log, err := os.Create(s.logPath())
	if err != nil {
		return nil, err
	}
	defer log.Close()
	args := p.args(&b.tools, s)
	s.cmd = exec.Command(args[0], args[1:]...)
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr, s.cmd.Env = s.dir, log, log, plainEnvironment()
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL} // Ctrl-C is for the program, not for its servers
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { s.cmd.Wait(); close(s.exited) }()
	if err := s.awaitPong(b); err != nil {
		err = fmt.Errorf("start %s: %w%s", p.title, err, s.lastLog())
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *server) awaitPong(b *bench) error {
	patience := 10 * time.Second
	if s.room.dir != "" { // it reads its files
		patience = 5 * time.Minute
	}
	for deadline := time.Now().Add(patience); ; {
		select {
		case <-s.exited:
			return fmt.Errorf("it ended: %s", s.cmd.ProcessState)
		default:
		}
		reply, err := s.ping()
		if err == nil && reply == "PONG" {
			return nil
		}
		if time.Now().After(deadline) || !b.sleep(10*time.Millisecond) {
			return fmt.Errorf("no PONG within %v: %q, %v", patience, reply, err)
		}
	}
}

// ping asks whether the server is there. envoyproxy/ratelimit says so by HTTP only.
func (s *server) ping() (string, error) {
	if s.peer.name == ratelimit {
		_, err := getText("http://" + s.addr + "/healthcheck")
		return "PONG", err
	}
	return ask(s.addr, "PING")
}

// stop ends the process, waits for that, and removes its files.
func (s *server) stop() {
	s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.exited:
	case <-time.After(5 * time.Second):
		s.kill()
	}
	os.RemoveAll(s.dir)
}

// kill ends the process as a crash does, and leaves its files.
func (s *server) kill() {
	s.cmd.Process.Kill()
	<-s.exited
}

func (s *server) pid() int { return s.cmd.Process.Pid }

func (s *server) logPath() string { return filepath.Join(s.dir, "log") }

// lastLog is the end of what the server wrote.
func (s *server) lastLog() string {
	log, _ := os.ReadFile(s.logPath())
	if len(log) == 0 {
		return ""
	}
	return "\n" + string(bytes.TrimSpace(log[max(0, len(log)-1000):]))
}

// plainEnvironment is without what would change the settings of a server or of the Go runtime.
func plainEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		for _, prefix := range []string{"CELLD_", "THROTTLECRAB_", "GOGC=", "GOMEMLIMIT=", "GOMAXPROCS=", "GODEBUG="} {
			if strings.HasPrefix(entry, prefix) {
				return true
			}
		}
		return false
	})
}

// freePorts are two that the kernel chose. redis-server and throttlecrab do not choose one themselves.
func freePorts() (one, two int, err error) {
	var ports [2]int
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return 0, 0, err
		}
		defer l.Close()
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports[0], ports[1], nil
}
