package resp

import (
	"fmt"
	"testing"
)

// BenchmarkServeUser is BenchmarkServe for a user whose commands are checked one by one.
func BenchmarkServeUser(b *testing.B) {
	for _, depth := range []int{1, 16, 128} {
		b.Run(fmt.Sprintf("P=%d", depth), func(b *testing.B) {
			s, d, pipelines := benchSession(b, depth, 1024, func(key string, _ int) string { return frame("CL.THROTTLE", key, "15", "30", "60", "1") })
			s.Serve([]byte(frame("ACL", "SETUSER", "app", "on", "nopass", "~key:*", "+cl.throttle")))
			s.Serve([]byte(frame("AUTH", "app", "x")))
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
