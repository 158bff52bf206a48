package resp

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"celld/store/policy"
)

// A pipeline goes by the limit that a policy has now, also when that was changed while it learned the call.
func TestAPolicyThatChangesBesideAPipeline(t *testing.T) {
	w := newWorld(t)
	p := w.connect()
	call := strings.Repeat(frame("CL.TAKE", "k", "@p", "PEEK"), 2)
	set := func(count int) {
		limit, problem := parseLiteral(fmt.Append(nil, count, "/1h"), 1)
		if problem != "" {
			t.Error(problem)
		}
		if _, err := w.store.SetPolicy("p", limit, policy.Options{}); err != nil {
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
