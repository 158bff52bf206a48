//go:build !race

package persistence_test

import (
	"fmt"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"

	"celld/internal/celldtest"
	"celld/persistence"
	"celld/store"
)

var keyOfFile = regexp.MustCompile(`\nbusy:(\d+)\r\n`)

// A loop that serves callers all the time, and does one step after each of its rounds, writes what they change within a second, though more
// of it changes in a round than a step tells at once. No step takes longer than a millisecond and one look at the store.
func TestEverySecondWhileTheLoopIsBusy(t *testing.T) {
	t.Parallel()
	const (
		ms        = second / 1000
		reads     = ms / 50 // the clock goes on by this at each reading
		eachRound = 200     // keys that change, 1 ms
	)
	rounds := 1200
	if celldtest.Thorough {
		rounds = 3000
	}
	synctest.Test(t, func(t *testing.T) {
		var w *world
		w, files := inMemory(t, func(o *persistence.Options) {
			o.AppendOnly = true
			o.Clock = func() int64 { return w.clock.Add(reads) }
		})
		asked := make(chan func() bool, 9)
		w.background = func(step func() bool) { asked <- step }
		var steps []func() bool
		goOn := func() {
			for len(asked) > 0 {
				steps = append(steps, <-asked)
			}
			steps = slices.DeleteFunc(steps, func(step func() bool) bool { return !step() })
		}
		w.mustOpen()
		changed, put, ticked := []int64{}, 0, w.now // when the round of a key began
		for range rounds {
			for range eachRound {
				w.put(fmt.Sprint("busy:", put), store.Value{TAT: uint64(t0 + 9000*second)})
				put++
			}
			changed = append(changed, w.now)
			w.now = w.clock.Load()
			w.pass(ms)
			if w.now-ticked >= second/10 {
				ticked = w.now
				w.m.Tick()
			}
			began := w.clock.Load()
			goOn()
			if took := w.clock.Load() - began; took > ms+4*reads {
				t.Fatalf("a step takes %d ns", took)
			}
			w.now = w.clock.Load()
			synctest.Wait()
		}
		told := make([]bool, put)
		for _, m := range keyOfFile.FindAllStringSubmatch(files.image(true).text(w.path("appendonly.aof")), -1) {
			n := 0
			fmt.Sscan(m[1], &n)
			told[n] = true
		}
		if first := slices.Index(told, false); first < 0 || w.now-changed[first/eachRound] > second {
			t.Errorf("key %d of %d is not on the disk, %d ms later", first, put, (w.now-changed[max(first, 0)/eachRound])/ms)
		}
		for len(steps)+len(asked) > 0 {
			goOn()
			synctest.Wait()
		}
		if err := w.close(); err != nil {
			t.Error(err)
		}
	})
}
