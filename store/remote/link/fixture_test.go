package link

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"

	"celld/internal/celldtest"
)

func newLink(o Options) *Link {
	if o.Timeout == 0 {
		o.Timeout = 500 * time.Millisecond
	}
	return New(o)
}

func newTestLink(t testing.TB, socket string, o Options) *Link {
	return newTestLinkBy(t, socket, o, func(s *Link) dialer { return s.Dial })
}

type dialer = func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error)

func newTestLinkBy(t testing.TB, socket string, o Options, dialerOf func(s *Link) dialer) *Link {
	o.Timeout = 10 * time.Second
	s := New(o)
	s.address.Unix = true
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{socket}, DisableCache: true, DisableRetry: true, PipelineMultiplex: -1, ForceSingleClient: true,
		DialCtxFn: dialerOf(s),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	s.client.Store(&client)
	return s
}

// openLink connects a Link until the test ends.
func openLink(t *testing.T, o Options) *Link {
	t.Helper()
	s := newLink(o)
	if err := s.Connect(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// inFakeTime runs a test with a Link and its engine, both in fake time.
func inFakeTime(t *testing.T, o Options, test func(t *testing.T, s *Link, e *celldtest.Ailing)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e, p := celldtest.InPipes(t)
		s := newTestLinkBy(t, "pipe", o, func(s *Link) dialer {
			return func(ctx context.Context, to string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
				conn, err := p.Dial(ctx, to)
				if err != nil {
					return nil, &dialError{err}
				}
				s.made.Add(1)
				s.open.Add(1)
				return &openConn{Conn: conn, open: &s.open}, nil
			}
		})
		test(t, s, e)
		s.stop()
	})
}

func bulk(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

// manyNodes is a client of several engines, as a Cluster's is.
type manyNodes struct {
	rueidis.Client
	all map[string]rueidis.Client
}

func (n manyNodes) Nodes() map[string]rueidis.Client { return n.all }

// aCluster is a Link to a Cluster of ailing engines, by their addresses.
func aCluster(t *testing.T, o Options, addresses ...string) (*Link, map[string]*celldtest.Ailing) {
	t.Helper()
	engines, all := map[string]*celldtest.Ailing{}, map[string]rueidis.Client{}
	var s *Link
	for _, address := range addresses {
		engines[address] = celldtest.NewAiling(t)
		s = newTestLink(t, engines[address].Socket, o)
		all[address] = *s.client.Load()
	}
	client := rueidis.Client(manyNodes{*s.client.Load(), all})
	s.client.Store(&client)
	s.cluster.Store(true)
	return s, engines
}
