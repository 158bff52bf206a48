package session

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"celld/resp/command/argument"
	"celld/resp/session/sessiontest"
	"celld/store/policy"
)

// A pipeline goes by the limit that a policy has now, also when that was changed while it learned the call.
func TestAPolicyThatChangesBesideAPipeline(t *testing.T) {
	w := newWorld(t)
	p := w.connect()
	call := strings.Repeat(sessiontest.Frame("CL.TAKE", "k", "@p", "PEEK"), 2)
	set := func(count int) {
		limit, problem := argument.ParseLiteral(fmt.Append(nil, count, "/1h"), 1)
		if problem != "" {
			t.Error(problem)
		}
		if _, err := w.Store.SetPolicy("p", limit, policy.Options{}); err != nil {
			t.Error(err)
		}
	}
	set(1)
	for count := 2; count < 20_000; count++ {
		var other sync.WaitGroup
		other.Go(func() { set(count) })
		p.send(call)
		other.Wait()
		if got, want := p.send(call), fmt.Sprintf("*7\r\n:0\r\n:%d\r\n", count); !strings.HasPrefix(got, want) {
			t.Fatalf("%q, want %q", got, want)
		}
	}
}

// A pipeline goes by the log-max of now.
func TestAPipelineUnderAnotherLogMax(t *testing.T) {
	call := sessiontest.Frame("CL.TAKE", "k", "9/1m,algo=log", "PEEK")
	c := newWorld(t).connect()
	reply := c.send(call)
	refused := newWorld(t, "log-max", "8").connect().send(call)
	if !strings.HasPrefix(refused, "-") {
		t.Fatalf("%q", refused)
	}
	got := c.send(call + call + "CONFIG SET log-max 8\r\n" + call + call + "CONFIG SET log-max 9\r\n" + call)
	if got != reply+reply+"+OK\r\n"+refused+refused+"+OK\r\n"+reply {
		t.Errorf("%q", got)
	}
}

// Each call of a pipeline is answered under its own limit, whatever the number of limits, also where they are more than shapes
// are kept of.
func TestPipelinesOfManyLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.connect()
	for range 20 {
		var pipeline, want strings.Builder
		for range 1000 {
			limit, shape := 1+rand.IntN(300), rand.IntN(3)
			switch shape {
			case 0:
				pipeline.WriteString(sessiontest.Frame("CL.THROTTLE", "k", fmt.Sprint(limit-1), "1", "60", "0"))
				fmt.Fprintf(&want, "*5\r\n:0\r\n:%d\r\n:%d\r\n:-1\r\n:0\r\n", limit, limit)
			case 1:
				pipeline.WriteString(sessiontest.Frame("CL.TAKE", "t", fmt.Sprint(limit, "/1h"), "PEEK"))
				fmt.Fprintf(&want, "*7\r\n:0\r\n:%d\r\n:%d\r\n:-1\r\n:0\r\n:0\r\n:0\r\n", limit, limit)
			case 2:
				pipeline.WriteString("1\r\n")
				fmt.Fprintf(&want, "-ERR unknown command '1', with args beginning with: \r\n")
				pipeline.WriteString(sessiontest.Frame("ECHO", fmt.Sprint(limit)))
				fmt.Fprintf(&want, "$%d\r\n%d\r\n", len(fmt.Sprint(limit)), limit)
			}
			if rand.IntN(3) > 0 { // some in a row
				n := rand.IntN(100)
				for i := range n {
					pipeline.WriteString(sessiontest.Frame("CL.THROTTLE", "k", fmt.Sprint(limit+i), "1", "60", "0"))
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
