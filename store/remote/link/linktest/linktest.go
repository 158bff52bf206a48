// Package linktest connects Links to the engines of tests.
//
//	l, hands := linktest.Dial(t, dial, link.Options{Timeout: time.Second})    // hands move the clock that its breakers go by
package linktest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"

	"celld/cell"
	"celld/internal/celldtest"
	"celld/internal/enginetest"
	"celld/store/remote/link"
)

// Dialer connects to an engine, whatever the address.
type Dialer = func(ctx context.Context, to string) (net.Conn, error)

// Dial returns a Link that connects by dial, and does not watch its engine.
func Dial(t testing.TB, dial Dialer, o link.Options) (*link.Link, *celldtest.Hands) {
	t.Helper()
	h := &celldtest.Hands{}
	o.Dial, o.Now, o.After = dial, h.Now, h.After
	l := link.New(o)
	Use(t, l)
	return l, h
}

// Use connects a Link, whose Options have a Dial.
func Use(t testing.TB, l *link.Link) {
	t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{"engine"}, DisableCache: true, DisableRetry: true, PipelineMultiplex: -1,
		ForceSingleClient: true, ClientSetInfo: rueidis.DisableClientSetInfo, DialCtxFn: l.Dial,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	l.Use(client)
}

// Socket is a dial of a unix socket.
func Socket(socket string) Dialer {
	return func(ctx context.Context, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
}

// InFakeTime runs a test with an engine, both in fake time.
func InFakeTime(t *testing.T, test func(t *testing.T, e *celldtest.Ailing, dial Dialer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e, p := celldtest.InPipes(t)
		test(t, e, p.Dial)
	})
}

// inCluster is a client of a Cluster.
type inCluster struct{ rueidis.Client }

func (inCluster) Mode() rueidis.ClientMode { return rueidis.ClientModeCluster }

// InCluster makes a Link take its engine for a Cluster.
func InCluster(l *link.Link) { l.Use(inCluster{l.Client()}) }

// StartRedis runs redis-server until the test ends, and returns its socket.
func StartRedis(t testing.TB) (socket string) {
	t.Helper()
	return strings.TrimPrefix(celldtest.StartRedis(t), "unix:")
}

// Simulate runs a simulated engine, whose clock is in Unix ns, and returns a dial of it.
func Simulate(t testing.TB, clock func() int64) Dialer {
	e := enginetest.Start(t, enginetest.Options{Clock: func(int) int64 { return clock() }})
	return func(ctx context.Context, _ string) (net.Conn, error) { return e.Dial(ctx, e.Addrs()[0]) }
}

// OnEngines runs a test on a simulated engine, whose clock is nowNS, and on a redis-server.
func OnEngines(t *testing.T, nowNS func() int64, test func(t *testing.T, dial Dialer, simulated bool)) {
	t.Helper()
	t.Run("simulated", func(t *testing.T) { test(t, Simulate(t, nowNS), true) })
	t.Run("redis-server", func(t *testing.T) { test(t, Socket(StartRedis(t)), false) })
}

// Do runs a command on the engine.
func Do(t testing.TB, l *link.Link, args ...string) *rueidis.RedisMessage {
	t.Helper()
	m, err := l.Client().Do(context.Background(), l.Client().B().Arbitrary(args...).Build()).ToMessage()
	if err != nil && !rueidis.IsRedisNil(err) {
		t.Fatalf("%v: %v", args, err)
	}
	return &m
}

// ViewReply is what a view's script answers at this moment of the engine's.
func ViewReply(did string, before int64, contents ...string) string {
	now := time.Now()
	head := []string{
		celldtest.BulkOf(did), celldtest.BulkOf(fmt.Sprint(now.Unix())), celldtest.BulkOf(fmt.Sprint(now.Nanosecond() / 1000)),
		celldtest.IntOf(before),
	}
	return celldtest.ArrayOf(append(head, contents...)...)
}

// Literal parses a limit, which must be one.
func Literal(t testing.TB, text string) *cell.Limit {
	t.Helper()
	l, err := cell.ParseLimit(text)
	if err != nil {
		t.Fatal(err)
	}
	return &l
}

// Down is the error of an engine that cannot be asked.
var Down = &link.DownError{Cause: "a test says so", Sent: true}

// IsDown reports whether an error says that the engine cannot be asked.
func IsDown(err error) bool { return errors.As(err, new(*link.DownError)) }

// Late is how long after its deadline a call may fail. It may be in a pipeline with others, whose deadlines lie so close together.
const Late = 20 * time.Millisecond

// InOwnTime checks that a call fails by its own deadline. It may fail before, as another that is late takes the connection with it.
func InOwnTime(t testing.TB, timeout time.Duration, what string, ask func(done func(error))) {
	t.Helper()
	began := time.Now()
	ask(func(err error) {
		if took := time.Since(began); !IsDown(err) || took > timeout+Late {
			t.Errorf("%s: %v after %v", what, err, took)
		}
	})
}

// Told waits for a change's answer.
func Told(t testing.TB, change func(done func(bool, error))) (did bool, err error) {
	t.Helper()
	answered := make(chan struct{})
	change(func(d bool, e error) {
		did, err = d, e
		close(answered)
	})
	<-answered
	return did, err
}
