package soak

import (
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	redigo "github.com/gomodule/redigo/redis"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

var soakFlag = flag.Duration("soak", 3*time.Second, "how long TestEverythingAtOnce lasts")

// soak is a server under all kinds of load at once, and what the clients have seen.
//
// The server listens on two addresses, on each with and without TLS. Connections to the second, the victims', may be killed at any
// time, which the client must take. On the first each reply has to come.
type soak struct {
	t       *testing.T
	srv     *harness.Server
	patient [2]string // without and with TLS
	victims [2]string
	trust   *tls.Config
	dials   atomic.Int64
	end     time.Time
	waits
	stay    []string // keys that exist throughout
	kills   atomic.Int64
	command [2]soakCount // CL.THROTTLE, CL.TAKE
	rounds  sync.Map     // of each actor
}

// soakCount counts calls of a command: those that were answered, and those that victims sent, who may not have got an answer.
type soakCount struct{ allowed, limited, unknown atomic.Int64 }

const (
	soakThrottle = iota
	soakTake
)

// TestEverythingAtOnce lets clients come and go, be killed, read slowly, close one half, watch, wait, hold leases, run scripts, change
// settings and policies, rename under SCAN and write files, with and without TLS, all at once. The server survives, answers whom it must,
// counts what the clients have seen, and restores its keys. No script is busy, however long a loaded machine takes for one. make soak runs
// it for longer.
func TestEverythingAtOnce(t *testing.T) {
	t.Parallel()
	for _, fsync := range []string{"everysec", "always"} {
		t.Run(fsync, func(t *testing.T) {
			t.Parallel()
			dir, port, tlsPort := t.TempDir(), harness.FreePort(t), harness.FreePort(t)
			ca := celldtest.NewAuthority(t)
			cert, key := ca.Sign("server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(127, 0, 0, 2)}})
			flags := []string{"--bind", "127.0.0.1 127.0.0.2", "--port", port, "--tls-port", tlsPort, "--tls-cert-file", cert,
				"--tls-key-file", key, "--tls-ca-cert-file", ca.File, "--tls-auth-clients", "no", "--io-threads", "2", "--dir", dir,
				"--appendonly", "yes", "--appendfsync", fsync, "--auto-aof-rewrite-min-size", "1mb", "--lua-time-limit", "0"}
			trust := &tls.Config{RootCAs: x509.NewCertPool()}
			trust.RootCAs.AppendCertsFromPEM([]byte(celldtest.ReadFile(t, ca.File)))
			s := &soak{
				t: t, srv: harness.StartStress(t, flags...), trust: trust,
				patient: [2]string{"127.0.0.1:" + port, "127.0.0.1:" + tlsPort},
				victims: [2]string{"127.0.0.2:" + port, "127.0.0.2:" + tlsPort},
			}
			began := time.Now()
			s.end = began.Add(*soakFlag)
			s.fill()
			s.run()
			s.checkWaits(time.Since(began))
			s.check()
			if t.Failed() {
				return
			}
			s.srv.Stop()
			s.srv = harness.StartStress(t, flags...)
			s.wantStay("after a restart")
		})
	}
}

func (s *soak) run() {
	var actors sync.WaitGroup
	for name, actor := range map[string]struct {
		act func(r *rand.Rand) error
		n   int
	}{
		"throttle": {s.throttle, 2}, "take": {s.take, 2}, "transaction": {s.transaction, 1}, "victim": {s.victim, 3}, "open": {s.open, 2},
		"kill": {s.kill, 1}, "half-close": {s.halfClose, 2}, "quit": {s.quit, 1}, "slow": {s.slowReader, 1}, "monitor": {s.monitor, 1},
		"settings": {s.settings, 1}, "rename": {s.rename, 1}, "scan": {s.scan, 1}, "policies": {s.policies, 1}, "files": {s.files, 1},
		"wait": {s.wait, 3}, "impatient": {s.impatient, 2}, "lease": {s.lease, 8}, "budget": {s.budget, 2}, "script": {s.script, 2},
	} {
		for i := range actor.n {
			rounds := new(atomic.Int64)
			s.rounds.Store(fmt.Sprint(name, i), rounds)
			actors.Go(func() {
				r := rand.New(rand.NewPCG(*celldtest.Seed, uint64(len(name)+i)))
				for time.Now().Before(s.end) && !s.t.Failed() {
					if err := actor.act(r); err != nil {
						s.t.Errorf("%s: %v", name, err)
						return
					}
					rounds.Add(1)
				}
			})
		}
	}
	report := time.NewTicker(time.Minute)
	defer report.Stop()
	done := make(chan struct{})
	go func() { actors.Wait(); close(done) }()
	for {
		select {
		case <-report.C:
			fmt.Printf("%s: %s left; rounds: %s\n", s.t.Name(), time.Until(s.end).Round(time.Second), s.progress())
		case <-done:
			return
		}
	}
}

func (s *soak) progress() string {
	var b strings.Builder
	s.rounds.Range(func(name, rounds any) bool {
		fmt.Fprintf(&b, "%s %d ", name, rounds.(*atomic.Int64).Load())
		return true
	})
	return b.String()
}

// connect opens a connection on which every reply has to come.
func (s *soak) connect() (redigo.Conn, error) {
	c, err := s.dial(s.patient)
	if err != nil {
		return nil, err
	}
	return redigo.NewConn(c, harness.ReplyTimeout, harness.ReplyTimeout), nil
}

// dial opens a connection to one of the addresses. Every third speaks TLS.
func (s *soak) dial(addrs [2]string) (net.Conn, error) {
	if s.dials.Add(1)%3 == 0 {
		return tls.Dial("tcp", addrs[1], s.trust)
	}
	return net.Dial("tcp", addrs[0])
}

func (s *soak) dialVictim() (net.Conn, error) { return s.dial(s.victims) }

// reset makes the connection's end a reset.
func reset(c net.Conn) {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	_ = c.(*net.TCPConn).SetLinger(0)
}

func (s *soak) do(command string, args ...any) (any, error) {
	c, err := s.connect()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Do(command, args...)
}

func (s *soak) fill() {
	c, err := s.connect()
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	for i := range 300 {
		key := fmt.Sprint("stay:", i)
		s.stay = append(s.stay, key)
		if _, err := c.Do("SET", key, "9000000000000000000"); err != nil {
			s.t.Fatal(err)
		}
	}
	for i := range 100 {
		if _, err := c.Do("SET", fmt.Sprint("rename:", i), "9000000000000000000"); err != nil {
			s.t.Fatal(err)
		}
	}
}

// check compares what INFO has counted with what was seen.
func (s *soak) check() {
	s.wantStay("after all")
	c := harness.Dial(s.t, s.srv.Addr)
	stats := harness.InfoSections(c.Do("INFO", "stats"))["Stats"]
	if n := stats["handler_panics"]; n != "0" {
		s.t.Errorf("%s panics", n)
	}
	for kind, name := range []string{"throttle", "take"} {
		count := &s.command[kind]
		seen := map[string]int64{"allowed": count.allowed.Load(), "limited": count.limited.Load()}
		unknown, total := count.unknown.Load(), int64(0)
		for what, least := range seen {
			field := name + "_" + what
			n, err := strconv.ParseInt(stats[field], 10, 64)
			if err != nil || n < least || n > least+unknown {
				s.t.Errorf("%s is %q, and clients saw %d, and %d calls without an answer", field, stats[field], least, unknown)
			}
			total += n - least
		}
		if total > unknown {
			s.t.Errorf("%s: %d calls more than were sent", name, total-unknown)
		}
		s.t.Logf("%s: %v seen, %d without an answer", name, seen, unknown)
	}
	s.t.Logf("%d connections, %d killed; rounds: %s", intOf(stats["total_connections_received"]), s.kills.Load(), s.progress())
}

func intOf(text string) int64 { n, _ := strconv.ParseInt(text, 10, 64); return n }

func (s *soak) wantStay(when string) {
	c := harness.Dial(s.t, s.srv.Addr)
	defer c.Close()
	if got := c.Do(append([]string{"EXISTS"}, s.stay...)...); got != fmt.Sprintf(":%d\r\n", len(s.stay)) {
		s.t.Errorf("%s, of %d keys %q are there", when, len(s.stay), got)
	}
}
