package link

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"

	"celld/internal/celldtest"
)

// stuck is a Store whose engine has closed the connection, and whose client waits for the next, which another call makes. It comes with
// comesBack.
func stuck(t *testing.T) (s *Link, e *celldtest.Ailing, comesBack func()) {
	t.Helper()
	var away atomic.Bool
	dials, back := make(chan struct{}, 100), make(chan struct{})
	e = celldtest.NewAiling(t)
	s = newTestLinkBy(t, e.Socket, Options{}, func(s *Link) dialer {
		return func(ctx context.Context, to string, d *net.Dialer, config *tls.Config) (net.Conn, error) {
			if dials <- struct{}{}; away.Load() {
				<-back
			}
			return s.Dial(ctx, to, d, config)
		}
	})
	comesBack = sync.OnceFunc(func() {
		away.Store(false)
		close(back)
	})
	t.Cleanup(comesBack)
	s.byHand()
	if err := s.askFor("k", patient); err != nil {
		t.Fatal(err)
	}
	away.Store(true)
	e.Answers("close")
	if down := (*DownError)(nil); !errors.As(s.askFor("k", patient), &down) || down.Cause != causeLost || !down.Sent {
		t.Fatalf("%#v", down)
	}
	for range len(dials) {
		<-dials
	}
	client := *s.client.Load()
	go client.Do(context.Background(), client.B().Ping().Build())
	<-dials
	return s, e, comesBack
}

// A call is answered at its own deadline where the client waits longer, for a connection that another makes. It was not sent then, and says
// so.
func TestACallDoesNotWaitForTheConnectionOfAnother(t *testing.T) {
	s, e, comesBack := stuck(t)
	ask := func(patience time.Duration) *DownError {
		t.Helper()
		answered := make(chan error, 1)
		go func() { answered <- s.askFor("k", patience) }()
		select {
		case err := <-answered:
			down := (*DownError)(nil)
			errors.As(err, &down)
			return down
		case <-time.After(patient / 2):
			t.Fatal("it waits for the connection")
		}
		return nil
	}
	for range 2 * inFlight {
		if err := ask(time.Millisecond); err == nil || err.Cause != CauseTimeout || err.Sent {
			t.Fatalf("%#v", err)
		}
	}
	e.Answers(":1\r\n")
	comesBack()
	if err := ask(patient); err != nil {
		t.Fatalf("%#v", err)
	}
}

// An engine that is far has four pipelines under way, and one that is near has one until much waits.
func TestMostPipelines(t *testing.T) {
	now := time.Now()
	for _, test := range []struct {
		took    []time.Duration // by pipelines 0.4 s apart
		waiting int
		want    int
	}{
		{nil, 1, 1},
		{[]time.Duration{nearby / 2}, 1, 1},
		{[]time.Duration{nearby / 2}, muchWaits, 2},
		{[]time.Duration{nearby / 2}, 9 * muchWaits, inFlight},
		{[]time.Duration{nearby * 2}, 1, inFlight},
		{[]time.Duration{nearby * 2, nearby / 2, nearby * 2}, 1, 1},
		{[]time.Duration{nearby / 2, nearby * 2, nearby * 2, nearby * 2}, 1, inFlight},
	} {
		l := pipeline{waiting: make([]*Request, test.waiting)}
		for i, d := range test.took {
			at := now.Add(time.Duration(i) * 400 * time.Millisecond)
			l.took(at.Add(-d), at)
		}
		if got := l.most(); got != test.want {
			t.Errorf("%+v: %d", test, got)
		}
	}
}

// While a pipeline is under way to an engine that is near, what comes waits, and goes in the next.
func TestOnePipelineAfterTheOther(t *testing.T) {
	inFakeTime(t, Options{}, func(t *testing.T, s *Link, e *celldtest.Ailing) {
		e.Takes(time.Second)
		l := &s.pipelines.all[0]
		var answered atomic.Int32
		is := func(underWay, waiting, answers int) {
			t.Helper()
			synctest.Wait()
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.inFlight != underWay || len(l.waiting) != waiting || int(answered.Load()) != answers {
				t.Errorf("%d pipelines are under way, %d requests wait, and %d are answered", l.inFlight, len(l.waiting), answered.Load())
			}
		}
		for i := range 5 {
			s.Send(&Request{Args: []string{"SET", "x"}, Keys: []string{"k"}, Deadline: s.deadline(),
				Done: func(rueidis.RedisMessage, error) { answered.Add(1) }})
			is(1, i, 0)
		}
		celldtest.Pass(time.Second)
		is(1, 0, 1)
		celldtest.Pass(4 * time.Second)
		is(0, 0, 5)
	})
}
