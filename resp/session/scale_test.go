package session

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"celld/resp/session/sessiontest"
	"celld/store/memory"
)

// BenchmarkScale shows what a second core brings, from request bytes to reply bytes without the kernel: one session, two of one
// server, and two that have a server each, of half of the keys: the ceiling. The time is the wall time of a command. The rows are
// called as in package store.
func BenchmarkScale(b *testing.B) {
	for _, depth := range []int{1, 16, 128} {
		for _, keys := range []int{1_000, 1_000_000} {
			for _, mix := range []struct{ name, burst string }{{"denied", "0"}, {"pass", "1000000"}} {
				for _, c := range []struct {
					name              string
					sessions, servers int
				}{{"one", 1, 1}, {"two", 2, 1}, {"ceiling", 2, 2}} {
					b.Run(fmt.Sprintf("P=%d/keys=%d/%s/%s", depth, keys, mix.name, c.name), func(b *testing.B) {
						benchScale(b, depth, keys, mix.burst, c.sessions, c.servers)
					})
				}
			}
		}
	}
}

func benchScale(b *testing.B, depth, keys int, burst string, sessions, servers int) {
	var all []*Session
	var to []*sink
	var stores []*memory.Store
	var pipelines [][]byte // of all keys that a server has
	for k := 0; k < keys/servers; {
		var p strings.Builder
		for range depth { // the last one begins anew, so that all are of one length
			p.WriteString(sessiontest.Frame("CL.THROTTLE", fmt.Sprintf("key:%012d", k*7919%(keys/servers)), burst, "1", "3600"))
			k++
		}
		pipelines = append(pipelines, []byte(p.String()))
	}
	for range servers {
		stores = append(stores, memory.New(memory.Options{MaxKeys: 2_000_000}))
		srv := realService(stores[len(stores)-1])
		for range sessions / servers {
			d := &sink{}
			s, _ := srv.NewSession(sessiontest.RemoteAddr, sessiontest.LocalAddr)
			s.Open(d, -1)
			all, to = append(all, s), append(to, d)
		}
		for range 2 {
			for _, p := range pipelines {
				all[len(all)-1].Serve(p)
			}
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	for i, s := range all {
		wg.Go(func() {
			for n, left := i*len(pipelines)/2, b.N/sessions; left > 0; n, left = n+1, left-depth {
				s.Serve(pipelines[n%len(pipelines)])
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	for _, d := range to {
		if d.bytes < b.N/sessions*len("*5\r\n:0\r\n:1\r\n:0\r\n:1\r\n:1\r\n") {
			b.Fatalf("%d bytes of replies", d.bytes)
		}
	}
	var st memory.Stats
	for _, s := range stores {
		of := s.Stats(time.Now().UnixNano())
		st.Hits, st.Misses = st.Hits+of.Hits, st.Misses+of.Misses
	}
	if whole := keys / servers * servers; st.Misses != int64(whole) || st.Hits < int64(whole+b.N/sessions*sessions) {
		b.Fatalf("%d hits and %d misses of %d calls", st.Hits, st.Misses, b.N)
	}
}
