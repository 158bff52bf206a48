package remote

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/tidwall/redcon"
)

// pipes are connections within a process. So an engine and its client run in fake time.
type pipes struct {
	conns chan net.Conn
	ended chan struct{}
	once  sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), ended: make(chan struct{})} }

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.ended) })
	return nil
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

func (p *pipes) dial(ctx context.Context, _ string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-p.ended:
		return nil, &dialError{net.ErrClosed}
	case <-ctx.Done():
		return nil, &dialError{ctx.Err()}
	}
}

// inPipes runs an engine behind pipes until the test's bubble ends. At first each command is answered by 1.
func inPipes(t *testing.T) (*ailing, *pipes) {
	t.Helper()
	e, p := &ailing{}, newPipes()
	e.answers(":1\r\n")
	server := redcon.NewServer("", e.serve, nil, nil)
	served := make(chan struct{})
	go func() { _ = server.Serve(p); close(served) }()
	t.Cleanup(func() { _ = server.Close(); <-served })
	return e, p
}

// inFakeTime runs a test with a Store and its engine, both in fake time.
func inFakeTime(t *testing.T, o Options, test func(t *testing.T, s *Store, e *ailing)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e, p := inPipes(t)
		s := newTestStoreBy(t, "pipe", o, func(s *Store) dialer {
			return func(ctx context.Context, to string, d *net.Dialer, c *tls.Config) (net.Conn, error) {
				conn, err := p.dial(ctx, to, d, c)
				if err != nil {
					return nil, err
				}
				s.link.made.Add(1)
				s.link.open.Add(1)
				return &openConn{Conn: conn, open: &s.link.open}, nil
			}
		})
		test(t, s, e)
		s.waits.close()
		s.failure.close()
	})
}
