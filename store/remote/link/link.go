package link

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// startPatience is how long Connect waits for the engine. An engine that has not answered by then is away.
const startPatience = 3 * time.Second

// connectPause is between attempts to connect to an engine that is away.
const connectPause = 250 * time.Millisecond

// Options say which engine a Link is to, and how. URL must be set.
type Options struct {
	URL    string // see ParseURL
	Prefix string // of all keys on the engine, also of those of probes

	PerHashSlot string // a key that a Cluster has in each hash slot, with a tag such as :{4zp} behind it; "": none

	Username, Password string // where URL has none

	TLSCertFile, TLSKeyFile, TLSCACertFile string // of rediss; the first two together. "": no certificate; the system's CAs

	Timeout time.Duration // of a call, from its arrival
	Log     *slog.Logger  // nil: nothing is logged
	Stats   *Stats        // nil: nothing is counted for others

	OutageBegins func(why string)           // is called when calls begin to fail; nil: nobody is, as below
	OutageEnds   func(lasted time.Duration) // is called when they have been answered for a while

	// For tests: the engine's time in Unix ns (nil: the engine is asked); what connects in place of the net; and the clock and the timers
	// of breakers.
	Time  func() int64
	Dial  func(ctx context.Context, to string) (net.Conn, error)
	Now   func() time.Time
	After func(time.Duration, func())
}

// Stats count what a Link does.
type Stats struct {
	Requests atomic.Int64 // commands sent to the engine, each of which may decide many calls
	Failures atomic.Int64 // requests that it has not answered, or has answered with an error that says it cannot
	Timeouts atomic.Int64 // of these, those that took too long
}

// Link is the connection to an engine, or to the nodes of a Cluster. Its methods may be called by many goroutines at once.
type Link struct {
	options Options
	address address
	name    string // the URL without users and passwords
	log     *slog.Logger
	ctx     context.Context // until it is closed
	stop    context.CancelFunc
	client  atomic.Pointer[rueidis.Client] // nil: there has been no connection yet
	secret  atomic.Pointer[string]         // Options.Password, or that of UsePassword
	renewed atomic.Pointer[tls.Config]     // of a new connection; nil: that of clientOptions
	cluster atomic.Bool                    // keys of one request must share a hash slot
	dialed  dialed
	pace    pace
	made    atomic.Int64           // connections to nodes, ever
	open    atomic.Int64           // those that are not closed yet
	away    atomic.Pointer[string] // why the engine was away when it was last asked; nil: it was not

	pipelines pipelines
	nodes     nodes
	coverage  coverage
	outage    outage

	tagOnce sync.Once
	tags    []uint32 // by hash slot: see findTags
}

// New returns a Link without a connection, which answers each request with an error until there is one.
func New(o Options) *Link {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Stats == nil {
		o.Stats = &Stats{}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.After == nil {
		o.After = func(d time.Duration, do func()) { time.AfterFunc(d, do) }
	}
	l := &Link{options: o, log: o.Log}
	l.secret.Store(&o.Password)
	l.ctx, l.stop = context.WithCancel(context.Background())
	l.pipelines.init(l)
	l.coverage.now = time.Now
	l.outage.since = o.Now()
	return l
}

// deadline is when a call that arrives now has waited long enough.
func (l *Link) deadline() time.Time { return time.Now().Add(l.options.Timeout) }

// Client is the client of the engine; nil while there has been no connection.
func (l *Link) Client() rueidis.Client {
	if client := l.client.Load(); client != nil {
		return *client
	}
	return nil
}

// Use sends requests by a client from now on. Connect does that with its own.
func (l *Link) Use(client rueidis.Client) {
	l.cluster.Store(client.Mode() == rueidis.ClientModeCluster)
	l.client.Store(&client)
}

// Cluster reports whether keys of one request must share a hash slot.
func (l *Link) Cluster() bool { return l.cluster.Load() }

// Name is the engine's URL without users and passwords.
func (l *Link) Name() string { return l.name }

// Kind is standalone, cluster or sentinel.
func (l *Link) Kind() string {
	switch {
	case l.cluster.Load():
		return "cluster"
	case l.address.Master != "":
		return "sentinel"
	}
	return "standalone"
}

// CheckHashSlot returns ErrCrossSlot for keys that no request can name together.
func (l *Link) CheckHashSlot(keys []string) error {
	if !l.cluster.Load() {
		return nil
	}
	for _, key := range keys[1:] {
		if HashSlot(key) != HashSlot(keys[0]) {
			return ErrCrossSlot
		}
	}
	return nil
}

// pause waits. It returns false when the Link is closed.
func (l *Link) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-l.ctx.Done():
		return false
	}
}

// Check says what Connect would find wrong in the options and their files. It connects to nothing.
func Check(o Options) error {
	_, err := New(o).prepare()
	return err
}

// prepare reads the options and their files.
func (l *Link) prepare() (options rueidis.ClientOption, err error) {
	if l.address, err = ParseURL(l.options.URL); err != nil {
		return options, fmt.Errorf("the engine's URL: %w", err)
	}
	l.name = l.address.String()
	return l.clientOptions(l.address)
}

// UsePassword is for connections that are made from now on, in place of Options.Password. Those that are open stay.
func (l *Link) UsePassword(password string) { l.secret.Store(&password) }

// RenewCertificates makes connections from now on use what the files hold now. An error has changed nothing.
func (l *Link) RenewCertificates() error {
	config, err := l.tlsConfig(l.address)
	if err == nil {
		l.renewed.Store(config)
	}
	return err
}

// Connect connects, and goes on to do so in the background until it succeeds. The error is for what waiting does not mend: a URL that
// cannot be read, a file that is not there, a password that is refused. An engine that is away is no error.
func (l *Link) Connect() error {
	options, err := l.prepare()
	if err != nil {
		return err
	}
	l.cluster.Store(len(l.address.Hosts) > 1 && l.address.Master == "")
	l.setAway("there has been no connection yet")
	first, opened := make(chan string), make(chan struct{})
	defer close(opened)
	go l.keepConnecting(options, first, opened)
	select {
	case why := <-first:
		if why != "" {
			return fmt.Errorf("connect to %s: %s", l.name, why)
		}
	case <-time.After(startPatience):
	}
	return nil
}

// keepConnecting connects. While Connect waits, it gets the mistake that an attempt has shown, or none. A mistake ends the attempts then.
func (l *Link) keepConnecting(options rueidis.ClientOption, first chan<- string, opened <-chan struct{}) {
	for said := ""; ; {
		client, err := rueidis.NewClient(options)
		wrong := mistake(err, l.address)
		if err == nil && isCelld(client) {
			client.Close()
			err, wrong = errors.New(itself), itself
		}
		if err != nil && wrong == "" && options.TLSConfig != nil && causeOf(err) == causeLost {
			wrong = mistake(l.refusal(options), l.address)
		}
		why := wrong
		switch {
		case err == nil:
			l.connected(client)
		case wrong == "":
			why = l.reason(err)
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
		if err == nil && !l.watch(client) {
			return
		}
		if why != said {
			said = why
			l.log.Warn("the engine is away", "store", l.name, "why", why)
		}
		if !l.pause(connectPause) {
			return
		}
	}
}

// connected makes a client known.
func (l *Link) connected(client rueidis.Client) {
	if client.Mode() == rueidis.ClientModeCluster {
		l.findTags()
		l.readOwners(client)
	}
	l.Use(client)
	l.look(client)
	l.log.Info("connected to the engine", "store", l.name, "mode", string(client.Mode()))
}

// Close ends the connection. Calls that wait for the engine are answered with an error, and so are those that come later.
func (l *Link) Close() {
	l.stop()
	if client := l.client.Load(); client != nil {
		(*client).Close()
	}
}

func (l *Link) setAway(why string) { l.away.Store(&why) }

// Away returns why the engine does not answer, nil if it does. A Cluster answers as long as it serves a part of the keys, and a failover
// that is no longer than usual is no reason: see coverage.
func (l *Link) Away() error {
	if why := l.away.Load(); why != nil {
		return errors.New(*why)
	}
	if l.cluster.Load() {
		return l.coverage.away()
	}
	return l.Down()
}
