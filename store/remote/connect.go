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
	name    string // the URL without users and passwords
	log     *slog.Logger
	ctx     stopper
	dialed  dialed
	made    atomic.Int64           // connections to nodes, and
	open    atomic.Int64           // those that are not closed yet
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

// Check says what Open would find wrong in the options and their files. It connects to nothing.
func Check(o Options) error {
	_, _, err := (&Store{options: o}).prepare()
	return err
}

// prepare reads the options and their files.
func (s *Store) prepare() (address Address, options rueidis.ClientOption, err error) {
	if address, err = ParseURL(s.options.URL); err != nil {
		return address, options, fmt.Errorf("the store's URL: %w", err)
	}
	options, err = s.clientOptions(address)
	return address, options, err
}

// connect connects, and goes on to do so in the background until it succeeds.
func (s *Store) connect() error {
	address, options, err := s.prepare()
	if err != nil {
		return err
	}
	l := &s.link
	l.address, l.name, l.log, l.ctx.done = address, address.String(), s.options.Log, make(chan struct{})
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	s.cluster.Store(len(address.Hosts) > 1 && address.Master == "")
	l.setAway("there has been no connection yet")
	first, opened := make(chan string), make(chan struct{})
	defer close(opened)
	go s.keepConnecting(options, first, opened)
	select {
	case why := <-first:
		if why != "" {
			return fmt.Errorf("connect to %s: %s", l.name, why)
		}
	case <-time.After(startPatience):
	}
	return nil
}

// keepConnecting connects. The mistake that an attempt has shown, or none, goes to Open while that waits: a mistake ends it all then.
func (s *Store) keepConnecting(options rueidis.ClientOption, first chan<- string, opened <-chan struct{}) {
	l := &s.link
	for said := ""; ; {
		client, err := rueidis.NewClient(options)
		wrong := mistake(err, l.address)
		if err == nil && isCelld(client) {
			client.Close()
			err, wrong = errors.New(itself), itself
		}
		if err != nil && wrong == "" && options.TLSConfig != nil && causeOf(err) == causeLost {
			wrong = mistake(s.refusal(options), l.address)
		}
		why := wrong
		switch {
		case err == nil:
			s.connected(client)
		case wrong == "":
			why = s.reason(err)
		}
		if err != nil {
			l.setAway(why)
		}
		select {
		case first <- wrong:
			if wrong != "" {
				return
			}
		case <-opened:
		}
		if err == nil {
			s.watch(client)
			return
		}
		if why != said {
			said = why
			l.log.Warn("the engine is away", "store", l.name, "why", why)
		}
		if !l.ctx.pause(connectPause) {
			return
		}
	}
}

// connected makes a client known.
func (s *Store) connected(client rueidis.Client) {
	s.cluster.Store(client.Mode() == rueidis.ClientModeCluster)
	if s.cluster.Load() {
		s.idsKeyOf("") // finds all names, which no call should wait for
		s.askOwners(client)
	}
	s.client.Store(&client)
	s.look(client)
	s.link.log.Info("connected to the engine", "store", s.link.name, "mode", string(client.Mode()))
}

// Close ends the connection. Calls that wait for the engine are answered with an error, and so are those that come later.
func (s *Store) Close() {
	s.settings.close()
	s.waits.close()
	s.link.ctx.stop()
	s.failure.close()
	if client := s.client.Load(); client != nil {
		(*client).Close()
	}
}

func (l *link) setAway(why string) { l.away.Store(&why) }

// Away returns why the engine does not answer, nil if it does. A Cluster answers as long as it serves a part of the keys, and a failover
// that is no longer than usual is no reason: see coverage.
func (s *Store) Away() error {
	if why := s.link.away.Load(); why != nil {
		return errors.New(*why)
	}
	if s.cluster.Load() {
		return s.coverage.away()
	}
	return s.failure.down()
}
