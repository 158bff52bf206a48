//go:build linux

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// rateLimits are calls of Envoy's rate limit service by gRPC, by one connection: on each of its streams the next when one is answered.
// Beside celld, envoyproxy/ratelimit gets the same calls. It counts on a Redis, so what that takes is its own.
type rateLimits struct{ streams, values, requests int }

var envoyRows = []row{
	{name: "envoy-1", title: "ShouldRateLimit, 1 stream, 1,000 values", work: rateLimits{1, 1000, 40_000}},
	{name: "envoy-50", title: "ShouldRateLimit, 50 streams, 1,000 values", work: rateLimits{50, 1000, 200_000}},
}

var envoyGoals = []goal{
	{row: "envoy-1", metric: cpuMicroseconds, peer: ratelimit, atMost: 0.333},
	{row: "envoy-50", metric: cpuMicroseconds, peer: ratelimit, atMost: 0.333},
}

const ratelimit = "ratelimit"

// ratelimitPeer gets its settings by the environment. Without statistics it costs least; all else about speed is its default.
func ratelimitPeer() *peer {
	return &peer{
		name: ratelimit, title: "envoyproxy/ratelimit + redis-server", command: "ShouldRateLimit",
		args: func(t *tools, s *server) []string {
			return []string{"env", "-i", "USE_STATSD=false", "DISABLE_STATS=true", "LOG_LEVEL=error",
				"HOST=127.0.0.1", "PORT=" + strconv.Itoa(s.port), "GRPC_HOST=127.0.0.1", "GRPC_PORT=" + strconv.Itoa(s.otherPort),
				"DEBUG_HOST=127.0.0.1", "DEBUG_PORT=0", "REDIS_SOCKET_TYPE=tcp", "REDIS_URL=" + s.room.engine.addr,
				"RUNTIME_ROOT=" + s.dir, "RUNTIME_APPDIRECTORY=" + limitsDir, "RUNTIME_WATCH_ROOT=false", t.ratelimit}
		},
		missing: func(t *tools) string {
			if _, err := os.Stat(t.ratelimit); err != nil {
				return "no envoyproxy/ratelimit (make ratelimit builds it)"
			}
			return missingRedis(t)
		},
		version: func(t *tools) string {
			return firstMatch(`mod\s+\S+\s+(\S+)`, "go", "version", "-m", t.ratelimit) + ", redis-server " + t.redisVersion()
		},
	}
}

// limitsDir is where a server finds limits as envoyproxy/ratelimit has them.
const limitsDir = "config"

const envoyLimits = `domain: bench
descriptors:
  - key: path
    value: /api
    descriptors:
      - key: client
        rate_limit: {unit: minute, requests_per_unit: 1000000}
`

func writeEnvoyLimits(s *server) error {
	dir := filepath.Join(s.dir, limitsDir)
	return errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "limits.yaml"), []byte(envoyLimits), 0o600))
}

func (w rateLimits) fits(p *peer) bool { return p.isCelld() || p.name == ratelimit }

func (w rateLimits) quick() work {
	w.requests /= 10
	return w
}

func (w rateLimits) seconds(*peer) float64 {
	return 3 + float64(w.requests+10*w.values)/map[bool]float64{true: 5e3, false: 15e3}[w.streams == 1]
}

func (w rateLimits) run(b *bench, p *peer) (sample, error) {
	var all processes
	defer func() { all.stop() }()
	needs := room{envoy: true}
	if p.name == ratelimit {
		redis, err := b.start(redisPeer("redis", "redis-server", ""), room{})
		if err != nil {
			return nil, err
		}
		all, needs.engine = processes{redis}, redis
	}
	s, err := b.start(p, needs)
	if err != nil {
		return nil, err
	}
	all = append(all, s)
	b.sleep(time.Second)
	_, fresh, err := all.used()
	if err != nil {
		return nil, err
	}
	// Fixed windows: gRPC's Go client would send pings to measure the bandwidth, which Envoy does not.
	conn, err := grpc.NewClient(s.otherAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStaticStreamWindowSize(64<<10), grpc.WithStaticConnWindowSize(64<<10),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(asBytes{}), grpc.WaitForReady(true)))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(b.ctx, 5*time.Minute) // so that calls have a deadline, as Envoy's have
	defer cancel()
	if _, err := w.ask(ctx, conn, 10*w.values); err != nil { // every count is there
		return nil, fmt.Errorf("%w%s", err, s.lastLog())
	}
	before, _, err := all.used()
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	taken, err := w.ask(ctx, conn, w.requests)
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, s.lastLog())
	}
	took, n := time.Since(begun), float64(len(taken))
	after, rss, err := all.used()
	if err != nil {
		return nil, err
	}
	if keys, err := all[0].keys(); err != nil || keys == 0 {
		return nil, fmt.Errorf("there are %d keys: %v", keys, err)
	}
	result := sample{
		perSecond: n / took.Seconds(), p50: milliseconds(taken.permille(500)), p99: milliseconds(taken.permille(990)),
		p999: milliseconds(taken.permille(999)), rssMB: rss, freshMB: fresh,
	}
	for i := range all {
		result[cpuMicroseconds] += after[i].since(before[i]).Seconds() * 1e6 / n
	}
	return result, nil
}

// ask sends requests about random values and returns how long the answers took.
func (w rateLimits) ask(ctx context.Context, conn *grpc.ClientConn, requests int) (latencies, error) {
	const method = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
	of, each := make([][]byte, w.values), requests/w.streams
	for i := range of {
		of[i] = rateLimitRequest(fmt.Sprintf("key:%012d", i))
	}
	taken, errs := make(latencies, w.streams*each), make([]error, w.streams)
	var all sync.WaitGroup
	for i := range w.streams {
		all.Go(func() {
			for j := 0; j < each && errs[i] == nil; j++ {
				var reply []byte
				begun := time.Now()
				errs[i] = conn.Invoke(ctx, method, of[rand.IntN(w.values)], &reply)
				taken[i*each+j] = time.Since(begun)
				if errs[i] == nil && !(bytes.HasPrefix(reply, passes) && bytes.Contains(reply, aMillionAMinute)) {
					errs[i] = fmt.Errorf("an answer is %x", reply)
				}
			}
		})
	}
	all.Wait()
	slices.Sort(taken)
	return taken, cmp.Or(errs...)
}

// rateLimitRequest is a RateLimitRequest of one descriptor with two entries.
func rateLimitRequest(value string) []byte {
	field := func(b []byte, number protowire.Number, inner []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), inner)
	}
	entry := func(key, value string) []byte { return field(field(nil, 1, []byte(key)), 2, []byte(value)) }
	return field(field(nil, 1, []byte("bench")), 2, field(field(nil, 1, entry("path", "/api")), 1, entry("client", value)))
}

// What an answer begins with, and what it has of a limit: so it is known that the limit was found.
var (
	passes          = []byte{1 << 3, 1}
	aMillionAMinute = append(protowire.AppendVarint([]byte{1 << 3}, 1_000_000), 2<<3, 2)
)

// asBytes is the codec of messages that are bytes already, so that the client takes little from the server.
type asBytes struct{}

func (asBytes) Marshal(from any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(from.([]byte))}, nil
}

func (asBytes) Unmarshal(data mem.BufferSlice, into any) error {
	*into.(*[]byte) = data.Materialize()
	return nil
}

func (asBytes) Name() string { return "" } // the content type is application/grpc, as Envoy's

// processes are those that decide together, first the one that counts.
type processes []*server

// used is the CPU time of each, and the memory of all in MB.
func (all processes) used() (cpu []cpuClock, mb float64, err error) {
	for _, s := range all {
		clock, err1 := readCPU(s.pid())
		rss, err2 := readRSS(s.pid())
		cpu, mb, err = append(cpu, clock), mb+float64(rss)/1e6, errors.Join(err, err1, err2)
	}
	return cpu, mb, err
}

func (all processes) stop() {
	for _, s := range slices.Backward(all) {
		s.stop()
	}
}
