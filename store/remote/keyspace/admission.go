package keyspace

import (
	"context"

	"celld/store/remote/link"
)

// atOnce is how many steps may be under way at once, and mostAsked how many questions.
const (
	atOnce    = 4
	mostAsked = 10_000
)

// offload answers a question from another goroutine, or refuses it at once if there are too many.
func offload[T any](k *Keyspace, ask func() (T, error), done func(T, error)) {
	if k.asked.Add(1) > mostAsked {
		k.asked.Add(-1)
		var none T
		done(none, link.ErrBusy)
		return
	}
	go func() {
		answer, err := ask()
		k.asked.Add(-1)
		done(answer, err)
	}()
}

// admitted takes one step of a question once there is room among atOnce: so a short question does not wait for a long one. It fails if that
// takes longer than Timeout.
func (k *Keyspace) admitted(ctx context.Context, step func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, k.Timeout)
	defer cancel()
	select {
	case k.admission <- struct{}{}:
		defer func() { <-k.admission }()
		return step(ctx)
	case <-ctx.Done():
		return &link.DownError{Cause: link.CauseTimeout}
	}
}

// mostAsking bounds the goroutines of questions that the client holds, for up to 4 s each. 1,000 are plenty: each step under way asks each
// node of a Cluster once, and with a Timeout of 500 ms it leaves 8 goroutines at a node that is away.
const mostAsking = 1000

// inTime asks the engine, and returns at the deadline even if the client waits longer, for a connection that another call makes.
func inTime[T any](k *Keyspace, ctx context.Context, ask func() (T, error)) (answer T, err error) {
	if k.asking.Add(1) > mostAsking {
		k.asking.Add(-1)
		return answer, &link.DownError{Cause: link.CauseTimeout}
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
