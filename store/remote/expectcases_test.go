package remote

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"celld/cell"
	"celld/integration_test/harness"
	"celld/store"
	"celld/store/policy"
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
		inFakeTime(t, Options{}, func(t *testing.T, s *Store, e *harness.Ailing) {
			time.Sleep(c.span)
			now := time.Now()
			if !c.unknown {
				s.link.Clock("k").Observe(now.UnixNano(), now.Add(-c.span), now)
			}
			tat := uint64(0)
			if c.tat != 0 || c.name == "it is reached" {
				tat = uint64(now.UnixNano() + int64(c.tat))
				s.queues.shardOf("k").versions.noteTAT("k", "", cell.Params{}, tat, now, false)
			}
			o := s.throttleOf("k", bucketOf(t, 9, 10, 10), c.quantity)
			o.batch = newBatch(1, make(signal, 2))
			q := &queue{key: "k"}
			if asks := s.expect(q, []*operation{o}); asks != c.asks {
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
			if o.throttle.Decision != want || o.throttle.Err != nil || s.stats.Expected.Load() != 1 || s.stats.ExpectedMissed.Load() != 0 || s.stats.Scripts.Load() != 1 {
				t.Errorf("%s: %+v, %v, want %+v", c.name, o.throttle.Decision, o.throttle.Err, want)
			}
			if known := s.queues.shardOf("k").versions.tat("k"); known != next {
				t.Errorf("%s: %d is known, want %d", c.name, known, next)
			}
		})
	}
}

// Where the engine has something else, its script has decided. Failures are neither met nor missed.
func TestExpectationsThatAreMissed(t *testing.T) {
	for reply, missed := range map[string]int64{
		array(bulk("1700000003000000000"), number(1_700_000_000), number(0), number(0)): 1,
		"-ERR unknown\r\n": 0,
	} {
		inFakeTime(t, Options{}, func(t *testing.T, s *Store, e *harness.Ailing) {
			now := time.Now()
			s.knows("k", uint64(now.UnixNano()+1e9), false)
			e.Answers(reply)
			o := s.throttleOf("k", bucketOf(t, 9, 10, 10), 1)
			o.batch = newBatch(1, make(signal, 2))
			if !s.expect(&queue{key: "k"}, []*operation{o}) {
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

// A forecast tells each in a line how long it waits, behind those before it.
func TestForecasts(t *testing.T) {
	if f := (&forecast{}); f.book(5) != 0 || f.tailNS != 0 {
		t.Error("it knows nothing, and tells", f)
	}
	full := func(limit string) *forecast {
		l := literal(t, limit)
		f := &forecast{known: true, nowNS: atNS, limit: *l}
		f.limit.Decide(&f.st, atNS, l.Capacity(), cell.Take)
		return f
	}
	f := full("1/1s,burst=2")
	for i, want := range []uint64{1e9, 2e9, 4e9} {
		if wait := f.book(int64(1 + i/2)); wait != want || f.tailNS != atNS+int64(want) {
			t.Errorf("%d: %d, the last at %d", i, wait, f.tailNS-atNS)
		}
	}
	f.unbook()
	if wait := f.book(1); wait != 3e9 {
		t.Errorf("after an unbooking: %d", wait)
	}
	if wait := f.book(3); wait != cell.Never || f.tailNS != 1<<63-1 {
		t.Errorf("what never passes: %d, %d", wait, f.tailNS)
	}
	f = full("1/1s,burst=2")
	f.skip(3)
	if wait := f.book(1); wait != 4e9 {
		t.Errorf("behind 3: %d", wait)
	}
	f.skip(0)
	if wait := f.book(1); wait != 5e9 {
		t.Errorf("behind nobody more: %d", wait)
	}
	f = full("2/1s,algo=window")
	f.skip(5) // two windows and a half
	if wait := f.book(1); wait < 2e9 || wait > 3e9 || f.limit.Algo != cell.Window {
		t.Errorf("the third window: %d", wait)
	}
	first := f.tailNS
	if f.book(1); f.tailNS == first {
		t.Error("the third window has more than two")
	}
	f = &forecast{known: true, nowNS: atNS, limit: *literal(t, "2/1s,algo=log"), firstNS: 7e9}
	f.skip(100)
	if wait := f.book(1); wait != 7e9 || f.tailNS != 0 {
		t.Errorf("behind the first, which waits longer: %d", wait)
	}
	if wait := f.book(3); wait != cell.Never {
		t.Errorf("what never passes: %d", wait)
	}
	blocked := full("1/1s,burst=2,block=10s")
	blocked.st.BlockedNS = uint64(atNS + 10e9)
	blocked.skip(1)
	if wait := blocked.book(1); wait < 10e9 {
		t.Errorf("a block ends: %d", wait)
	}
	none := &forecast{limit: f.limit}
	if none.skip(5); none.st.A != 0 || none.st.B != 0 {
		t.Error("it knows nothing, and books", none.st)
	}
}

// The state that a line waits for is its call's own: not another policy's or limit's, and not what leases hold.
func TestTheStateOfACall(t *testing.T) {
	s, _ := byItself(t)
	for _, name := range []string{"api", "other"} {
		if _, err := s.policies.SetPolicy(name, *literal(t, "9/9s"), policy.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	v := s.viewOf(atNS, []string{"k", "tat"})
	defer v.Close()
	v.Table()
	a := store.Access{NowNS: atNS}
	api, other := policyCall(s, "k", "api"), policyCall(s, "k", "other")
	plain, lease := takeCall(t, "k", "5/5s"), takeCall(t, "k", "7/7s")
	for i, c := range []store.Call{api, other, plain} {
		if _, err := v.Take([]store.Call{c}, store.TakeOptions{Cost: int64(1 + i)}, a); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := v.Take([]store.Call{lease}, store.TakeOptions{Cost: 1, Terms: &store.Terms{LeaseNS: 1e9}}, a); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Throttle([]byte("tat"), bucketOf(t, 9, 10, 10), 1, a); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		call   store.Call
		tat    int64
		leased bool
	}{
		{api, 1e9, false}, {other, 2e9, false}, {plain, 3e9, false}, {lease, 0, true}, {takeCall(t, "k", "6/1m,algo=log"), 0, false},
		{takeCall(t, "tat", "5/5s"), 0, false}, {takeCall(t, "none", "5/5s"), 0, false},
	} {
		st, leased := v.stateOf(&c.call)
		if want := uint64(atNS + c.tat); leased != c.leased || !leased && c.tat == 0 && st.A != 0 || c.tat != 0 && st.A != want {
			t.Errorf("%d: %+v, leased %v", i, st, leased)
		}
	}
	text := v.stateText(&store.TakeRequest{Calls: []store.Call{api, plain}})
	if !strings.Contains(text, fmt.Sprint(atNS+1e9)) || !strings.Contains(text, fmt.Sprint(atNS+3e9)) || !strings.HasSuffix(text, " ") {
		t.Errorf("%q", text)
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
		inFakeTime(t, Options{}, func(t *testing.T, s *Store, e *harness.Ailing) {
			mends := time.Now().Add(drainAgain - 1)
			e.AnswersBy(func(command string) string {
				switch {
				case !time.Now().After(mends):
					if strings.Contains(command, commitScript.Digest) || c.reply != "close" {
						return c.reply
					}
				case strings.Contains(command, commitScript.Digest):
					return viewReply("stored", -1)
				}
				return viewReply("read", -1, nothing)
			})
			if c.busy {
				s.queues.bytes.Add(defaultMaxWaiting)
				time.AfterFunc(time.Millisecond, func() { s.queues.bytes.Add(-defaultMaxWaiting) })
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			drained := func() bool { return true }
			if c.drains {
				drained = s.Drain(ctx)
			}
			began, decided := time.Now(), 0
			s.later([]byte("k"), c.twice, func(v *View) {
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
			s.queues.bytes.Add(5)
			if ends {
				time.AfterFunc(drainPause/2, func() { s.drain.left.Add(-1) })
				time.AfterFunc(drainPause*3/2, func() { s.queues.bytes.Add(-5) })
			}
			began := time.Now()
			if is, took := drained(), time.Since(began); is != ends || ends && took != 2*drainPause || !ends && took != 3*drainPause+1 {
				t.Errorf("drained is %v after %v", is, took)
			}
		})
	}
}
