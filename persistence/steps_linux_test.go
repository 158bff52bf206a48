//go:build all

package persistence_test

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"celld/cell/lease"
	"celld/store"
)

// stepMost is more than it takes to copy 65,536 leases, and less than it takes to write them as text. A step's CPU time counts, so what
// others do on the machine does not.
const stepMost = 8 * time.Millisecond

// No step in the background takes long, whatever a key holds: event loops run these steps between their rounds.
func TestNoStepTakesLong(t *testing.T) {
	var most atomic.Int64
	w, files := inMemory(t, appendOnly)
	w.background = func(step func() bool) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for more := true; more; {
			before := threadNS()
			more = step()
			most.Store(max(most.Load(), threadNS()-before)) // one goroutine at a time
		}
	}
	w.mustOpen()
	limit := w.literal("1000000/1h")
	take := func(i int) {
		t.Helper()
		terms := store.Terms{LeaseNS: 3600 * second, Name: fmt.Sprint(i)}
		calls := []store.Call{{Key: []byte("k"), Limit: &limit}}
		_, err := w.store.Take(calls, store.TakeOptions{Cost: 1, Terms: &terms}, store.Access{NowNS: w.now})
		if err != nil || terms.Lease == 0 {
			t.Fatal(err, terms.Lease)
		}
	}
	leases := 0
	for ; leases < lease.Max-10; leases++ {
		take(leases)
	}
	for name, begin := range map[string]func(){
		"append": func() { take(leases); leases++ },
		"save":   func() { _ = w.m.BackgroundSave(false) },
		"rewrite": func() {
			if err := w.m.Rewrite(); err != nil {
				t.Error(err)
			}
		},
	} {
		best := time.Hour
		for range 3 { // the collector of garbage may have its share of a thread
			most.Store(0)
			begin()
			w.tick(second)
			w.settle()
			best = min(best, time.Duration(most.Load()))
		}
		if best > stepMost {
			t.Errorf("%s: %v in one step", name, best)
		}
	}
	want := w.states()
	if err := w.close(); err != nil { // which waits for what is still to be written
		t.Error(err)
	}
	w.replays(files.image(false), want)
}

func threadNS() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}
