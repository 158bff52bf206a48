package remote

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// startPatience is how long Open waits for the engine. One that has not answered by then is away.
const startPatience = 3 * time.Second

// connectPause is between attempts to connect to an engine that is away.
const connectPause = 250 * time.Millisecond

// link is the connection to the engine.
type link struct {
	address Address
	log     *slog.Logger
	ctx     stopper
	dialed  dialed
	away    atomic.Pointer[string] // why the engine was away when it was last asked; nil: it was not
	nodes   nodes
}

// stopper ends what goes on in the background.
type stopper struct {
	once sync.Once
	done chan struct{}
}

func (s *stopper) stop() { s.once.Do(func() { close(s.done) }) }

// pause waits. It returns false when the Store is closed.
func (s *stopper) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.done:
		return false
	}
}

// connect connects, and goes on to do so in the background until it succeeds.
func (s *Store) connect() error {
	address, err := ParseURL(s.options.URL)
	if err != nil {
		return fmt.Errorf("the store's URL: %w", err)
	}
	l := &s.link
	l.address, l.log, l.ctx.done = address, s.options.Log, make(chan struct{})
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	options, err := s.clientOptions(address)
	if err != nil {
		return err
	}
	s.cluster.Store(len(address.Hosts) > 1 && address.Master == "")
	l.setAway("there has been no connection yet")
	first := make(chan error, 1)
	go s.keepConnecting(options, first)
	select {
	case err := <-first:
		if why := mistake(err, address); why != "" {
			l.ctx.stop()
			return fmt.Errorf("connect to %s: %s", address, why)
		}
	case <-time.After(startPatience):
	}
	return nil
}

// keepConnecting connects, and tells what became of the first attempt.
func (s *Store) keepConnecting(options rueidis.ClientOption, first chan<- error) {
	l := &s.link
	for said := ""; ; {
		client, err := rueidis.NewClient(options)
		if err == nil {
			s.connected(client)
			first <- nil
			s.watch(client)
			return
		}
		why := mistake(err, l.address)
		if why == "" {
			why = causeOf(err)
		}
		l.setAway(why)
		select {
		case first <- err:
		default:
		}
		if why != said {
			said = why
			l.log.Warn("the engine is away", "store", l.address, "why", why, "err", err)
		}
		if !l.ctx.pause(connectPause) {
			return
		}
	}
}

// connected makes a client known.
func (s *Store) connected(client rueidis.Client) {
	s.cluster.Store(client.Mode() == rueidis.ClientModeCluster)
	s.client.Store(&client)
	s.link.away.Store(nil)
	s.link.log.Info("connected to the engine", "store", s.link.address, "mode", string(client.Mode()))
}

// Close ends the connection. Calls that wait for the engine are answered with an error, and so are those that come later.
func (s *Store) Close() {
	s.settings.close()
	s.link.ctx.stop()
	if client := s.client.Load(); client != nil {
		(*client).Close()
	}
}

func (l *link) setAway(why string) { l.away.Store(&why) }

// Away returns why the engine does not answer, nil if it does.
func (s *Store) Away() error {
	if why := s.link.away.Load(); why != nil {
		return errors.New(*why)
	}
	return s.failure.down()
}
