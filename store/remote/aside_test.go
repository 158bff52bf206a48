package remote

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// Who asks about all keys is answered at the deadline of its arrival, also where the client waits for a connection that another call makes,
// and where all turns are taken by others that wait for it.
func TestQuestionsAboutAllKeysDoNotWaitForAConnection(t *testing.T) {
	var away atomic.Bool
	dials, comesBack := make(chan struct{}, 100), make(chan struct{})
	e := newAiling(t)
	s := newTestStoreBy(t, e.socket, Options{}, func(s *Store) dialer {
		return func(ctx context.Context, to string, d *net.Dialer, config *tls.Config) (net.Conn, error) {
			if dials <- struct{}{}; away.Load() {
				<-comesBack
			}
			return s.dial(ctx, to, d, config)
		}
	})
	t.Cleanup(func() { close(comesBack) })
	s.byHand()
	if err := s.askFor("k", patient); err != nil {
		t.Fatal(err)
	}
	away.Store(true)
	e.answers("close")
	if err := s.askFor("k", patient); !isDown(err) {
		t.Fatal(err)
	}
	for range len(dials) {
		<-dials
	}
	client := *s.client.Load()
	go client.Do(context.Background(), client.B().Ping().Build())
	<-dials
	s.options.Timeout = time.Millisecond
	answered := make(chan error, 4*stepsAtOnce)
	for range stepsAtOnce {
		s.Scan(t.Context(), ScanOptions{Pattern: "*", Count: 10}, func(_ uint64, _ []string, err error) { answered <- err })
		s.Keys(t.Context(), "*", 1000, func(_ []string, err error) { answered <- err })
		s.Size(t.Context(), func(_ int64, err error) { answered <- err })
		s.RandomKey(t.Context(), func(_ string, _ bool, err error) { answered <- err })
	}
	for range cap(answered) {
		select {
		case err := <-answered:
			if !isDown(err) || err.Error() != causeTimeout {
				t.Errorf("%v", err)
			}
		case <-time.After(patient / 2):
			t.Fatal("it waits for the connection")
		}
	}
}
