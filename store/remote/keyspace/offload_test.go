package keyspace

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"celld/internal/celldtest"
	"celld/store"
	"celld/store/remote/link"
	"celld/store/remote/link/linktest"
)

// Who asks about all keys is answered at the deadline of its arrival, also where the client waits for a connection that another call makes,
// and where others, which wait for it, take all admission.
func TestQuestionsAboutAllKeysDoNotWaitForAConnection(t *testing.T) {
	s := stuck(t)
	s.Timeout = time.Millisecond
	answered := make(chan error, 4*atOnce)
	for range atOnce {
		s.Scan(t.Context(), store.ScanOptions{Pattern: "*", Count: 10}, func(_ uint64, _ []string, err error) { answered <- err })
		s.Keys(t.Context(), "*", 1000, func(_ []string, err error) { answered <- err })
		s.Size(t.Context(), func(_ int64, err error) { answered <- err })
		s.RandomKey(t.Context(), func(_ string, _ bool, err error) { answered <- err })
	}
	for range cap(answered) {
		select {
		case err := <-answered:
			if !linktest.IsDown(err) || err.Error() != link.CauseTimeout {
				t.Errorf("%v", err)
			}
		case <-time.After(time.Minute):
			t.Fatal("it waits for the connection")
		}
	}
}

// stuck is a Store whose engine has closed the connection, and whose client waits for the next, which another call makes.
func stuck(t *testing.T) *Store {
	t.Helper()
	var away atomic.Bool
	dials, back := make(chan struct{}, 100), make(chan struct{})
	e := celldtest.NewAiling(t)
	s := newStoreBy(t, Options{}, func(ctx context.Context, _ string) (net.Conn, error) {
		if dials <- struct{}{}; away.Load() {
			<-back
		}
		return (&net.Dialer{}).DialContext(ctx, "unix", e.Socket)
	})
	t.Cleanup(func() { close(back) })
	client := s.Link.Client()
	ask := func() error {
		return client.Do(context.Background(), client.B().Set().Key("k").Value("1").Build()).Error()
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	away.Store(true)
	if e.Answers("close"); ask() == nil {
		t.Fatal("the connection is there")
	}
	for range len(dials) {
		<-dials
	}
	go ask()
	<-dials
	return s
}
