package cell_test

import (
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"celld/cell"
	"celld/internal/celldtest"
	"celld/persistence"
	"celld/store"
	"celld/store/memory"
)

const tenth = uint64(time.Second / 10)

// wakes counts the wake-ups of a caller whose answer is there.
type wakes struct{ atomic.Int64 }

func (w *wakes) Wake() { w.Add(1) }

// An algorithm that only this package knows is read, decides, forecasts, is reserved, waited for and leased.
func TestAnAddedAlgorithmInTheStore(t *testing.T) {
	cell.AddPace(t)
	limit := mustLiteral(t, "10/1s,algo=pace")
	if limit.String() != "10/1s,algo=pace" || limit.Algo.String() != "pace" || cell.Algos() != int(limit.Algo)+1 {
		t.Fatalf("%v has algorithm %d of %d", limit, limit.Algo, cell.Algos())
	}
	if _, err := cell.ParseLimit("1/1m,algo=x"); !strings.Contains(fmt.Sprint(err), " or pace") {
		t.Error(err)
	}
	synctest.Test(t, func(t *testing.T) {
		clock := func() int64 { return time.Now().UnixNano() }
		s := memory.New(memory.Options{Now: clock})
		ask := func(terms store.Terms, w store.Waker) (r *store.TakeRequest, answered bool) {
			requests := []store.TakeRequest{{
				Calls:       []store.Call{{Key: []byte("k"), Limit: &limit}},
				TakeOptions: store.TakeOptions{Cost: 1, Terms: &terms},
			}}
			return &requests[0], s.TakeBatch(requests, store.Access{NowNS: clock()}, w)
		}
		for i, limited := range []bool{false, true} {
			if r, _ := ask(store.Terms{}, nil); r.Err != nil || r.Taken.Limited != limited || limited && r.Taken.RetryAfterNS != tenth {
				t.Errorf("call %d: %+v, %v", i, r.Taken, r.Err)
			}
		}
		if r, _ := ask(store.Terms{Mode: store.Reserve, MaxNS: math.MaxInt64}, nil); r.Taken.Limited || r.Terms.WaitNS != tenth {
			t.Errorf("reserved: %+v in %d ns", r.Taken, r.Terms.WaitNS)
		}
		var woken wakes
		waits, answered := ask(store.Terms{Mode: store.Wait, MaxNS: math.MaxInt64}, &woken)
		if answered {
			t.Fatalf("it does not wait: %+v, %v", waits.Taken, waits.Err)
		}
		if _, err := s.Limits([]byte("k"), store.Access{NowNS: clock()}, func(l *store.LimitState) {
			if wait := l.Limit.Forecast(&l.State, clock(), 1); wait != 2*tenth {
				t.Errorf("one that asks now waits %d ns", wait)
			}
		}); err != nil {
			t.Error(err)
		}
		celldtest.Pass(time.Duration(2*tenth) - 1)
		if woken.Load() != 0 {
			t.Error("it was woken too early")
		}
		celldtest.Pass(time.Nanosecond)
		if woken.Load() != 1 || waits.Taken.Limited || waits.Taken.Granted != 1 {
			t.Errorf("woken %d times: %+v", woken.Load(), waits.Taken)
		}
		celldtest.Pass(time.Second)
		leased, _ := ask(store.Terms{LeaseNS: int64(time.Minute)}, nil)
		if ended, err := s.Release([]byte("k"), leased.Terms.Lease, store.Access{NowNS: clock()}); !ended || err != nil {
			t.Errorf("released: %v, %v", ended, err)
		}
		if r, _ := ask(store.Terms{}, nil); r.Taken.Limited {
			t.Errorf("after a release: %+v", r.Taken)
		}
	})
}

// The files keep its states, in either form.
func TestAnAddedAlgorithmInTheFiles(t *testing.T) {
	cell.AddPace(t)
	limit, key := mustLiteral(t, "10/1h,algo=pace"), []byte("k")
	clock := func() int64 { return aDayIn2027 }
	for _, appendOnly := range []bool{true, false} {
		o := persistence.Options{
			Dir: t.TempDir(), DBFilename: "dump.rdb", AppendFilename: "appendonly.aof", AppendOnly: appendOnly, Clock: clock,
			SavePoints:        func() []persistence.SavePoint { return []persistence.SavePoint{{After: time.Hour, Changes: 1}} },
			RewritePercentage: func() int64 { return 0 },
			RewriteMinSize:    func() int64 { return 0 },
			Log:               slog.New(slog.DiscardHandler),
		}
		open := func() (*memory.Store, *persistence.Disk) {
			s := memory.New(memory.Options{Journal: appendOnly, Now: clock})
			disk := persistence.New(s, o)
			_, err := disk.Load(func(args [][]byte) error { return fmt.Errorf("unknown command %q", args[0]) })
			if err == nil {
				err = disk.Start(func(step func() bool) {
					for step() {
					}
				}, nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			return s, disk
		}
		s, disk := open()
		if _, err := s.Take([]store.Call{{Key: key, Limit: &limit}}, store.TakeOptions{Cost: 3}, store.Access{NowNS: clock()}); err != nil {
			t.Fatal(err)
		}
		disk.Stop()
		if err := disk.Close(disk.SaveAtExit()); err != nil {
			t.Fatal(err)
		}
		s, disk = open()
		got := ""
		_, err := s.Limits(key, store.Access{NowNS: clock()}, func(l *store.LimitState) {
			got = string(l.Limit.AppendState(nil, &l.State))
		})
		if want := fmt.Sprint("limit=10/1h,algo=pace free=", clock()+3*int64(time.Hour)/10); got != want || err != nil {
			t.Errorf("append-only %v: the store has %q, %v, want %q", appendOnly, got, err, want)
		}
		disk.Stop()
		if err := disk.Close(false); err != nil {
			t.Fatal(err)
		}
	}
}
