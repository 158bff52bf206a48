package remote

import (
	"context"
	"log/slog"
	"net"
	"time"

	"celld/store/policy"
	"celld/store/remote/link"
)

// Options name the engine, and say how it is used. URL and Policies must be set.
type Options struct {
	URL    string // redis://host, rediss://h1,h2,h3 (Cluster), redis://h1,h2,h3?master=name (Sentinel): see ParseURL
	Prefix string // of all keys on the engine

	Username, Password string // where URL has none

	TLSCertFile, TLSKeyFile, TLSCACertFile string // of rediss; the first two together. "": no certificate; the system's CAs

	Timeout    time.Duration // of a call, from its arrival; 0: 500 ms
	MaxWaiting int64         // most bytes of calls that wait for the engine; 0: 64 MB
	Denials    int           // most denied keys that are remembered; 0: none
	Ahead      AheadTimes    // how long units last that are taken ahead of calls: see package ahead

	Failures   Failures
	LocalShare int   // of the mode local: a limit's 1/LocalShare; 0: 20
	LocalKeys  int64 // most keys in the mode local's table; 0: 1,000,000
	LocalBytes int64 // most bytes of these, as in memory.Options; 0: no limit

	Policies *policy.Set  // of this process; those on the engine are copied into it
	Log      *slog.Logger // nil: nothing is logged

	// Time is limit time in Unix ns, for tests: the engine's is used where it is nil. Callers that wait, and timeouts, go by the
	// system's clock.
	Time func() int64

	Dial func(ctx context.Context, to string) (net.Conn, error) // connects in place of the net, for simulations; nil: the net does

	link func(*link.Options) // for tests: changes those of the link
}

const (
	defaultTimeout    = 500 * time.Millisecond
	defaultMaxWaiting = 64 << 20
)
