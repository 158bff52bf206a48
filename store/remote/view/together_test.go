package view

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"celld/internal/celldtest"
	"celld/store"
	"celld/store/remote/link"
	"celld/store/remote/link/linktest"
)

// Stores that take from the same keys at once grant what there is, no more and no less, and forget no lease.
func TestStoresTogether(t *testing.T) {
	socket := linktest.StartRedis(t)
	const stores, callers, calls, limit = 4, 4, 12, 100
	for _, text := range []string{"100/1h,algo=window", "100/1h,algo=log", "100/1h,algo=conc"} {
		var granted atomic.Int64
		var wg sync.WaitGroup
		for range stores {
			s := newTestStore(t, socket, Options{})
			for range callers {
				wg.Go(func() {
					for range calls {
						r := store.TakeRequest{Calls: []store.Call{{Key: []byte(text), Limit: linktest.Literal(t, text)}},
							TakeOptions: store.TakeOptions{Cost: 1}}
						if s.takeNow(&r); r.Err != nil {
							t.Error(r.Err)
						}
						granted.Add(r.Taken.Granted)
					}
				})
			}
		}
		wg.Wait()
		if n := granted.Load(); n != limit {
			t.Errorf("%s: %d were granted", text, n)
		}
	}
}

// A call of several keys and one of each of them do not hold up each other for ever, and all count.
func TestKeysTogether(t *testing.T) {
	socket := linktest.StartRedis(t)
	var wg sync.WaitGroup
	keys := [][]string{{"a", "b"}, {"b", "a"}, {"a"}, {"b"}}
	for _, names := range keys {
		s := newTestStore(t, socket, Options{})
		wg.Go(func() {
			for range 50 {
				r := store.TakeRequest{TakeOptions: store.TakeOptions{Cost: 1}}
				for _, name := range names {
					r.Calls = append(r.Calls, store.Call{Key: []byte(name), Limit: linktest.Literal(t, "1000/1h,algo=window")})
				}
				if s.takeNow(&r); r.Err != nil || r.Taken.Granted != 1 {
					t.Error(r.Err, r.Taken)
				}
			}
		})
	}
	wg.Wait()
	s := newTestStore(t, socket, Options{})
	for _, name := range []string{"a", "b"} {
		r := store.TakeRequest{Calls: []store.Call{{Key: []byte(name), Limit: linktest.Literal(t, "1000/1h,algo=window")}}}
		if s.takeNow(&r); r.Calls[0].Decision.Remaining != 1000-150 {
			t.Errorf("%s: %+v", name, r.Calls[0].Decision)
		}
	}
}

// A change that was only read for has counted nothing; one that was sent to be stored may have.
func TestWhatMayHaveBeenCounted(t *testing.T) {
	t.Parallel()
	socket := linktest.StartRedis(t)
	pid := newTestStore(t, socket, Options{}).pidOf(t)
	for _, stored := range []bool{false, true} {
		s := newTestStore(t, socket, Options{})
		celldtest.Again(t, func(attempt string) string { // a machine may keep it from sending for a second
			take := func() error {
				r := store.TakeRequest{Calls: []store.Call{{Key: fmt.Append(nil, stored, attempt),
					Limit: linktest.Literal(t, "5/1h,algo=window")}}, TakeOptions: store.TakeOptions{Cost: 1}}
				s.takeNow(&r)
				return r.Err
			}
			s.Timeout = celldtest.Patience
			if stored { // the next one is not read for
				if err := take(); err != nil {
					t.Fatal(err)
				}
			}
			s.Timeout = time.Second
			if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			err := take()
			if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			if down := (*link.DownError)(nil); !errors.As(err, &down) || down.Sent != stored {
				return fmt.Sprintf("stored %v: %#v", stored, err)
			}
			return ""
		})
	}
}

// Changes that wait for the engine have no table.
func TestChangesThatWaitHaveNoTable(t *testing.T) {
	s := newTestStore(t, linktest.StartRedis(t), Options{Timeout: celldtest.Patience})
	const changes = 1000
	var decided sync.Map // views, by their keys
	var stored, held atomic.Int64
	s.Changed = func(names ...string) { // the engine has answered
		stored.Add(1)
		if v, ok := decided.Load(names[0]); !ok || v.(*View).table != nil {
			held.Add(1)
		}
	}
	s.do(t, "CLIENT", "PAUSE", "100", "WRITE")
	var answered sync.WaitGroup
	for i := range changes {
		key := fmt.Sprint(i)
		answered.Add(1)
		s.queues.Enqueue(s.NewChange([]string{key}, s.deadline(), func(v *View) {
			v.take(t, key, "5/1h,algo=window")
			decided.Store(key, v)
		}, func(error) { answered.Done() }))
	}
	answered.Wait()
	if stored.Load() != changes || held.Load() != 0 {
		t.Errorf("%d of %d changes are stored, %d had a table until then", stored.Load(), changes, held.Load())
	}
}
