package celldtest

import (
	"context"
	"net"
	"sync"
	"testing"

	"github.com/tidwall/redcon"
)

// Pipes are connections within a process. So a server and its clients run in fake time.
type Pipes struct {
	conns chan net.Conn
	ended chan struct{}
	once  sync.Once
}

// NewPipes makes a listener whose connections are pipes.
func NewPipes() *Pipes { return &Pipes{conns: make(chan net.Conn), ended: make(chan struct{})} }

func (p *Pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func (p *Pipes) Close() error {
	p.once.Do(func() { close(p.ended) })
	return nil
}

func (p *Pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

// Ended is closed when the listener is.
func (p *Pipes) Ended() <-chan struct{} { return p.ended }

// Dial connects to who accepts, whatever the address.
func (p *Pipes) Dial(ctx context.Context, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-p.ended:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// InPipes runs an engine behind pipes until the test's bubble ends. At first each command is answered by 1.
func InPipes(t *testing.T) (*Ailing, *Pipes) {
	t.Helper()
	e, p := &Ailing{}, NewPipes()
	e.Answers(":1\r\n")
	server := redcon.NewServer("", e.serve, nil, nil)
	served := make(chan struct{})
	go func() { _ = server.Serve(p); close(served) }()
	t.Cleanup(func() { _ = server.Close(); <-served })
	return e, p
}
