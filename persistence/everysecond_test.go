package persistence_test

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"celld/internal/celldtest"
	"celld/store"
)

// passes is tick in the time of a bubble too, by which the next try of a write is timed.
func (w *world) passes(ns int64) {
	celldtest.Pass(time.Duration(ns))
	w.tick(ns)
	synctest.Wait()
}

// Any call fails, once or from there on: changes continue, and all are in the file when the failure is over.
func TestEverySecondWhenTheDiskFails(t *testing.T) {
	for _, forever := range []bool{false, true} {
		for call, more := 1, true; more; call++ {
			synctest.Test(t, func(t *testing.T) {
				w, files := inMemory(t, appendOnly)
				w.mustOpen()
				w.put("kept", store.Value{TAT: uint64(t0 + 90*second)})
				w.passes(second)
				reached, failed := files.failFrom(call, forever), false
				for _, change := range changes {
					change(w)
					w.passes(second)
					st := w.m.Status()
					err := st.AOFErr
					failed = failed || err != nil || st.Rewrites > 0 // by which a file that cannot be looked at is mended at once
					if err != nil && !errors.Is(err, syscall.ENOSPC) || w.m.Refusal() != nil {
						t.Errorf("%v, %v", err, w.m.Refusal())
					}
				}
				if more = reached(); failed != more {
					t.Errorf("a call has failed: %v; it was noticed: %v", more, failed)
				}
				want := w.states()
				files.failing(nil)
				w.passes(second)
				w.passes(second)
				w.settle()
				if st := w.m.Status(); st.AOFErr != nil || st.AOFPending != 0 {
					t.Errorf("the file system has recovered: %+v", st)
				}
				w.expect(want)
				w.replays(files.image(false), want)
				w.replays(files.image(true), want)
				w.reopen().expect(want)
				if err := w.close(); err != nil {
					t.Error(err)
				}
			})
			if t.Failed() {
				t.Fatalf("call %d, forever %v", call, forever)
			}
		}
	}
}

// The memory for what waits for the disk is bounded, however long the disk fails and however much changes.
func TestEverySecondTakesNoMoreMemory(t *testing.T) {
	for _, calls := range [][]string{{"write"}, {"sync", "truncate"}} {
		t.Run(fmt.Sprint(calls), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, files := inMemory(t, appendOnly)
				w.mustOpen()
				const keys = 1000
				round := func(n int64) { // 1 MB
					for i := range keys {
						w.put(fmt.Sprintf("a key that is there all the while %01000d", i), store.Value{TAT: uint64(t0 + (9000+n)*second)})
					}
					for i := range keys / 10 {
						key := fmt.Sprintf("a key that comes and goes %01000d", i)
						w.put(key, store.Value{TAT: uint64(t0 + 9000*second)})
						w.store.Delete([]byte(key), w.now)
					}
					w.passes(second)
				}
				round(0)
				w.settle()
				files.failing(failOn(calls...))
				round(1)
				round(2)
				heap, size := heapBytes(), w.m.Status().AOFSize
				for n := range int64(6) {
					round(3 + n)
				}
				st := w.m.Status()
				if grown := heapBytes() - heap; grown > 2<<20 || st.AOFPending > 3<<20 {
					t.Errorf("%d bytes more, and %d that wait", grown, st.AOFPending)
				}
				if !errors.Is(st.AOFErr, syscall.ENOSPC) || st.AOFSize != size {
					t.Errorf("%+v", st)
				}
				files.failing(nil)
				for range 5 {
					w.passes(second)
				}
				w.settle()
				want := w.states()
				w.replays(files.image(true), want)
				if len(want) != keys || w.m.Status().AOFErr != nil {
					t.Errorf("%d keys, %v", len(want), w.m.Status().AOFErr)
				}
				if err := w.close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func heapBytes() int64 {
	runtime.GC()
	var st runtime.MemStats
	runtime.ReadMemStats(&st)
	return int64(st.HeapAlloc)
}

// A server that stops while the disk fails says so.
func TestTheEndWhileTheDiskFails(t *testing.T) {
	for _, call := range []string{"write", "sync", "close"} {
		t.Run(call, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, files := inMemory(t, appendOnly)
				w.mustOpen()
				w.put("a", store.Value{TAT: uint64(t0 + 90*second)})
				w.passes(second)
				want := w.states()
				files.failing(failOn(call))
				w.put("b", store.Value{TAT: uint64(t0 + 90*second)})
				if call != "close" {
					w.passes(second)
				} else {
					want = w.states()
				}
				if err := w.close(); !errors.Is(err, syscall.ENOSPC) {
					t.Errorf("%v", err)
				}
				files.failing(nil)
				w.replays(files.image(false), want)
			})
		})
	}
}
