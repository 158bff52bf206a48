package session

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"celld/cell"
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
		if _, err := w.Store.SetPolicy("p", []cell.Limit{limit}, policy.Options{}); err != nil {
			t.Error(err)
		}
	}
	set(1)
	for count := 2; count < 5000; count++ {
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
