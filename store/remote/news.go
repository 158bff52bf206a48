package remote

import (
	"context"
	"slices"
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
func (s *Store) wakeChannel() string { return s.options.Prefix + "celld:wake" }

// allNews says that a policy or a rule has changed, or all keys have gone. It may be a key as well, which does not matter.
const allNews = ""

const (
	// quietFor is how long nobody waits before one no longer listens.
	quietFor   = 5 * time.Second
	newsRetry  = 250 * time.Millisecond
	newsErrors = "Messages about what is given back do not arrive. Calls that wait are looked at every second."
)

// listen begins to listen, unless that is done already. The lock is held.
func (n *news) listen(w *waits) {
	if n.listening || n.closed {
		return
	}
	n.listening = true
	go w.hear()
}

// hear listens until nobody has waited for some time.
func (w *waits) hear() {
	said := ""
	for w.needsNews() {
		ctx, cancel := context.WithCancel(context.Background())
		w.mu.Lock()
		w.news.stop = cancel
		w.mu.Unlock()
		err := w.hearSome(ctx)
		cancel()
		if err != nil {
			if log := w.store.options.Log; log != nil && err.Error() != said {
				said = err.Error()
				log.Warn(newsErrors, "error", err)
			}
			time.Sleep(newsRetry)
		}
	}
}

// needsNews reports whether somebody waits. Where nobody does, it ends the listening.
func (w *waits) needsNews() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.news.listening = w.room.Callers() > 0 && !w.news.closed
	return w.news.listening
}

// hearSome listens on a connection until it breaks, or nobody has waited for some time.
func (w *waits) hearSome(ctx context.Context) error {
	client := w.store.link.Client()
	if client == nil {
		return link.ErrNoConnection
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	w.stopWhenQuiet(ctx, stop)
	dedicated, release := client.Dedicate()
	defer release()
	err := dedicated.Receive(ctx, dedicated.B().Subscribe().Channel(w.store.wakeChannel()).Build(), func(m rueidis.PubSubMessage) {
		if m.Message != allNews {
			w.pokeKey(m.Message)
		} else {
			w.pokeAll()
			w.store.settings.policies.read(func() {})
			w.store.settings.rules.read(func() {})
		}
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// stopWhenQuiet stops the listening when nobody waits any more.
func (w *waits) stopWhenQuiet(ctx context.Context, stop func()) {
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

// frees reports whether something of a key may have been given back, where its next content is this. It may be wrong, which costs a
// try: states only grow with what is taken, in their numbers or in how many there are.
func (k *viewKey) frees(want *content) bool {
	if k.read.kind != kindHash {
		return k.read.kind != want.kind && k.read.kind != kindNone
	}
	if want.kind != kindHash {
		return true
	}
	for _, f := range k.read.fields {
		i := slices.IndexFunc(want.fields, func(w field) bool { return w.name == f.name })
		if i < 0 {
			return true
		}
		if text := want.fields[i].text; len(text) < len(f.text) || len(text) == len(f.text) && text < f.text {
			return true
		}
	}
	return false
}

// freed has those who wait for a key tried again, here and elsewhere: something may have been given back.
func (s *Store) freed(key string) {
	s.waits.pokeKey(key)
	s.publish(key)
}

func (s *Store) publish(message string) {
	s.send(&link.Request{Keys: []string{s.wakeChannel()}, Args: []string{"PUBLISH", message}, Deadline: s.deadline(), Done: func(rueidis.RedisMessage, error) {}})
}

// close refuses nobody: who waits is answered with an error when the engine's connection is closed.
func (w *waits) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.news.closed = true; w.news.stop != nil {
		w.news.stop()
	}
}
