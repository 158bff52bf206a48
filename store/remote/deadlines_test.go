package remote

import (
	"context"
	"errors"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"celld/integration_test/harness"
	"celld/store"
	"celld/store/policy"
)

// inOwnTime checks that a call fails by its own deadline. It may fail before, as another that is late takes the connection with it.
func inOwnTime(t *testing.T, s *Store, what string, ask func(done func(error))) {
	t.Helper()
	began := time.Now()
	ask(func(err error) {
		if took := time.Since(began); !isDown(err) || took > s.options.Timeout+alike {
			t.Errorf("%s: %v after %v", what, err, took)
		}
	})
}

// A change of policies or rules has its own deadline, and not that of what goes before it: another change, or the question whether there is
// something new.
func TestChangesOfSettingsEndInTheirOwnTime(t *testing.T) {
	inFakeTime(t, Options{}, func(t *testing.T, s *Store, e *harness.Ailing) {
		s.options.Timeout = 500 * time.Millisecond
		s.byHand()
		e.Hangs(t)
		rule := policy.Rule{Deny: true, Pattern: "x"}
		for name, change := range map[string]func(done func(bool, error)){
			"SetPolicy":    func(done func(bool, error)) { s.SetPolicy("p", *literal(t, "1/1s"), policy.Options{}, done) },
			"DeletePolicy": func(done func(bool, error)) { s.DeletePolicy("p", done) },
			"PutRule":      func(done func(bool, error)) { s.PutRule(rule, 0, done) },
			"DeleteRule":   func(done func(bool, error)) { s.DeleteRule(rule, done) },
		} {
			r := &s.settings.policies
			if strings.HasSuffix(name, "Rule") {
				r = &s.settings.rules
			}
			var answered atomic.Int64
			for range 5 {
				inOwnTime(t, s, name, func(done func(error)) { change(func(_ bool, err error) { answered.Add(1); done(err) }) })
				time.Sleep(10 * time.Millisecond)
				r.read(func() { answered.Add(1) })
				time.Sleep(10 * time.Millisecond)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if r.mu.Lock(); answered.Load() != 10 || r.busy || len(r.waiting) > 0 {
				t.Errorf("%s: %d of 10 are answered, and the next may be asked: %v", name, answered.Load(), !r.busy)
			}
			r.mu.Unlock()
		}
	})
}

// A change that is made, and is to read what others have changed before it, is answered by its deadline, too.
func TestAChangeThatReadsEndsInItsOwnTime(t *testing.T) {
	inFakeTime(t, Options{}, func(t *testing.T, s *Store, e *harness.Ailing) {
		s.options.Timeout = 500 * time.Millisecond
		s.byHand()
		forever := make(chan bool)
		t.Cleanup(func() { close(forever) })
		e.AnswersBy(func(command string) string {
			if strings.Contains(command, setPolicy.Digest) {
				time.Sleep(400 * time.Millisecond)
				return "*4\r\n:1\r\n$1\r\n5\r\n$1\r\n6\r\n$8\r\n1/1s 123\r\n"
			}
			if strings.Contains(command, readSettings.Digest) {
				<-forever
			}
			return ":1\r\n"
		})
		began := time.Now()
		set, err := told(t, func(done func(bool, error)) { s.SetPolicy("p", *literal(t, "1/1s"), policy.Options{}, done) })
		if took := time.Since(began); !set || err != nil || took > s.options.Timeout+alike {
			t.Errorf("%v, %v after %v", set, err, took)
		}
		if s.policies.PolicyNamed("p") == nil {
			t.Error("this process does not have it")
		}
	})
}

// A request does not wait in its lane for those under way that have more time.
func TestARequestBehindOneWithMoreTime(t *testing.T) {
	inFakeTime(t, Options{}, func(t *testing.T, s *Store, e *harness.Ailing) {
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

// FLUSHALL deletes what a step has found within that step's time.
func TestAStepOfFlushEndsInItsOwnTime(t *testing.T) {
	inFakeTime(t, Options{Prefix: "p:"}, func(t *testing.T, s *Store, e *harness.Ailing) {
		s.options.Timeout = 500 * time.Millisecond
		s.byHand()
		forever := make(chan bool)
		t.Cleanup(func() { close(forever) })
		e.AnswersBy(func(command string) string {
			if strings.HasPrefix(command, "SCAN") {
				time.Sleep(400 * time.Millisecond)
				return "*2\r\n$1\r\n0\r\n*1\r\n$3\r\np:a\r\n"
			}
			<-forever
			return ":1\r\n"
		})
		ended := make(chan bool)
		inOwnTime(t, s, "FLUSHALL", func(done func(error)) {
			s.Flush(func(err error) { done(err); close(ended) })
		})
		<-ended
	})
}

// One with WAIT that was not looked at in time has no further Timeout for that.
func TestAWaiterThatWasNotLookedAt(t *testing.T) {
	atADesk(t, []string{"k"}, func(d *desk) {
		d.waits(0, d.call("k", tenSeconds))
		tried := d.take()
		time.Sleep(time.Millisecond)
		began := time.Now()
		d.waits(10*time.Millisecond, d.call("k", tenSeconds))
		time.Sleep(10*time.Millisecond + d.s.options.Timeout)
		if d.asked() != 1 {
			t.Fatal("it is not refused")
		}
		if by := d.q["k"].waiting[0].deadline; by.After(began.Add(10*time.Millisecond + d.s.options.Timeout)) {
			t.Errorf("it is answered by %v after its arrival", by.Sub(began))
		}
		d.decide(tried)
		tried.done(nil)
		d.all()
	})
}

// The client holds goroutines while it connects to an engine that is away. However many calls come meanwhile, and however short their time
// is, these are few, and calls go on when it is back.
func TestFewGoroutinesAreLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, p := harness.InPipes(t)
		var away atomic.Bool
		comesBack := make(chan struct{})
		s := newTestStoreBy(t, Options{}, func(ctx context.Context, to string) (net.Conn, error) {
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
		if err := s.askFor("k", patient); !isDown(err) {
			t.Fatal(err)
		}
		e.Answers(":1\r\n")
		s.options.Timeout = time.Millisecond
		before, most := runtime.NumGoroutine(), 0
		const calls = 10_000
		for i := range calls {
			switch i % 10 {
			case 0:
				failed := make(chan error, 1)
				s.Scan(t.Context(), ScanOptions{Pattern: "*", Count: 10}, func(_ uint64, _ []string, err error) { failed <- err })
				if err := <-failed; !isDown(err) {
					t.Fatal(err)
				}
			default:
				reqs := []store.Request{{Key: []byte{byte(i), byte(i >> 8)}, Bucket: bucketOf(t, 9, 10, 10), Quantity: 1}}
				if s.throttleNow(reqs, store.Access{}); !isDown(reqs[0].Err) {
					t.Fatal(reqs[0].Err)
				}
			}
			most = max(most, runtime.NumGoroutine()-before)
		}
		if bound := mostLeft + inFlight + mostAsking + 10; most > bound || most < mostLeft {
			t.Errorf("%d goroutines are left behind by %d calls, want %d at most", most, calls, bound)
		}
		s.options.Timeout = patient
		away.Store(false)
		close(comesBack)
		if err := s.askFor("k", patient); err != nil {
			t.Error(err)
		}
		s.waits.close()
		s.link.Close()
	})
}
