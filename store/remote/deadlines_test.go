package remote

import (
	"context"
	"errors"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"celld/internal/celldtest"
	"celld/store"
	"celld/store/remote/link/linktest"
)

// A request does not wait in its pipeline for those under way that have more time.
func TestARequestBehindOneWithMoreTime(t *testing.T) {
	inFakeTime(t, Options{}, func(t *testing.T, s *Store, e *celldtest.Ailing) {
		s.byHand()
		e.Hangs(t)
		go s.askFor("k", patient)
		synctest.Wait()
		began := time.Now()
		answered := make(chan time.Duration, 10)
		for _, left := range []time.Duration{3, 1, 2, 5, 4} {
			go func() {
				err := s.askFor("k", left*time.Second)
				if down := (*DownError)(nil); !errors.As(err, &down) || down.Sent {
					t.Errorf("%v: %v", left, err)
				}
				answered <- time.Since(began) / time.Second
			}()
		}
		for want := range time.Duration(5) {
			if got := <-answered; got != want+1 {
				t.Errorf("answered after %d s, want %d", got, want+1)
			}
		}
	})
}

// The client holds goroutines while it connects to an engine that is away. However many calls come meanwhile, and however short their time
// is, these are few, and calls go on when it is back.
func TestFewGoroutinesAreLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, p := celldtest.InPipes(t)
		var away atomic.Bool
		comesBack := make(chan struct{})
		s := newTestStoreBy(t, Options{Timeout: time.Millisecond}, func(ctx context.Context, to string) (net.Conn, error) {
			if away.Load() {
				<-comesBack
			}
			return p.Dial(context.Background(), to)
		})
		s.byHand() // whatever calls end like, the next is sent
		if err := s.askFor("k", patient); err != nil {
			t.Fatal(err)
		}
		away.Store(true)
		e.Answers("close")
		if err := s.askFor("k", patient); !linktest.IsDown(err) {
			t.Fatal(err)
		}
		e.Answers(":1\r\n")
		before, most := runtime.NumGoroutine(), 0
		const calls = 10_000
		for i := range calls {
			switch i % 10 {
			case 0:
				failed := make(chan error, 1)
				s.Scan(t.Context(), store.ScanOptions{Pattern: "*", Count: 10}, func(_ uint64, _ []string, err error) { failed <- err })
				if err := <-failed; !linktest.IsDown(err) {
					t.Fatal(err)
				}
			default:
				reqs := []store.Request{{Key: []byte{byte(i), byte(i >> 8)}, Bucket: bucketOf(t, 9, 10, 10), Quantity: 1}}
				if s.throttleNow(reqs, store.Access{}); !linktest.IsDown(reqs[0].Err) {
					t.Fatal(reqs[0].Err)
				}
			}
			most = max(most, runtime.NumGoroutine()-before)
		}
		if bound := mostLeft + inFlight + 1000 + 10; most > bound || most < mostLeft {
			t.Errorf("%d goroutines are left behind by %d calls, want %d at most", most, calls, bound)
		}
		away.Store(false)
		close(comesBack)
		if err := s.askFor("k", patient); err != nil {
			t.Error(err)
		}
		s.waits.Close()
		s.link.Close()
	})
}
