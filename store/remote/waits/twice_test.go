package waits

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"celld/internal/celldtest"
	"celld/store"
	"celld/store/remote/link"
	"celld/store/remote/link/linktest"
	"celld/store/remote/queue"
	"celld/store/remote/view"
)

// holder holds up what is asked of its key, until its batch goes on.
type holder struct {
	queue.Common
	batch chan *queue.Group
}

func (h *holder) GoesWith(first queue.Operation) bool { return first == h }
func (h *holder) Send(b *queue.Group)                 { h.batch <- b }
func (h *holder) Answer(error)                        {}

// heldUp holds up all that is asked of a key, until the returned function is called.
func (s *Store) heldUp(key string) (goOn func()) {
	h := &holder{Common: queue.Common{Key: s.waits.Prefix + key, Deadline: time.Now().Add(time.Hour)}, batch: make(chan *queue.Group, 1)}
	s.queues.Enqueue(h)
	return (<-h.batch).Next // what was asked before it may not have ended yet
}

type wakes struct{ atomic.Int32 }

func (w *wakes) Wake() { w.Add(1) }

// expiresHeldUp makes a call with WAIT whose key is held up, and returns when its deadline has come.
func (s *Store) expiresHeldUp(t *testing.T, w store.Waker, key string) (reqs []store.TakeRequest, goOn func()) {
	t.Helper()
	goOn = s.heldUp(key)
	terms := store.Terms{Mode: store.Wait, MaxNS: int64(time.Millisecond)}
	reqs = []store.TakeRequest{{Calls: []store.Call{takeCall(t, key, "1/1h")}, TakeOptions: store.TakeOptions{Cost: 1, Terms: &terms}}}
	if s.TakeBatch(reqs, store.Access{NowNS: time.Now().UnixNano()}, w) {
		t.Fatal("it does not wait")
	}
	s.waits.mu.Lock()
	v := s.waits.room.Find(&reqs[0])
	v.deadline = time.Now() // and not a timeout later, which is what the try has
	v.Timer.Reset(0)
	s.waits.mu.Unlock()
	celldtest.Eventually(t, "its deadline comes", func() bool {
		s.waits.mu.Lock()
		defer s.waits.mu.Unlock()
		return v.trial == late
	})
	return reqs, goOn
}

// A call whose deadline comes while a try is under way for it is answered once, and not at all if its caller goes away then.
func TestDeadlineDuringTry(t *testing.T) {
	s := testStores(t, 1)[0]
	s.plainly(t, 1, takeCall(t, "k", "1/1h"))
	for _, goes := range []bool{false, true} {
		var w wakes
		reqs, goOn := s.expiresHeldUp(t, &w, "k")
		want := int32(1)
		if goes {
			want = 0
			s.Leave(&reqs[0], nil)
		}
		goOn()
		s.plainly(t, 1, takeCall(t, "k", "1/1h")) // it comes behind all that was asked
		celldtest.Eventually(t, "the line ends", func() bool { _, keys := s.Waiting(); return keys == 0 })
		s.plainly(t, 1, takeCall(t, "k", "1/1h"))
		if n := w.Load(); n != want {
			t.Errorf("it goes: %v; answered %d times", goes, n)
		}
	}
}

// A call that a try grants passes, though its deadline has come before the engine's answer.
func TestGrantedBehindItsDeadline(t *testing.T) {
	s := testStores(t, 1)[0]
	var w wakes
	reqs, goOn := s.expiresHeldUp(t, &w, "k")
	goOn()
	celldtest.Eventually(t, "the line ends", func() bool { _, keys := s.Waiting(); return keys == 0 && w.Load() > 0 })
	if got := reqs[0]; got.Err != nil || got.Taken.Limited || w.Load() != 1 {
		t.Errorf("%+v, %v, answered %d times", got.Taken, got.Err, w.Load())
	}
}

// Of those who wait when the engine fails, only those may have been counted that the try has granted something.
func TestWhoOfAFailedLineMayHaveBeenCounted(t *testing.T) {
	s := testStores(t, 1)[0]
	asked := make(chan *view.Change, 10)
	s.waits.Enqueue = func(c *view.Change) { asked <- c }
	decide := func(outcome error) {
		t.Helper()
		try := <-asked
		woken := make(signal, 1)
		v := s.views.Open([][]byte{[]byte("k")}, woken)
		defer v.Close()
		<-woken
		v.Table()
		try.Decide(v)
		try.Done(outcome)
	}
	wait := func() *caller { return s.await(t, time.Hour, 1, takeCall(t, "k", "1/1h")) }
	first, granted, stands := wait(), wait(), wait()
	decide(nil) // for the first; the next two are tried for then
	first.answered()
	late := wait()
	decide(linktest.Down)
	for i, c := range []*caller{granted, stands, late} {
		<-c.done
		down := (*link.DownError)(nil)
		if !errors.As(c.reqs[0].Err, &down) || down.Sent != (c == granted) || down.Cause != linktest.Down.Cause {
			t.Errorf("%d: %#v", i, c.reqs[0].Err)
		}
	}
}
