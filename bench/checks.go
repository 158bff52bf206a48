//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"time"
)

// checks are requests to /check by HTTP, as a proxy sends them, or to /v1/take: each connection the next when one is answered. Beside
// celld, a server of Go's net/http gets the same requests, and answers 200 to all: what HTTP itself costs.
type checks struct {
	connections, keys, requests int
	policy                      string // the limit
	status                      int    // of nearly all of celld's answers
	json                        bool   // they are to /v1/take
}

var checkRows = []row{
	{name: "check-pass", title: "HTTP, 50 connections, 1,000 keys, all pass", work: checks{50, 1000, 400_000, "1/1m,burst=1000000", 200, false}},
	{name: "check-limited", title: "HTTP, 50 connections, 1,000 keys, limited", work: checks{50, 1000, 400_000, "1/1h", 429, false}},
	{name: "check-json", title: "JSON, 50 connections, 1,000 keys, all pass", work: checks{50, 1000, 400_000, "1/1m,burst=1000000", 200, true}},
	{name: "check-json-limited", title: "JSON, 50 connections, 1,000 keys, limited", work: checks{50, 1000, 400_000, "1/1h", 429, true}},
	{name: "scraped-p16", title: "P=16, 50 connections, 1,000 keys, /metrics each second", work: drive{clients: 50, pipeline: 16, keys: 1000, requests: 3_200_000, scraped: true}},
}

var checkGoals = []goal{
	{row: "check-pass", metric: cpuMicroseconds, peer: netHTTP, atMost: 2},
	{row: "check-limited", metric: cpuMicroseconds, peer: netHTTP, atMost: 2},
	{row: "check-json", metric: cpuMicroseconds, peer: "celld", in: "check-pass", atMost: 1.2},
	{row: "check-json-limited", metric: cpuMicroseconds, peer: "celld", in: "check-limited", atMost: 1.2},
	{row: "scraped-p16", metric: cpuMicroseconds, peer: "celld", in: "p16-1k", atMost: 1.05}, // noise
}

// netHTTP is the peer, and the argument that makes this program that server.
const netHTTP = "net-http"

func netHTTPPeer() *peer {
	return &peer{
		name: netHTTP, title: "net/http alone", command: "/check",
		args: func(_ *tools, s *server) []string {
			return []string{"/proc/self/exe", netHTTP, s.addr, s.otherAddr()}
		},
		missing: func(*tools) string { return "" },
		version: func(*tools) string { return runtime.Version() },
	}
}

// netHTTPMain serves HTTP, and PONG to who looks whether it is there.
func netHTTPMain(addr, otherAddr string) error {
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	web, err := net.Listen("tcp", otherAddr)
	if err != nil {
		return err
	}
	pings, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	go func() {
		for {
			conn, err := pings.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "+PONG\r\n")
			_, _ = conn.Read(make([]byte, 64))
			conn.Close()
		}
	}()
	return http.Serve(web, nil)
}

// otherAddr is that of the server's other port.
func (s *server) otherAddr() string { return fmt.Sprintf("127.0.0.1:%d", s.otherPort) }

// httpArgs are celld's flags about HTTP, and about gRPC.
func httpArgs(s *server) []string {
	switch {
	case s.room.policy != "":
		return []string{"--http-bind", s.otherAddr(), "--policies", filepath.Join(s.dir, policyFile)}
	case s.room.envoy:
		return []string{"--envoy-bind", s.otherAddr(), "--envoy-config", filepath.Join(s.dir, limitsDir)}
	case s.room.scraped:
		return []string{"--http-bind", s.otherAddr()}
	}
	return nil
}

const policyFile = "policies"

func (w checks) fits(p *peer) bool { return p.isCelld() || p.name == netHTTP }

func (w checks) quick() work {
	w.requests /= 10
	return w
}

func (w checks) seconds(*peer) float64 { return 1 + float64(w.requests)/40e3 }

func (w checks) run(b *bench, p *peer) (sample, error) {
	s, err := b.start(p, room{policy: w.policy})
	if err != nil {
		return nil, err
	}
	defer s.stop()
	if _, err := w.ask(s, 10*w.keys); err != nil { // every key is there, and used up where it can be
		return nil, err
	}
	before, err := readCPU(s.pid())
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	taken, err := w.ask(s, w.requests)
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, s.lastLog())
	}
	took := time.Since(begun)
	after, err := readCPU(s.pid())
	if err != nil {
		return nil, err
	}
	rss, err := readRSS(s.pid())
	if err != nil {
		return nil, err
	}
	right := 0
	for _, a := range taken {
		if a.status == w.status || p.name == netHTTP && a.status == 200 {
			right++
		}
	}
	if right < w.requests*99/100 {
		return nil, fmt.Errorf("%d of %d answers are %d", right, w.requests, w.status)
	}
	times := make(latencies, len(taken))
	for i, a := range taken {
		times[i] = a.took
	}
	slices.Sort(times)
	return sample{
		cpuMicroseconds: float64(after.since(before).Nanoseconds()) / 1e3 / float64(len(taken)),
		perSecond:       float64(len(taken)) / took.Seconds(),
		p50:             milliseconds(times.permille(500)), p99: milliseconds(times.permille(990)), p999: milliseconds(times.permille(999)),
		rssMB: float64(rss) / 1e6,
	}, nil
}

// answer is one to a request.
type answer struct {
	status int
	took   time.Duration
}

// ask sends requests about random keys.
func (w checks) ask(s *server, requests int) (all []answer, err error) {
	type part struct {
		answers []answer
		err     error
	}
	parts := make(chan part)
	for range w.connections {
		go func() {
			answers, err := w.askOne(s, requests/w.connections)
			parts <- part{answers, err}
		}()
	}
	for range w.connections {
		p := <-parts
		all, err = append(all, p.answers...), errors.Join(err, p.err)
	}
	return all, err
}

// askOne does so by one connection.
func (w checks) askOne(s *server, requests int) ([]answer, error) {
	conn, err := net.Dial("tcp", s.otherAddr())
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	head, tail := "GET /check/api/by/x-real-ip HTTP/1.1\r\nHost: celld\r\nX-Real-IP: key:", "\r\n\r\n"
	if w.json {
		tail = `","limits":["@api"]}`
		head = "POST /v1/take?status=429 HTTP/1.1\r\nHost: celld\r\nContent-Type: application/json\r\nContent-Length: " +
			strconv.Itoa(len(`{"key":"key:`)+12+len(tail)) + "\r\n\r\n" + `{"key":"key:`
	}
	in, request, answers := bufio.NewReader(conn), []byte(head), make([]answer, 0, requests)
	for range requests {
		request = strconv.AppendInt(request[:len(head)], 100_000_000_000+int64(rand.IntN(w.keys)), 10)
		request = append(request, tail...)
		begun := time.Now()
		if _, err := conn.Write(request); err != nil {
			return nil, err
		}
		reply, err := http.ReadResponse(in, nil)
		if err != nil {
			return nil, err
		}
		if _, err := io.Copy(io.Discard, reply.Body); err != nil {
			return nil, err
		}
		answers = append(answers, answer{reply.StatusCode, time.Since(begun)})
	}
	return answers, nil
}

// scrape reads the metrics each second, at once first, until the function that it returns is called. That says what went wrong.
func (s *server) scrape() (stop func() error) {
	stopping, stopped := make(chan struct{}), make(chan error)
	go func() {
		for tick := time.Tick(time.Second); ; {
			_, err := getText("http://" + s.otherAddr() + "/metrics")
			select {
			case <-stopping:
				stopped <- err
				return
			case <-tick:
			}
		}
	}()
	return func() error { close(stopping); return <-stopped }
}

func writePolicy(s *server) error {
	return os.WriteFile(filepath.Join(s.dir, policyFile), []byte("api "+s.room.policy+"\n"), 0o600)
}
