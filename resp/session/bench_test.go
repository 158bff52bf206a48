package session

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"celld/persistence"
	"celld/resp/clock"
	"celld/resp/config"
	"celld/resp/door"
	"celld/resp/loglimit"
	"celld/resp/script"
	"celld/resp/session/sessiontest"
	"celld/resp/stats"
	"celld/store/memory"
)

// sink is a transport whose peer takes everything at once.
type sink struct{ bytes int }

func (d *sink) Send(p []byte) int { d.bytes += len(p); return 0 }
func (d *sink) Close(bool)        {}
func (d *sink) Hold() func()      { return func() {} }
func (d *sink) Wake()             {}
func (d *sink) Pause(bool)        {}
func (d *sink) ServeOthers(bool)  {}
func (d *sink) Resume()           {}
func (d *sink) RoundNS() int64    { return 0 }

// realService is a service on the real clock, without files and a log.
func realService(keys *memory.Store) *Service {
	cfg, now := config.New(config.Part{Rows: config.Scripts}), clock.New().NowNS
	files, log := cfg.Persistence(), slog.New(slog.DiscardHandler)
	files.Clock, files.Log = now, log
	return New(Parts{Parts: door.Parts{Config: cfg, Clock: now, Log: loglimit.New(log, now), Store: keys,
		Persist: persistence.New(keys, files), Stats: stats.NewServer()}, Scripts: sessiontest.Scripts})
}

// benchSession is a session on the real clock whose pipelines of the given depth go round all the keys.
func benchSession(tb testing.TB, depth, keys int, call func(key string, i int) string) (s *Session, d *sink, pipelines [][]byte) {
	d = &sink{}
	srv := realService(memory.New(memory.Options{}))
	s, _ = srv.NewSession(sessiontest.RemoteAddr, sessiontest.LocalAddr)
	s.Open(d, -1)
	for k := 0; k < keys; {
		var b strings.Builder
		for range depth {
			b.WriteString(call(fmt.Sprintf("key:%012d", k%keys), k))
			k++
		}
		pipelines = append(pipelines, []byte(b.String()))
	}
	for _, p := range pipelines {
		serveAll(s, p)
	}
	if n := srv.Store.Len(srv.Clock()); n != keys {
		tb.Fatalf("%d keys of %d", n, keys)
	}
	return s, d, pipelines
}

// serveAll serves data in as many turns as it takes.
func serveAll(s *Session, data []byte) {
	for more := s.Serve(data); more; more = s.Serve(nil) { //nolint:revive // Serve does it all
	}
}

// BenchmarkServe is the cost of one decision from request bytes to reply bytes, without the kernel: by the depth of the
// pipeline, and by how many limits take turns.
func BenchmarkServe(b *testing.B) {
	for _, depth := range []int{1, 16, 128} {
		for _, limits := range []int{1, 2, 5, 8} {
			b.Run(fmt.Sprintf("P=%d/limits=%d", depth, limits), func(b *testing.B) {
				benchServe(b, depth, func(key string, i int) string {
					return sessiontest.Frame("CL.THROTTLE", key, "15", "30", "60", fmt.Sprint(1+i%limits))
				})
			})
		}
		b.Run(fmt.Sprintf("P=%d/limits=2,mixed", depth), func(b *testing.B) {
			random := rand.New(rand.NewPCG(1, 2))
			benchServe(b, depth, func(key string, _ int) string {
				return sessiontest.Frame("CL.THROTTLE", key, "15", "30", "60", fmt.Sprint(1+random.IntN(2)))
			})
		})
	}
}

// BenchmarkServeTake is BenchmarkServe with CL.TAKE.
func BenchmarkServeTake(b *testing.B) {
	for _, depth := range []int{1, 16} {
		for _, limits := range []int{1, 5, 8} {
			b.Run(fmt.Sprintf("P=%d/limits=%d", depth, limits), func(b *testing.B) {
				benchServe(b, depth, func(key string, i int) string {
					return sessiontest.Frame("CL.TAKE", key, fmt.Sprintf("%d/1m", 100+i%limits))
				})
			})
		}
	}
}

// BenchmarkServePass is BenchmarkServe with calls that all pass: its own are denied except the first.
func BenchmarkServePass(b *testing.B) {
	for _, depth := range []int{1, 16, 128} {
		b.Run(fmt.Sprintf("throttle/P=%d", depth), func(b *testing.B) {
			benchServe(b, depth, func(key string, _ int) string { return sessiontest.Frame("CL.THROTTLE", key, "1000000000", "10", "1") })
		})
		b.Run(fmt.Sprintf("take/P=%d", depth), func(b *testing.B) {
			benchServe(b, depth, func(key string, _ int) string { return sessiontest.Frame("CL.TAKE", key, "10/1s,burst=1000000000") })
		})
	}
}

// benchServe measures calls on a session that was sent the frames of first before.
func benchServe(b *testing.B, depth int, call func(key string, i int) string, first ...string) {
	s, d, pipelines := benchSession(b, depth, 1024, call)
	for _, f := range first {
		s.Serve([]byte(f))
	}
	measure(b, s, d, pipelines, depth, "*5\r\n:0\r\n:1\r\n:0\r\n:1\r\n:1\r\n")
}

// measure serves pipelines, whose replies are as long as the shortest or longer.
func measure(b *testing.B, s *Session, d *sink, pipelines [][]byte, depth int, shortest string) {
	b.ReportAllocs()
	before := d.bytes
	for i := 0; b.Loop(); i++ {
		s.Serve(pipelines[i%len(pipelines)])
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*depth), "ns/decision")
	if least := b.N * depth * len(shortest); d.bytes-before < least {
		b.Fatalf("%d bytes of replies, at least %d expected", d.bytes-before, least)
	}
}

// BenchmarkServeCount is BenchmarkServe with INCR, and with INCREX, most of which a bound denies.
func BenchmarkServeCount(b *testing.B) {
	for _, depth := range []int{1, 16, 128} {
		for _, words := range [][]string{{"INCR"}, {"INCREX", "UBOUND", "100", "EX", "60", "ENX"}} {
			b.Run(fmt.Sprintf("%s/P=%d", words[0], depth), func(b *testing.B) {
				s, d, pipelines := benchSession(b, depth, 1024, func(key string, _ int) string {
					return sessiontest.Frame(slices.Insert(slices.Clone(words), 1, key)...)
				})
				measure(b, s, d, pipelines, depth, ":1\r\n")
			})
		}
	}
}

// The scripts of libraries that count, in their commands and their order: what rate-limit-redis and limits send.
const (
	throttleScript  = "return redis.call('CL.THROTTLE', KEYS[1], ARGV[1], ARGV[2], ARGV[3])"
	countScript     = "local n = redis.call('INCR', KEYS[1]); local ms = redis.call('PTTL', KEYS[1]); if ms <= 0 or ARGV[1] == '1' then redis.call('PEXPIRE', KEYS[1], tonumber(ARGV[2])); ms = tonumber(ARGV[2]) end; return {n, ms}"
	incrementScript = "local amount = tonumber(ARGV[1]); local now = redis.call('incrby', KEYS[1], amount); if tonumber(now) == amount then redis.call('expire', KEYS[1], ARGV[2]) end; return now"
)

// BenchmarkServeScript is the cost of a decision through a script: the wrapper that most people have, and those of libraries that count.
func BenchmarkServeScript(b *testing.B) {
	for name, call := range map[string]struct {
		text string
		args []string
	}{
		"throttle":  {throttleScript, []string{"15", "30", "60"}},
		"count":     {countScript, []string{"0", "60000"}},
		"restart":   {countScript, []string{"1", "60000"}}, // three commands each time
		"increment": {incrementScript, []string{"1", "60"}},
	} {
		b.Run(name, func(b *testing.B) {
			d := &sink{}
			s, _ := realService(memory.New(memory.Options{})).NewSession(sessiontest.RemoteAddr, sessiontest.LocalAddr)
			s.Open(d, -1)
			s.Serve([]byte(sessiontest.Frame("SCRIPT", "LOAD", call.text)))
			var pipeline strings.Builder
			for i := range 16 {
				words := append([]string{"EVALSHA", script.SHA1([]byte(call.text)), "1", fmt.Sprint("key:", i)}, call.args...)
				pipeline.WriteString(sessiontest.Frame(words...))
			}
			measure(b, s, d, [][]byte{[]byte(pipeline.String())}, 16, ":1\r\n")
		})
	}
}

// BenchmarkServeUnkept is the cost of calls of which no shape is kept: with leases, of several keys, in scripts.
func BenchmarkServeUnkept(b *testing.B) {
	const text = "return redis.call('CL.TAKE', KEYS[1], ARGV[1])"
	for name, call := range map[string]func(i int) string{
		"lease": func(i int) string {
			return sessiontest.Frame("CL.TAKE", fmt.Sprint("key:", i), "100000/1s", "LEASE", "1", "ID", "a")
		},
		"mtake": func(i int) string {
			return sessiontest.Frame("CL.MTAKE", "2", fmt.Sprint("key:", i), "100/1m", fmt.Sprint("l:", i), "1000/1h,burst=5")
		},
		"script": func(i int) string {
			return sessiontest.Frame("EVALSHA", script.SHA1([]byte(text)), "1", fmt.Sprint("key:", i), "100/1m")
		},
		"give": func(i int) string { return sessiontest.Frame("CL.GIVE", fmt.Sprint("key:", i), "100/1m", "1") },
	} {
		b.Run(name, func(b *testing.B) {
			d := &sink{}
			srv := realService(memory.New(memory.Options{}))
			s, _ := srv.NewSession(sessiontest.RemoteAddr, sessiontest.LocalAddr)
			s.Open(d, -1)
			s.Serve([]byte(sessiontest.Frame("SCRIPT", "LOAD", text)))
			var calls strings.Builder
			for i := range 16 {
				calls.WriteString(call(i))
			}
			pipeline := []byte(calls.String())
			b.ReportAllocs()
			before := d.bytes
			for b.Loop() {
				s.Serve(pipeline)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*16), "ns/decision")
			if least := b.N * 16 * len(":0\r\n"); d.bytes-before < least {
				b.Fatalf("%d bytes of replies, at least %d expected", d.bytes-before, least)
			}
		})
	}
}
