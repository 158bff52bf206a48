package session

import (
	"fmt"
	"testing"

	"celld/resp/session/sessiontest"
)

// BenchmarkServeUser is BenchmarkServe for a user whose commands are checked one by one.
func BenchmarkServeUser(b *testing.B) {
	for _, depth := range []int{1, 16, 128} {
		b.Run(fmt.Sprintf("P=%d", depth), func(b *testing.B) {
			benchServe(b, depth, func(key string, _ int) string { return sessiontest.Frame("CL.THROTTLE", key, "15", "30", "60", "1") },
				sessiontest.Frame("ACL", "SETUSER", "app", "on", "nopass", "~key:*", "+cl.throttle"), sessiontest.Frame("AUTH", "app", "x"))
		})
	}
}
