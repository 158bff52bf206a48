package link

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"

	"celld/internal/celldtest"
	"celld/store"
)

// counting is a client that notes how many commands go together.
type counting struct {
	rueidis.Client
	mu    sync.Mutex
	sizes []int
}

func (c *counting) DoMulti(ctx context.Context, commands ...rueidis.Completed) []rueidis.RedisResult {
	c.mu.Lock()
	c.sizes = append(c.sizes, len(commands))
	c.mu.Unlock()
	return c.Client.DoMulti(ctx, commands...)
}

// What gathers goes in one pipeline, up to a bound, if its deadlines are alike.
func TestWhatGoesInOnePipeline(t *testing.T) {
	s := newTestLink(t, celldtest.NewAiling(t).Socket, Options{})
	count := &counting{Client: *s.client.Load()}
	client := rueidis.Client(count)
	s.client.Store(&client)
	l := &s.pipelines.all[0]
	for i, c := range []struct {
		n     int
		later time.Duration // the last one's deadline
		sizes []int
	}{
		{1, 0, []int{1}}, {mostPipelined, 0, []int{mostPipelined}}, {mostPipelined + 1, 0, []int{mostPipelined, 1}},
		{3, alike - 1, []int{3}}, {3, 1 - alike, []int{3}}, {3, alike, []int{2, 1}}, {3, -alike, []int{2, 1}},
	} {
		var answered sync.WaitGroup
		deadline := time.Now().Add(patient)
		l.inFlight, count.sizes = inFlight, nil
		for j := range c.n {
			answered.Add(1)
			r := &Request{Args: []string{"SET", "x"}, Keys: []string{"k"}, Deadline: deadline,
				Done: func(rueidis.RedisMessage, error) { answered.Done() }}
			if j == c.n-1 {
				r.Deadline = deadline.Add(c.later)
			}
			s.Send(r)
		}
		if len(l.waiting) != c.n {
			t.Fatalf("%d: %d wait", i, len(l.waiting))
		}
		l.inFlight = 1
		l.run()
		answered.Wait()
		if !slices.Equal(count.sizes, c.sizes) || l.inFlight != 0 {
			t.Errorf("%d: %v, want %v; %d are under way", i, count.sizes, c.sizes, l.inFlight)
		}
	}
}

// A pipeline starts where fewer are under way than may be.
func TestWhenAPipelineStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLink(Options{})
		l := &s.pipelines.all[0]
		for under, starts := range map[int]bool{0: true, 1: false} {
			l.inFlight, l.waiting = under, nil
			answered := make(chan error, 1)
			s.Send(&Request{Args: []string{"SET", "x"}, Keys: []string{"k"}, Deadline: time.Now().Add(patient),
				Done: func(_ rueidis.RedisMessage, err error) { answered <- err }})
			if !starts {
				if len(l.waiting) != 1 || l.inFlight != under {
					t.Errorf("%d under way: %d wait, and %d are under way", under, len(l.waiting), l.inFlight)
				}
			} else if err := <-answered; !isDown(err) {
				t.Errorf("without a connection: %v", err)
			}
			synctest.Wait()
		}
	})
}

// The quickest round trip of a second counts, and near is less than nearby.
func TestRoundTrips(t *testing.T) {
	now, l := time.Now(), pipeline{}
	took := func(after, d time.Duration) time.Duration {
		l.took(now.Add(after-d), now.Add(after))
		return l.least
	}
	for i, want := range []time.Duration{5, 3, 3, 3, 9} {
		after := []time.Duration{0, 1, 2, time.Second + 1, time.Second + 2}[i]
		if got := took(after, []time.Duration{5, 3, 4, 9, 9}[i]); got != want {
			t.Errorf("%d: %d ns", i, got)
		}
	}
	if l.soon() != 2*9+nearby/2 {
		t.Errorf("%v", l.soon())
	}
	for d, want := range map[time.Duration]int{nearby - 1: 1, nearby: inFlight} {
		if l.least = d; l.most() != want {
			t.Errorf("%v: %d", d, l.most())
		}
	}
}

// Errors are counted, and say what may have reached the engine.
func TestFailedRequests(t *testing.T) {
	for _, c := range []struct {
		err                error
		unsent, sent       bool
		failures, timeouts int64
		row                int32
	}{
		{ErrLate, true, false, 1, 1, 0},
		{context.DeadlineExceeded, true, false, 1, 1, 0},
		{context.DeadlineExceeded, false, true, 1, 1, 0},
		{rueidis.ErrClosing, false, true, 1, 0, 1},
		{rueidis.ErrClosing, true, false, 1, 0, 1},
		{store.ErrFull, false, true, 1, 0, 1},
		{&EngineError{Text: "odd"}, false, false, 0, 0, 0},
	} {
		s := newLink(Options{})
		s.byHand()
		l := &s.pipelines.all[0]
		err := l.failed(&Request{Keys: []string{"k"}}, c.err, c.unsent)
		down := (*DownError)(nil)
		if is := errors.As(err, &down); is != (c.failures > 0) || is && down.Sent != c.sent {
			t.Errorf("%v: %#v", c.err, err)
		}
		if st := s.options.Stats; st.Failures.Load() != c.failures || st.Timeouts.Load() != c.timeouts || l.breaker.row.Load() != c.row ||
			l.breaker.health != nil {
			t.Errorf("%v: %d failures, %d time-outs, %d in a row", c.err, st.Failures.Load(), st.Timeouts.Load(), l.breaker.row.Load())
		}
	}
}
