package waits

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"celld/store/remote/link"
)

// news are messages of other processes about keys of which something was given back. They are heard only while calls wait here.
type news struct {
	listening bool
	stop      context.CancelFunc
	closed    bool
}

// wakeChannel is where they are. A message is a key, without the prefix, or allNews.
func (w *Waits) channel() string { return w.Prefix + "celld:wake" }

// allNews says that a policy or a rule has changed, or all keys have gone. It may be a key as well, which does not matter.
const allNews = ""

const (
	// quietFor is how long nobody waits before one no longer listens.
	quietFor   = 5 * time.Second
	newsRetry  = 250 * time.Millisecond
	newsErrors = "Messages about what is given back do not arrive. Calls that wait are looked at every second."
)

// listen begins to listen, unless that is done already. The lock is held.
func (w *Waits) listen() {
	if n := &w.news; !n.listening && !n.closed {
		n.listening = true
		go w.hear()
	}
}

// hear listens until nobody has waited for some time.
func (w *Waits) hear() {
	said := ""
	for w.needsNews() {
		ctx, cancel := context.WithCancel(context.Background())
		w.mu.Lock()
		w.news.stop = cancel
		w.mu.Unlock()
		w.stopWhenQuiet(ctx, cancel)
		err := w.hearSome(ctx)
		cancel()
		if err == nil {
			continue
		}
		if err.Error() != said {
			said = err.Error()
			w.Log.Warn(newsErrors, "error", err)
		}
		time.Sleep(newsRetry)
	}
}

// needsNews reports whether somebody waits. Where nobody does, it ends the listening.
func (w *Waits) needsNews() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.news.listening = w.room.Callers() > 0 && !w.news.closed
	return w.news.listening
}

// hearSome listens on a connection until it breaks, which is an error, or ctx ends.
func (w *Waits) hearSome(ctx context.Context) error {
	client := w.Link.Client()
	if client == nil {
		return link.ErrNoConnection
	}
	dedicated, release := client.Dedicate()
	defer release()
	err := dedicated.Receive(ctx, dedicated.B().Subscribe().Channel(w.channel()).Build(), func(m rueidis.PubSubMessage) {
		if m.Message != allNews {
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

// stopWhenQuiet stops the listening when nobody waits any more.
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

// Freed tries those again who wait for a key, as clients name it, here and elsewhere: something may have been given back.
func (w *Waits) Freed(key string) {
	w.poke(key)
	w.publish(key)
}

// FreedAll tries all who wait again: a policy or a rule has changed, or keys have gone. here: by this process, so others are told.
func (w *Waits) FreedAll(here bool) {
	w.pokeAll()
	if here {
		w.publish(allNews)
	}
}

func (w *Waits) publish(message string) {
	w.Link.Send(&link.Request{Keys: []string{w.channel()}, Args: []string{"PUBLISH", message}, Deadline: w.deadline(), Done: link.Ignore})
}

// Close refuses nobody: who waits is answered with an error when the engine's connection is closed.
func (w *Waits) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.news.closed = true; w.news.stop != nil {
		w.news.stop()
	}
}
