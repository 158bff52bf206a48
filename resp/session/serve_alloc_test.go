//go:build !race

// With the race detector, a sync.Pool drops one in four at random.

package session

import (
	"fmt"
	"testing"

	"celld/resp/session/sessiontest"
)

// A decision about a key that is there allocates nothing, from the first byte of the request to the last of the reply. One that is denied
// for the first time, or drawn for CL.TOP, has taken a place among its keys before.
func TestServeAllocatesNothing(t *testing.T) {
	for _, burst := range []string{"15", "1000000"} {
		for _, limits := range []int{1, 2, 5, 8} {
			s, _, pipelines := benchSession(t, 512, 512, func(key string, i int) string {
				return sessiontest.Frame("CL.THROTTLE", key, burst, "30", "60", fmt.Sprint(1+i%limits))
			})
			for range 1000 { // of 512 keys, 8 are drawn each time
				s.Serve(pipelines[0])
			}
			if n := testing.AllocsPerRun(100, func() { s.Serve(pipelines[0]) }); n != 0 {
				t.Errorf("%d limits of burst %s: %v allocations for 512 decisions", limits, burst, n)
			}
		}
	}
}
