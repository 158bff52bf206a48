package remote

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"celld/internal/celldtest"
	"celld/store"
	"celld/store/remote/link/linktest"
	"celld/store/remote/view"
)

// A call is decided by the TAT that its key had last only where it is the same at both ends of what is known of the time, and something is
// to be stored.
func TestWhatIsExpected(t *testing.T) {
	for _, c := range []struct {
		name     string
		tat      time.Duration // after now; 0: none is known
		span     time.Duration // to which the time is known
		unknown  bool
		quantity int64
		asks     bool
	}{
		{"it passes", 2 * time.Second, 0, false, 1, true},
		{"a refund of a part", 2 * time.Second, 0, false, -1, true},
		{"a refund of all", 2 * time.Second, 0, false, -2, false},
		{"nothing is known", 0, 0, false, 1, false},
		{"it has been reached", -1, 0, false, 1, false},
		{"it is reached", 0, 0, false, 1, false},
		{"the last nanosecond", 1, 0, false, 1, true},
		{"a peek", 2 * time.Second, 0, false, 0, false},
		{"it is denied", 10 * time.Second, 0, false, 1, false},
		{"the time is not known", 2 * time.Second, 0, true, 1, false},
		{"it passes meanwhile", 9*time.Second + time.Millisecond, 4 * time.Millisecond, false, 1, false},
		{"it passes all the time", 9*time.Second - 4*time.Millisecond, 4 * time.Millisecond, false, 1, true},
		{"it is reached meanwhile", time.Millisecond, 4 * time.Millisecond, false, 1, false},
	} {
		inFakeTime(t, Options{}, func(t *testing.T, s *Store, e *celldtest.Ailing) {
			celldtest.Pass(c.span)
			now := time.Now()
			if !c.unknown {
				s.link.Clock("k").Observe(now.UnixNano(), now.Add(-c.span), now)
			}
			tat := uint64(0)
			if c.tat != 0 || c.name == "it is reached" {
				tat = uint64(now.UnixNano() + int64(c.tat))
				s.tatCache.note("k", cachedTAT{tatNS: tat, got: now})
			}
			o := s.throttleOf("k", bucketOf(t, 9, 10, 10), c.quantity)
			o.pending = newPending(1, make(signal, 2))
			if asks := s.deciding(o).expect(); asks != c.asks {
				t.Errorf("%s: %v", c.name, asks)
			}
			synctest.Wait()
			if !c.asks {
				if e.Count() != 0 || s.stats.Scripts.Load() != 0 {
					t.Errorf("%s: asked %q", c.name, e.Commands())
				}
				return
			}
			next, want, _ := o.throttle.Bucket.Throttle(tat, now.UnixNano()+int64(c.span)+int64(c.span)/1000, c.quantity)
			words := strings.Split(e.Commands()[0], " ")
			if got := strings.Join(words[3:6], " "); words[1] != expectScript.Digest || got != fmt.Sprint("k ", tat, " ", next) {
				t.Errorf("%s: asked %s, want %d and %d", c.name, got, tat, next)
			}
			if o.throttle.Decision != want || o.throttle.Err != nil || s.stats.Expected.Load() != 1 || s.stats.ExpectedMissed.Load() != 0 ||
				s.stats.Scripts.Load() != 1 {
				t.Errorf("%s: %+v, %v, want %+v", c.name, o.throttle.Decision, o.throttle.Err, want)
			}
			if known := s.tatCache.tat("k"); known != next {
				t.Errorf("%s: %d is known, want %d", c.name, known, next)
			}
		})
	}
}

// Where the engine has something else, its script has decided. Failures are neither met nor missed.
func TestExpectationsThatAreMissed(t *testing.T) {
	for reply, missed := range map[string]int64{
		celldtest.ArrayOf(celldtest.BulkOf("1700000003000000000"), celldtest.IntOf(1_700_000_000), celldtest.IntOf(0), celldtest.IntOf(0)): 1,
		"-ERR unknown\r\n": 0,
	} {
		inFakeTime(t, Options{}, func(t *testing.T, s *Store, e *celldtest.Ailing) {
			now := time.Now()
			s.knows("k", uint64(now.UnixNano()+1e9), false)
			e.Answers(reply)
			o := s.throttleOf("k", bucketOf(t, 9, 10, 10), 1)
			o.pending = newPending(1, make(signal, 2))
			if !s.deciding(o).expect() {
				t.Fatal("nothing is expected")
			}
			synctest.Wait()
			if s.stats.Expected.Load() != 0 || s.stats.ExpectedMissed.Load() != missed {
				t.Errorf("%d met, %d missed", s.stats.Expected.Load(), s.stats.ExpectedMissed.Load())
			}
			if d := o.throttle.Decision; (o.throttle.Err == nil) != (missed > 0) || missed > 0 && d.ResetAfterNS != 4e9 {
				t.Errorf("%+v, %v", d, o.throttle.Err)
			}
		})
	}
}

// What nobody waits for is asked again only while the Store is drained, and only where the engine cannot have done it, or may do it twice.
func TestWhatIsAskedAgain(t *testing.T) {
	for _, c := range []struct {
		name          string
		reply         string
		twice, drains bool
		busy          bool
		again         bool
	}{
		{"nobody drains", "-LOADING x\r\n", false, false, false, false},
		{"not done", "-LOADING x\r\n", false, true, false, true},
		{"lost", "close", false, true, false, false},
		{"lost, may be done twice", "close", true, true, false, true},
		{"an error", "-ERR x\r\n", true, true, false, false},
		{"too much waits", "", false, true, true, true},
	} {
		inFakeTime(t, Options{}, func(t *testing.T, s *Store, e *celldtest.Ailing) {
			mends := time.Now().Add(drainAgain - 1)
			e.AnswersBy(func(command string) string {
				switch {
				case !time.Now().After(mends):
					if commits(command) || c.reply != "close" {
						return c.reply
					}
				case commits(command):
					return linktest.ViewReply("stored", -1)
				}
				return linktest.ViewReply("read", -1, nothing)
			})
			if c.busy {
				large := s.heldUp(strings.Repeat("x", defaultMaxWaiting-300))
				time.AfterFunc(time.Millisecond, func() { large.End(nil) })
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			drained := func() bool { return true }
			if c.drains {
				drained = s.Drain(ctx)
			}
			began, decided := time.Now(), 0
			s.later([]byte("k"), c.twice, func(v *view.View) {
				decided++
				_, err := v.Throttle([]byte("k"), bucketOf(t, 9, 10, 10), 1, store.Access{NowNS: v.NowNS})
				if err != nil {
					t.Error(err)
				}
			})
			if s.drain.left.Load() == 0 && c.again {
				t.Errorf("%s: nothing is left", c.name)
			}
			synctest.Wait()
			if !drained() {
				t.Errorf("%s: not drained", c.name)
			}
			if waited := time.Since(began) >= drainAgain; waited != c.again || s.drain.left.Load() != 0 {
				t.Errorf("%s: after %v, %d left", c.name, time.Since(began), s.drain.left.Load())
			}
		})
	}
}

// Who drains waits for what is left, and for calls that are not answered, in steps; or until it may not wait longer.
func TestForHowLongADrainWaits(t *testing.T) {
	for _, ends := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s, _ := byItself(t)
			ctx, cancel := context.WithTimeout(t.Context(), 3*drainPause+1)
			defer cancel()
			drained := s.Drain(ctx)
			if !drained() {
				t.Error("nothing is left, and it waits")
			}
			s.drain.left.Add(1)
			other := s.heldUp("other")
			if ends {
				time.AfterFunc(drainPause/2, func() { s.drain.left.Add(-1) })
				time.AfterFunc(drainPause*3/2, func() { other.End(nil) })
			}
			began := time.Now()
			if is, took := drained(), time.Since(began); is != ends || ends && took != 2*drainPause || !ends && took != 3*drainPause+1 {
				t.Errorf("drained is %v after %v", is, took)
			}
		})
	}
}
