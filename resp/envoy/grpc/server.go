package grpc

import (
	"context"
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// The bounds of a connection, and of all of them: MaxHeld is how many bytes of messages may be unfinished, wait, run or be answers that
// clients do not take. A connection takes up to 150 KB beside them.
const (
	MaxCalls      = 256
	MaxMessage    = 64 << 10
	MaxHeld       = 32 << 20
	maxHeaders    = 64 << 10 // Envoy takes 60 KB from its clients, and may pass a header on
	handshakeTime = 5 * time.Second

	// A client that does not answer a ping for pingTime, after a silence, has gone. A call ends that waits for its client for longer.
	silence  = time.Minute
	pingTime = 20 * time.Second

	// A connection that has ended waits so long for its client to close it. If we closed it first, and the client still sent something,
	// what we sent before could be lost.
	partingTime = time.Second
)

// Method answers the calls of a method. One of its functions is set.
type Method struct {
	// Unary appends the answer to out. It may keep neither in nor out. The error is what Errorf has made, or becomes UNKNOWN.
	Unary func(in, out []byte) ([]byte, error)

	// Stream sends answers until its client has gone: it returns when to.Done is closed, or before.
	Stream func(in []byte, to *Sender) error
}

// Options are what a server does.
type Options struct {
	Methods map[string]Method // by path, such as "/grpc.health.v1.Health/Check"

	// Waits is whether a Unary may wait, such as for a disk. Then calls are answered beside each other, by a goroutine each.
	Waits bool

	// MaxAge is how long a connection takes new calls, 10 % more or less, and MaxAgeGrace how long it may then last. 0: for ever.
	MaxAge, MaxAgeGrace time.Duration

	TLS      func(net.Conn) *tls.Conn // nil: in the clear
	Panicked func(cause any)          // is told of a panic; the call gets INTERNAL
}

// Server answers calls.
type Server struct {
	Options
	held      atomic.Int64 // bytes of calls
	mu        sync.Mutex
	stopping  bool
	listeners []net.Listener
	conns     map[*conn]struct{}
	running   sync.WaitGroup // the connections
}

// NewServer makes a server.
func NewServer(o Options) *Server { return &Server{Options: o, conns: map[*conn]struct{}{}} }

// Serve answers the calls of ln's connections until Shutdown, which closes ln.
func (s *Server) Serve(ln net.Listener) error {
	s.mu.Lock()
	s.listeners = append(s.listeners, ln)
	stopping := s.stopping
	s.mu.Unlock()
	if stopping {
		return errors.Join(net.ErrClosed, ln.Close())
	}
	const longestPause = time.Second
	for pause := time.Duration(0); ; {
		c, err := ln.Accept()
		if err == nil {
			pause = 0
			s.start(c)
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		pause = min(max(2*pause, 5*time.Millisecond), longestPause) // such as when there are too many open files
		time.Sleep(pause)
	}
}

// start serves a connection.
func (s *Server) start(nc net.Conn) {
	c := newConn(s, nc)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		nc.Close()
		return
	}
	s.conns[c] = struct{}{}
	s.running.Go(func() {
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.conns, c)
		}()
		c.serve()
	})
}

// age is how old a connection may become. Connections that began together do not end together.
func (s *Server) age() time.Duration {
	return time.Duration(float64(s.MaxAge) * (0.9 + 0.2*rand.Float64()))
}

// Shutdown ends the server: it takes no new connections and calls, and closes those there are when their calls have been answered, and all
// when ctx ends.
func (s *Server) Shutdown(ctx context.Context) {
	s.mu.Lock()
	s.stopping = true
	for _, ln := range s.listeners {
		ln.Close()
	}
	for c := range s.conns {
		go c.drain()
	}
	s.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		s.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		s.mu.Lock()
		for c := range s.conns {
			c.raw.Close()
		}
		s.mu.Unlock()
		<-ended
	}
}
