package store_test

import (
	"testing"
	"testing/synctest"
	"time"

	"celld/cell"
	"celld/store"
)

// waiter is a caller that waits.
type waiter struct {
	s      *store.Store
	reqs   [1]store.TakeRequest
	doneNS int64 // when it was answered; 0: not yet
	woken  int
}

func (w *waiter) Wake() { w.doneNS = nowNS(); w.woken++ }

func nowNS() int64 { return time.Now().UnixNano() }

func callOf(key string, l *cell.Limit) store.Call { return store.Call{Key: []byte(key), Limit: l} }

func limit(tb failer, text string) *cell.Limit {
	l := mustParse(tb, text)
	return &l
}

// ask asks for a cost on terms.
func ask(s *store.Store, mode store.WaitMode, most time.Duration, cost int64, calls ...store.Call) *waiter {
	w := &waiter{s: s}
	w.reqs[0] = store.TakeRequest{Calls: calls, TakeOptions: store.TakeOptions{Cost: cost, Terms: &store.Terms{Mode: mode, MaxNS: int64(most)}}}
	if s.TakeBatch(w.reqs[:], at(nowNS()), w) {
		w.doneNS = nowNS()
	}
	return w
}

func await(s *store.Store, most time.Duration, cost int64, calls ...store.Call) *waiter {
	return ask(s, store.Wait, most, cost, calls...)
}

func (w *waiter) taken() store.Taken { return w.reqs[0].Taken }
func (w *waiter) err() error         { return w.reqs[0].Err }
func (w *waiter) leave(why error) bool {
	return w.s.Leave(&w.reqs[0], why)
}

// waitingStore is a store in the time of synctest.
func waitingStore() *store.Store {
	return store.New(store.Options{Now: nowNS, Shards: 4, Journal: true})
}

// quiet checks that nobody waits.
func quiet(t failer, s *store.Store) {
	t.Helper()
	if callers, keys := s.Waiting(); callers != 0 || keys != 0 {
		t.Fatalf("%d callers wait for %d keys", callers, keys)
	}
}

// Each of those who wait takes at its own moment, in the order in which they came.
func TestWaitersAreServedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l := waitingStore(), limit(t, "100/1s,burst=1")
		start := nowNS()
		var all []*waiter
		for range 1000 {
			all = append(all, await(s, 20*time.Second, 1, callOf("k", l)))
		}
		if callers, keys := s.Waiting(); callers != 999 || keys != 1 {
			t.Fatalf("%d callers wait for %d keys", callers, keys)
		}
		time.Sleep(10 * time.Second)
		for i, w := range all {
			if got := w.doneNS - start; got != int64(i)*1e7 || w.taken().Limited || w.taken().Granted != 1 || w.err() != nil {
				t.Fatalf("%d: after %d ns: %+v, %v", i, got, w.taken(), w.err())
			}
			if w.woken != min(i, 1) {
				t.Fatalf("%d was woken %d times", i, w.woken)
			}
		}
		quiet(t, s)
	})
}

// While somebody waits a plain call is denied, also when it would pass by itself, and is told when it would pass behind all others.
func TestAPlainCallStandsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l := waitingStore(), limit(t, "10/1s")
		await(s, 0, 9, callOf("k", l))
		w := await(s, time.Second, 10, callOf("k", l)) // in 900 ms
		if w.doneNS != 0 {
			t.Fatal("it does not wait")
		}
		taken, err := s.Take([]store.Call{callOf("k", l)}, store.TakeOptions{Cost: 1}, at(nowNS()))
		if err != nil || !taken.Limited || taken.RetryAfterNS != 1e9 {
			t.Fatalf("%+v, %v", taken, err)
		}
		if w := await(s, 999*time.Millisecond, 1, callOf("k", l)); w.doneNS == 0 || !w.taken().Limited {
			t.Fatal("one that would wait for too long waits")
		}
		last := await(s, time.Second, 1, callOf("k", l))
		if !w.leave(nil) || w.leave(nil) {
			t.Fatal("it does not leave once")
		}
		synctest.Wait()
		if last.doneNS != nowNS() || last.taken().Limited || w.woken != 0 {
			t.Fatal("the next does not pass when the one before it has left")
		}
		quiet(t, s)
	})
}
