package bound

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"celld/cell"
	"celld/internal/celldtest"
	"celld/resp/command"
	"celld/resp/command/calltest"
	"celld/store"
	"celld/store/memory"
)

// released is a store whose leases take a tenth of a millisecond to end.
type released struct {
	store.Leases
	mu     sync.Mutex
	nowNS  int64
	ended  []int64
	broken bool
}

func (s *released) Release(_ []byte, id int64, _ store.Access) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nowNS += 1e5; s.broken {
		panic("broken")
	}
	s.ended = append(s.ended, id)
	return true, nil
}

func (s *released) releaser(hurries *atomic.Bool) *Releaser {
	clock := func() int64 {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.nowNS
	}
	return &Releaser{Store: func() store.Leases { return s }, Clock: clock, Hurries: hurries.Load,
		Survive: func(string, ...any) { _ = recover() }}
}

// count returns how many leases have ended.
func (s *released) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ended)
}

func newLeases() *Leases { return &Leases{Bytes: &atomic.Int64{}} }

// take adds a lease of some ns that was reserved so many ns ahead.
func (l *Leases) take(id, leaseNS int64, waitNS uint64) {
	limit := cell.Limit{}
	limit.PeriodNS = 7
	l.Add(&store.TakeRequest{Calls: []store.Call{{Key: []byte("k"), Limit: &limit}},
		TakeOptions: store.TakeOptions{Terms: &store.Terms{Bound: true, Lease: id, LeaseNS: leaseNS, WaitNS: waitNS}}}, nil, 100)
}

// A lease lasts as long as it was asked for, or as its limit's period, from the moment at which what it reserves may be used.
func TestWhenALeaseEnds(t *testing.T) {
	l := newLeases()
	l.take(1, 50, 0)
	l.take(2, 0, 0)
	l.take(3, 50, 1000)
	l.take(4, 1<<62, 1<<62+1<<61)
	l.take(0, 50, 0)
	l.Add(&store.TakeRequest{TakeOptions: store.TakeOptions{Terms: &store.Terms{Lease: 5}}}, nil, 100)
	l.take(6, 50, 0)
	l.Ends(6, 300)
	l.Ends(9, 300)
	for id, want := range map[int64]int64{1: 150, 2: 107, 6: 300, 3: 1150, 4: 1<<63 - 1} {
		if got := l.byID[id].endNS; got != want {
			t.Errorf("lease %d ends at %d, want %d", id, got, want)
		}
	}
	l.take(1, 60, 0) // it was answered again, by its name
	l.Ends(3, 0)
	if len(l.byID) != 4 || l.Bytes.Load() != 4*(LeaseBytes+1) || l.byID[1].endNS != 160 {
		t.Errorf("%v in %d bytes", l.byID, l.Bytes.Load())
	}
}

// Leases that have ended make room.
func TestRoom(t *testing.T) {
	l, h := newLeases(), calltest.New(memory.Options{})
	call := &command.Call{Host: h, Args: [][]byte{[]byte("CL.TAKE"), []byte("k")}}
	id := int64(0)
	for call.NowNS = 149; l.Room(call); id++ {
		l.take(id+1, 50+id%2, 0)
	}
	if bytes := l.Bytes.Load(); bytes > MaxBytes || bytes < MaxBytes-2*LeaseBytes || int64(len(l.byID)) != id {
		t.Errorf("%d bytes for %d leases, %d kept", bytes, id, len(l.byID))
	}
	if call.NowNS = 150; !l.Room(call) || int64(len(l.byID)) != id/2 {
		t.Errorf("%d of %d are left", len(l.byID), id)
	}
}

// Few leases end at once. Of many, some do, and the others a little later, with pauses except where the process ends; those of the next
// connection come behind them.
func TestRelease(t *testing.T) {
	for _, hurries := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var hurry atomic.Bool
			hurry.Store(hurries)
			s := &released{}
			r := s.releaser(&hurry)
			few, many := newLeases(), newLeases()
			newLeases().Release(r)
			few.take(1, 50, 0)
			if few.Release(r); fmt.Sprint(s.ended) != "[1]" || few.Bytes.Load() != 0 {
				t.Errorf("%v ended at once, %d bytes", s.ended, few.Bytes.Load())
			}
			for id := range int64(100) {
				many.take(100+id, 50, 0)
			}
			many.Release(r)
			if at := s.count(); at < 11 || !hurries && at > 22 { // the first steps of Release and of the goroutine
				t.Errorf("%d ended at once", at)
			}
			few.take(2, 50, 0)
			few.Release(r)
			began := time.Now()
			r.Wait()
			if len(s.ended) != 102 || s.ended[101] != 2 {
				t.Errorf("%v", s.ended)
			}
			if paused := time.Since(began) >= 8*time.Millisecond; paused == hurries {
				t.Errorf("in a hurry %v: it paused %v", hurries, paused)
			}
			for id := range int64(100) {
				many.take(id, 50, 0)
			}
			many.Release(r)
			s.mu.Lock()
			s.broken = true
			s.mu.Unlock()
			r.Wait() // the panic is survived
		})
	}
}

func TestGiveBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Releaser{}
		given := false
		r.GiveBack(func() {
			time.Sleep(time.Second)
			given = true
		})
		if !r.GivesBack() {
			t.Error("it has not begun")
		}
		if celldtest.Pass(2 * time.Second); r.GivesBack() || !given {
			t.Errorf("given back: %v", given)
		}
	})
}
