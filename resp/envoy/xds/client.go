package xds

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"celld/resp/envoy/message"
)

const (
	// A pause before the next connection grows from leastPause to mostPause, give or take a quarter, until a response comes.
	leastPause = time.Second
	mostPause  = time.Minute

	// refusalPause follows a refusal. A server that sends the same again at once made envoyproxy/ratelimit refuse 4,000 times in 3 s.
	refusalPause = 100 * time.Millisecond

	// mostRefusal is how many bytes of a reason are sent.
	mostRefusal = 1000
)

// Options are what a Client needs. All must be set, but Dial, TLS and Headers.
type Options struct {
	Server  string                                                            // host:port
	Dial    func(ctx context.Context, network, addr string) (net.Conn, error) // nil: by TCP
	TLS     func() (*tls.Config, error)                                       // of the next connection; nil: it is not encrypted
	Headers http.Header                                                       // of each stream
	Ask     message.Subscription                                              // Node, Metadata, TypeURL
	Most    int                                                               // bytes of a response

	// Take puts a configuration to use. about is what the log says of it. After an error it has changed nothing. data is the response as it
	// came.
	Take func(d *message.Discovery, data []byte) (about []any, err error)

	Log      *slog.Logger
	Panicked func(cause any, where string, about ...any) // in Take
}

// Client is one subscription. Any goroutine may ask it.
type Client struct {
	Options
	taken, refused atomic.Int64
	connected      atomic.Bool
}

// New returns a client, which does nothing before Run.
func New(o Options) *Client { return &Client{Options: o} }

// Counts is how often a configuration was taken, and how often one was refused.
func (c *Client) Counts() (taken, refused int64) { return c.taken.Load(), c.refused.Load() }

// Connected reports whether there is a stream.
func (c *Client) Connected() bool { return c.connected.Load() }

// Run takes what the server sends until ctx ends. It connects again and again.
func (c *Client) Run(ctx context.Context) {
	for pause := leastPause; ; pause = min(2*pause, mostPause) {
		heard, err := c.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		if heard {
			pause = leastPause
		}
		wait := pause*3/4 + rand.N(pause/2)
		c.Log.Warn("the xDS server is away, and the configuration stays as it is", "server", c.Server, "error", err,
			"next_try", wait.Round(time.Millisecond))
		if !sleep(ctx, wait) {
			return
		}
	}
}

func sleep(ctx context.Context, long time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(long):
		return true
	}
}

// follow takes what one stream brings, and returns why that has ended. heard: it has brought something.
func (c *Client) follow(ctx context.Context) (heard bool, err error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	s, err := c.open(ctx)
	if err != nil {
		return false, err
	}
	defer s.close()
	c.connected.Store(true)
	defer c.connected.Store(false)
	// The first request names no version, though one is in force: a server that begins to count anew may have the same for another world.
	for ask := c.Ask; ; {
		data, err := s.receive(c.Most)
		if err != nil {
			return heard, err
		}
		heard = true
		d, err := message.UnmarshalDiscovery(data)
		if err != nil {
			c.refused.Add(1)
			return heard, err // nobody knows which response that was
		}
		ask.Nonce, ask.Refusal = d.Nonce, ""
		if err := c.take(d, data); err != nil {
			ask.Refusal = strings.ToValidUTF8(err.Error()[:min(len(err.Error()), mostRefusal)], "")
			if !sleep(ctx, refusalPause) {
				return heard, ctx.Err()
			}
		} else {
			ask.Version = d.Version
		}
		if err := s.send(&ask); err != nil {
			return heard, err
		}
	}
}

// take takes a configuration, and says so.
func (c *Client) take(d *message.Discovery, data []byte) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			c.Panicked(cause, "a configuration of xDS")
			err = errors.New("a fault in celld")
		}
		if err != nil {
			c.refused.Add(1)
			c.Log.Warn("a configuration is refused, and the one before stays", "server", c.Server, "version", d.Version,
				"error", firstLine(err))
		}
	}()
	about, err := c.Take(d, data)
	if err == nil {
		c.taken.Add(1)
		c.Log.Info("a configuration is taken", append([]any{"server", c.Server, "version", d.Version}, about...)...)
	}
	return err
}

// firstLine is the first of joined errors, and how many follow.
func firstLine(err error) string {
	first, rest, more := strings.Cut(err.Error(), "\n")
	if !more {
		return first
	}
	return fmt.Sprintf("%s (and %d more)", first, 1+strings.Count(rest, "\n"))
}
