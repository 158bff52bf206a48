// Package sessiontest is what tests of sessions share: connections that gather replies, the parts of a service, disks that fail, engines.
package sessiontest

import (
	"bytes"
	"net"
	"strings"
	"sync"
	"testing"

	"celld/resp/transport"
	"celld/resp/wire"
)

// Conn gathers what a session sends.
type Conn struct {
	mu      sync.Mutex
	Sent    bytes.Buffer
	Pending int // what Send says the peer has not taken
	Closed  bool
	Wakes   int
	Paused  bool
	paused  bool // since the last Turn
	woken   bool // since then
}

func (t *Conn) Send(p []byte) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Sent.Write(p)
	return t.Pending
}

func (*Conn) Hold() func() { return func() {} }

func (t *Conn) Close(bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Closed = true
}

func (t *Conn) Wake() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Wakes++
	t.Paused, t.woken = false, true
}

func (t *Conn) Pause(bool) { // only Serve calls it, whose Wakes a session minds itself
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Paused, t.paused = true, true
}

// Turn says that the session is served now: so it waits only where it pauses again.
func (t *Conn) Turn() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Paused, t.paused, t.woken = false, false, false
}

// IsPaused reports whether the session waits, and nothing has woken it since the last Turn.
func (t *Conn) IsPaused() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.paused && !t.woken
}

// HasMore reports whether the session has waited in its last turn, so that another is due.
func (t *Conn) HasMore() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.paused
}

func (t *Conn) ServeOthers(bool) {}
func (t *Conn) Resume()          {}
func (t *Conn) RoundNS() int64   { return 0 }

// Take returns what was sent since the last take.
func (t *Conn) Take() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.Sent.Reset()
	return t.Sent.String()
}

// Do runs a command as a new client, and returns its reply, or why the client is refused.
func Do(server transport.Server, words ...string) string { return Send(server, Frame(words...)) }

// Send sends bytes as a new client.
func Send(server transport.Server, raw string) string {
	s, refusal, _ := server.Admit(RemoteAddr, LocalAddr)
	if s == nil {
		return refusal
	}
	p := &Peer{s: s, c: &patient{awake: make(chan struct{}, 1)}}
	s.Open(p.c, -1)
	defer s.Closed()
	return p.Say(raw)
}

// Peer is a client of a server.
type Peer struct {
	t testing.TB
	s transport.Session
	c *patient
}

// Connect returns a new client.
func Connect(t testing.TB, server transport.Server) *Peer {
	t.Helper()
	s, refusal, _ := server.Admit(RemoteAddr, LocalAddr)
	if s == nil {
		t.Fatalf("refused: %s", refusal)
	}
	p := &Peer{t, s, &patient{awake: make(chan struct{}, 1)}}
	s.Open(p.c, -1)
	return p
}

// Say sends bytes, and returns what the client has got since.
func (p *Peer) Say(raw string) string {
	for more := p.s.Serve([]byte(raw)); more || p.c.HasMore(); more = p.s.Serve(nil) {
		if !more {
			<-p.c.awake
		}
		p.c.Turn()
	}
	return p.c.Take()
}

// Do sends a command, and returns its reply.
func (p *Peer) Do(words ...string) string { return p.Say(Frame(words...)) }

// Want fails the test where a command, written as blank-separated words, is not answered so.
func (p *Peer) Want(command, reply string) {
	p.t.Helper()
	if got := p.Do(strings.Fields(command)...); got != reply {
		p.t.Errorf("%s\n got %q\nwant %q", command, got, reply)
	}
}

// patient is a Conn whose session is served when it is woken.
type patient struct {
	Conn
	awake chan struct{} // holds one
}

func (p *patient) Wake() {
	p.Conn.Wake()
	select {
	case p.awake <- struct{}{}:
	default:
	}
}

var (
	LocalAddr  = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 6379}
	RemoteAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4711}
)

func Frame(words ...string) string { return string(wire.AppendCommand(nil, words...)) }

// StartNS is some instant in 2026.
const StartNS = 1_790_000_000_000_000_000
