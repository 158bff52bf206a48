package waits

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"celld/store/remote/link"
)

// invalidations are messages of other processes: something was given back to a key. They are received only while calls wait here.
type invalidations struct {
	listening bool
	ctx       context.Context // until they are closed
	close     context.CancelFunc
}

// channel is where they are published. A message is a key, without the prefix, or invalidateAll.
func (w *Waits) channel() string { return w.Prefix + "celld:wake" }

// invalidateAll says that a policy or a rule has changed, or all keys have gone. It may be a key as well, which does not matter.
const invalidateAll = ""

const (
	// quietFor is how long nobody has waited when the subscription ends.
	quietFor       = 5 * time.Second
	subscribeAgain = 250 * time.Millisecond
	notSubscribed  = "Messages about what is given back do not arrive. Calls that wait are looked at every second."
)

// subscribe begins to receive invalidations, unless that has begun already. The lock is held.
func (w *Waits) subscribe() {
	if n := &w.invalidations; !n.listening && n.ctx.Err() == nil {
		n.listening = true
		go w.receive()
	}
}

// receive receives invalidations until nobody has waited for some time.
func (w *Waits) receive() {
	said := ""
	for w.needsInvalidations() {
		ctx, cancel := context.WithCancel(w.invalidations.ctx)
		w.stopWhenQuiet(ctx, cancel)
		err := w.receiveSome(ctx)
		cancel()
		if err == nil {
			continue
		}
		if err.Error() != said {
			said = err.Error()
			w.Log.Warn(notSubscribed, "error", err)
		}
		time.Sleep(subscribeAgain)
	}
}

// needsInvalidations reports whether somebody waits. If nobody does, the subscription ends.
func (w *Waits) needsInvalidations() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := &w.invalidations
	n.listening = w.room.Callers() > 0 && n.ctx.Err() == nil
	return n.listening
}

// receiveSome receives on one connection until it breaks, which is an error, or ctx ends.
func (w *Waits) receiveSome(ctx context.Context) error {
	client := w.Link.Client()
	if client == nil {
		return link.ErrNoConnection
	}
	dedicated, _ := client.Dedicate()
	// To keep the connection rueidis would unsubscribe. A busy engine refuses that, and rueidis ends the process over such an answer.
	defer dedicated.Close()
	err := dedicated.Receive(ctx, dedicated.B().Subscribe().Channel(w.channel()).Build(), func(m rueidis.PubSubMessage) {
		if m.Message != invalidateAll {
			w.poke(m.Message)
		} else {
			w.pokeAll()
			w.Settings()
		}
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// stopWhenQuiet ends the subscription when nobody waits any more.
func (w *Waits) stopWhenQuiet(ctx context.Context, stop func()) {
	time.AfterFunc(quietFor, func() {
		switch {
		case ctx.Err() != nil:
		case w.room.Callers() == 0:
			stop()
		default:
			w.stopWhenQuiet(ctx, stop)
		}
	})
}

// Freed tries those again who wait for a key, as clients name it, here and in other processes: something may have been given back.
func (w *Waits) Freed(key string) {
	w.poke(key)
	w.publish(key)
}

// FreedAll tries all who wait again: a policy or a rule has changed, or keys have gone. here: by this process, so it tells the others.
func (w *Waits) FreedAll(here bool) {
	w.pokeAll()
	if here {
		w.publish(invalidateAll)
	}
}

func (w *Waits) publish(message string) {
	w.Link.Send(&link.Request{Keys: []string{w.channel()}, Args: []string{"PUBLISH", message}, Deadline: w.deadline(), Done: link.Ignore})
}

// Close ends the subscription. Calls that wait are answered with an error when the engine's connection is closed.
func (w *Waits) Close() { w.invalidations.close() }
