package resp

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// Each call of a pipeline is answered under its own limit, whatever the number of limits, also where they are more than forms
// are kept of.
func TestPipelinesOfManyLimits(t *testing.T) {
	w := newWorld(t)
	p := w.connect()
	for range 20 {
		var pipeline, want strings.Builder
		for range 1000 {
			limit, form := 1+rand.IntN(300), rand.IntN(3)
			switch form {
			case 0:
				pipeline.WriteString(frame("CL.THROTTLE", "k", fmt.Sprint(limit-1), "1", "60", "0"))
				fmt.Fprintf(&want, "*5\r\n:0\r\n:%d\r\n:%d\r\n:-1\r\n:0\r\n", limit, limit)
			case 1:
				pipeline.WriteString(frame("CL.TAKE", "t", fmt.Sprint(limit, "/1h"), "PEEK"))
				fmt.Fprintf(&want, "*7\r\n:0\r\n:%d\r\n:%d\r\n:-1\r\n:0\r\n:0\r\n:0\r\n", limit, limit)
			case 2:
				pipeline.WriteString("1\r\n")
				fmt.Fprintf(&want, "-ERR unknown command '1', with args beginning with: \r\n")
				pipeline.WriteString(frame("ECHO", fmt.Sprint(limit)))
				fmt.Fprintf(&want, "$%d\r\n%d\r\n", len(fmt.Sprint(limit)), limit)
			}
			if rand.IntN(3) > 0 { // some in a row
				n := rand.IntN(100)
				for i := range n {
					pipeline.WriteString(frame("CL.THROTTLE", "k", fmt.Sprint(limit+i), "1", "60", "0"))
					fmt.Fprintf(&want, "*5\r\n:0\r\n:%d\r\n:%d\r\n:-1\r\n:0\r\n", limit+i+1, limit+i+1)
				}
			}
		}
		if got := p.send(pipeline.String()); got != want.String() {
			i := 0
			for i < len(got) && got[i] == want.String()[i] {
				i++
			}
			t.Fatalf("at %d: %.80q, want %.80q", i, got[i:], want.String()[i:])
		}
	}
}
