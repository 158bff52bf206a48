package persistence_test

import (
	"fmt"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"celld/internal/celldtest"
	"celld/store"
)

// Whenever the power fails, no more is lost than the page on persistence says: the last second if the disk takes up to 0.4 s to store
// a round of changes, and otherwise twice what it takes and 0.1 s.
func TestWhatEverySecondLoses(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct{ disk, most time.Duration }{
		{0, 500 * ms}, {5 * ms, 510 * ms}, {100 * ms, 600 * ms}, {400 * ms, 900 * ms}, {401 * ms, time.Second},
		{700 * ms, 1500 * ms}, {2 * time.Second, 4100 * ms}, {3333 * ms, 6766 * ms},
	} {
		t.Run(fmt.Sprint(test.disk), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, files := inMemory(t, appendOnly)
				w.mustOpen()
				files.failing(func(call, _ string) error {
					if call == "sync" {
						time.Sleep(test.disk)
					}
					return nil
				})
				lost := w.runs(files, 10*test.disk+5*time.Second, 3*ms)
				if lost > test.most+3*ms || lost < test.most/2 {
					t.Errorf("lost %v, want %v at most", lost, test.most)
				}
				files.failing(nil)
				celldtest.Pass(test.disk) // what is under way ends
				if err := w.close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// More changes than both buffers can hold are written in one round, as fast as the disk takes them.
func TestWhatEverySecondLosesOfManyChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, files := inMemory(t, appendOnly)
		w.mustOpen()
		const keys, length = 3000, 1600 // 5 MB, in five writes
		for i := range keys {
			w.put(fmt.Sprintf("%0*d", length, i), store.Value{TAT: uint64(t0 + 9000*second)})
		}
		files.failing(func(call, _ string) error {
			if call == "sync" {
				time.Sleep(50 * time.Millisecond)
			}
			return nil
		})
		for range 9 {
			w.passes(second / 10)
		}
		if size := len(files.image(true).text(w.path("appendonly.aof"))); size < keys*length {
			t.Errorf("%d bytes are on the disk 0.9 s later", size)
		}
		files.failing(nil)
		celldtest.Pass(time.Second)
		if err := w.close(); err != nil {
			t.Error(err)
		}
	})
}

var tatOfFile = regexp.MustCompile(`\n(\d{19})\r\n`)

// runs changes a key at each step of fake time, with a tick in each 100 ms, and returns the age of the oldest change that was not on the
// disk at any moment.
func (w *world) runs(files *memoryFS, length, step time.Duration) (lost time.Duration) {
	began, ticked := w.now, w.now
	for w.now-began < int64(length) {
		w.put("k", store.Value{TAT: uint64(w.now + 9000*second)})
		celldtest.Pass(step)
		if w.pass(int64(step)); w.now-ticked >= second/10 {
			ticked = w.now
			w.m.Tick()
		}
		synctest.Wait()
		stored := began
		text := files.image(true).files[w.path("appendonly.aof")].data
		text = text[max(0, len(text)-200):] // it ends with the last change, which has 150
		if all := tatOfFile.FindAllSubmatch(text, -1); len(all) > 0 {
			fmt.Sscan(string(all[len(all)-1][1]), &stored)
			stored -= 9000 * second
		}
		lost = max(lost, time.Duration(w.now-stored-int64(step)))
	}
	return lost
}
