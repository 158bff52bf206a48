package remote

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"celld/store/remote/link"
)

// keyspace does what is asked about all keys, in turns, so that who asks for little does not wait for who asks for much.
type keyspace struct {
	mu      sync.Mutex
	waiting []aside
	running int
	asking  atomic.Int64 // questions whose goroutines the client holds

	replicas map[string]bool // by address, as far as they have said
}

// stepsAtOnce is how many steps are under way at once, and mostAside how many may wait for their turn.
const (
	stepsAtOnce = 4
	mostAside   = 10_000
)

// aside is what waits for its turn.
type aside struct {
	ctx      context.Context
	step     func(ctx context.Context) (more bool)
	fail     func(err error)
	deadline time.Time // of the first step since its arrival, and of each further one since the last
}

// aside has step called, from another goroutine, until it returns false. fail is called in its place where too many wait, or its deadline
// has come.
func (s *Store) aside(ctx context.Context, step func(ctx context.Context) (more bool), fail func(err error)) {
	k := &s.keyspace
	k.mu.Lock()
	if len(k.waiting) >= mostAside {
		k.mu.Unlock()
		fail(ErrBusy)
		return
	}
	k.waiting = append(k.waiting, aside{ctx, step, fail, s.deadline()})
	start := k.running < stepsAtOnce
	if start {
		k.running++
	}
	k.mu.Unlock()
	if start {
		go s.runAside()
	}
}

func (s *Store) runAside() {
	k := &s.keyspace
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.waiting) > 0 {
		a := k.waiting[0]
		k.waiting = k.waiting[1:]
		k.mu.Unlock()
		more := a.run()
		k.mu.Lock()
		if more {
			a.deadline = s.deadline()
			k.waiting = append(k.waiting, a)
		}
	}
	k.running--
}

func (a *aside) run() (more bool) {
	if !time.Now().Before(a.deadline) {
		a.fail(&DownError{Cause: link.CauseTimeout})
		return false
	}
	ctx, cancel := context.WithDeadline(a.ctx, a.deadline)
	defer cancel()
	return a.step(ctx)
}

// mostAsking bounds the goroutines of questions that the client holds, for up to 4 s each. 1,000 are many: steps that are under way at once
// ask each node of a Cluster once, and with a Timeout of 500 ms each leaves 8 at a node that is away.
const mostAsking = 1000

// inTime asks the engine, and returns at the deadline also where the client waits longer, for a connection that another call makes.
func inTime[T any](k *keyspace, ctx context.Context, ask func() (T, error)) (answer T, err error) {
	if k.asking.Add(1) > mostAsking {
		k.asking.Add(-1)
		return answer, &DownError{Cause: link.CauseTimeout}
	}
	done := make(chan struct{})
	var got T
	var failed error
	go func() {
		defer k.asking.Add(-1)
		got, failed = ask()
		close(done)
	}()
	select {
	case <-done:
		return got, failed
	case <-ctx.Done():
		return answer, ctx.Err()
	}
}
