// Package linktest connects Links to the engines of tests.
//
//	l, hands := linktest.Dial(t, dial, link.Options{Timeout: time.Second})    // hands move the clock that its breakers go by
package linktest

import (
	"context"
	"net"
	"testing"
	"testing/synctest"

	"github.com/redis/rueidis"

	"celld/integration_test/harness"
	"celld/store/remote/link"
)

// Dial returns a Link to an engine that is connected to by dial, and that nobody watches.
func Dial(t testing.TB, dial func(ctx context.Context, to string) (net.Conn, error), o link.Options) (*link.Link, *harness.Hands) {
	t.Helper()
	h := &harness.Hands{}
	o.Dial, o.Now, o.After = dial, h.Now, h.After
	l := link.New(o)
	Use(t, l)
	return l, h
}

// Use connects a Link, whose Options have a Dial.
func Use(t testing.TB, l *link.Link) {
	t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{"engine"}, DisableCache: true, DisableRetry: true, PipelineMultiplex: -1, ForceSingleClient: true, DialCtxFn: l.Dial,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	l.Use(client)
}

// Socket is a dial of a unix socket.
func Socket(socket string) func(ctx context.Context, to string) (net.Conn, error) {
	return func(ctx context.Context, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
}

// InFakeTime runs a test with an engine, both in fake time.
func InFakeTime(t *testing.T, test func(t *testing.T, e *harness.Ailing, dial func(ctx context.Context, to string) (net.Conn, error))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e, p := harness.InPipes(t)
		test(t, e, p.Dial)
	})
}

// inCluster is a client of a Cluster.
type inCluster struct{ rueidis.Client }

func (inCluster) Mode() rueidis.ClientMode { return rueidis.ClientModeCluster }

// InCluster has a Link take its engine for a Cluster.
func InCluster(l *link.Link) { l.Use(inCluster{l.Client()}) }
