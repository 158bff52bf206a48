package keyspace

import (
	"context"

	"celld/store/remote/link"
)

// atOnce is how many steps are under way at once, and mostAsked how many questions may be.
const (
	atOnce    = 4
	mostAsked = 10_000
)

// aside answers a question from another goroutine, or at once where there are too many.
func aside[T any](k *Keyspace, ask func() (T, error), done func(T, error)) {
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

// inTurn takes one step of a question, when others have taken theirs: so who asks for little does not wait for who asks much. It fails
// where that takes longer than Timeout.
func (k *Keyspace) inTurn(ctx context.Context, step func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, k.Timeout)
	defer cancel()
	select {
	case k.turns <- struct{}{}:
		defer func() { <-k.turns }()
		return step(ctx)
	case <-ctx.Done():
		return &link.DownError{Cause: link.CauseTimeout}
	}
}

// mostAsking bounds the goroutines of questions that the client holds, for up to 4 s each. 1,000 are many: steps that are under way at once
// ask each node of a Cluster once, and with a Timeout of 500 ms each leaves 8 at a node that is away.
const mostAsking = 1000

// inTime asks the engine, and returns at the deadline also where the client waits longer, for a connection that another call makes.
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
