//go:build !race

package persistence_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"celld/persistence"
)

// Any call of a start fails: nothing that was there is lost, and the next start finds all.
func TestStartWhenTheDiskFails(t *testing.T) {
	t.Parallel()
	both := func(o *persistence.Options) { snapshots(o); appendOnly(o) }
	for name, start := range map[string]struct {
		set  func(*persistence.Options)
		last func(files *memoryFS, w *world)
	}{
		"snapshot":    {snapshots, func(*memoryFS, *world) {}},
		"append-only": {appendOnly, func(*memoryFS, *world) {}},
		"append-only, torn": {appendOnly, func(files *memoryFS, w *world) {
			files.put(w.path("appendonly.aof"), []byte(files.text(w.path("appendonly.aof"))+"*2\r\n$3\r\nDE"))
		}},
		"append-only, in MULTI": {appendOnly, func(files *memoryFS, w *world) {
			files.put(w.path("appendonly.aof"), []byte(files.text(w.path("appendonly.aof"))+"*1\r\n$5\r\nMULTI\r\n"))
		}},
		"from snapshot to both":  {both, func(files *memoryFS, w *world) { _ = files.Remove(w.path("appendonly.aof")) }},
		"from Redis 7's to ours": {appendOnly, redis7Files},
	} {
		for _, forever := range []bool{false, true} {
			for call, more := 1, true; more; call++ {
				w, files := inMemory(t, both)
				w.mustOpen()
				w.fillWith(fewStates())
				want := w.states()
				if err := w.close(); err != nil {
					t.Fatal(err)
				}
				w.set = start.set
				start.last(files, w)
				w.pass(0)
				image := files.image(false)
				reached := image.failFrom(call, forever)
				w.files = image
				err := w.open()
				more = reached()
				if err == nil {
					w.expect(want)
				} else if !more || !errors.Is(err, syscall.ENOSPC) {
					t.Errorf("%v", err)
				}
				w.m.Stop()
				w.replays(image.image(false), want)
				for _, name := range image.list() {
					if !forever && strings.HasPrefix(name, "temp") && !strings.HasSuffix(name, ".check") {
						t.Errorf("%s is left behind", name)
					}
				}
				if t.Failed() {
					t.Fatalf("%s, call %d, forever %v", name, call, forever)
				}
			}
		}
	}
}
