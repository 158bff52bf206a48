package resp

import (
	"fmt"
	"strings"
	"testing"

	"celld/resp/script"
	"celld/store"
)

// discard is a transport whose peer takes everything at once.
type discard struct{ bytes int }

func (d *discard) Send(p []byte) int { d.bytes += len(p); return 0 }
func (d *discard) Close(bool)        {}
func (d *discard) Wake()             {}
func (d *discard) Pause(bool)        {}
func (d *discard) Meanwhile(bool)    {}
func (d *discard) Resume()           {}

// benchSession is a session on the real clock whose pipelines of the given depth go round all the keys.
func benchSession(tb testing.TB, depth, keys int, quantity func(i int) string) (s *Session, d *discard, pipelines [][]byte) {
	d = &discard{}
	srv := NewServer(Options{Config: NewConfig(), Store: store.New(store.Options{})})
	s, _ = srv.NewSession(d, Peer{Remote: remoteAddr, Local: localAddr})
	s.Open(-1)
	for k := 0; k < keys; {
		var b strings.Builder
		for range depth {
			b.WriteString(frame("CL.THROTTLE", fmt.Sprintf("key:%012d", k%keys), "15", "30", "60", quantity(k)))
			k++
		}
		pipelines = append(pipelines, []byte(b.String()))
	}
	for _, p := range pipelines {
		s.Serve(p)
	}
	if n := srv.store.Len(srv.clock()); n != keys {
		tb.Fatalf("%d keys of %d", n, keys)
	}
	return s, d, pipelines
}

// BenchmarkServe is the cost of one decision from request bytes to reply bytes, without the kernel: by the depth of the
// pipeline, and with calls that are alike or differ in their quantity.
func BenchmarkServe(b *testing.B) {
	for _, depth := range []int{1, 16, 128} {
		for name, quantity := range map[string]func(int) string{
			"alike": func(int) string { return "1" },
			"mixed": func(i int) string { return fmt.Sprint(1 + i%2) },
		} {
			b.Run(fmt.Sprintf("P=%d/%s", depth, name), func(b *testing.B) {
				s, d, pipelines := benchSession(b, depth, 1024, quantity)
				b.ReportAllocs()
				before := d.bytes
				for i := 0; b.Loop(); i++ {
					s.Serve(pipelines[i%len(pipelines)])
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*depth), "ns/decision")
				if least := b.N * depth * len("*5\r\n:0\r\n:1\r\n:0\r\n:1\r\n:1\r\n"); d.bytes-before < least {
					b.Fatalf("%d bytes of replies, at least %d expected", d.bytes-before, least)
				}
			})
		}
	}
}

// A decision about a key that is there allocates nothing, from the first byte of the request to the last of the reply.
func TestServeAllocatesNothing(t *testing.T) {
	for name, quantity := range map[string]func(int) string{
		"alike": func(int) string { return "1" },
		"mixed": func(i int) string { return fmt.Sprint(1 + i%2) },
	} {
		// The pool of scratches may drop one, and does so at random under the race detector; that is a few allocations
		// a batch at most.
		const decisions = 512
		s, _, pipelines := benchSession(t, decisions, decisions, quantity)
		if n := testing.AllocsPerRun(100, func() { s.Serve(pipelines[0]) }); n > decisions/16 {
			t.Errorf("%s: %v allocations for %d decisions", name, n, decisions)
		}
	}
}

// BenchmarkServeScript is the cost of a decision through the wrapper that most people have.
func BenchmarkServeScript(b *testing.B) {
	d := &discard{}
	srv := NewServer(Options{Config: NewConfig(), Store: store.New(store.Options{})})
	s, _ := srv.NewSession(d, Peer{Remote: remoteAddr, Local: localAddr})
	s.Open(-1)
	const text = "return redis.call('CL.THROTTLE', KEYS[1], ARGV[1], ARGV[2], ARGV[3])"
	s.Serve([]byte(frame("SCRIPT", "LOAD", text)))
	var call strings.Builder
	for i := range 16 {
		call.WriteString(frame("EVALSHA", script.SHA1([]byte(text)), "1", fmt.Sprint("key:", i), "15", "30", "60"))
	}
	pipeline := []byte(call.String())
	b.ReportAllocs()
	before := d.bytes
	for b.Loop() {
		s.Serve(pipeline)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*16), "ns/decision")
	if least := b.N * 16 * len("*5\r\n:0\r\n:1\r\n:0\r\n:1\r\n:1\r\n"); d.bytes-before < least {
		b.Fatalf("%d bytes of replies, at least %d expected", d.bytes-before, least)
	}
}
