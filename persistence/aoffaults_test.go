package persistence_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"celld/cell"
	"celld/internal/celldtest"
	"celld/persistence"
	"celld/store"
)

// Empty commits, as a flood of limited calls makes them, keep no memory.
func TestCommitsOfNothing(t *testing.T) {
	w, _ := inMemory(t, always)
	w.mustOpen()
	w.throttle("a")
	w.commit()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range 20_000 {
		w.commit()
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 1<<20 {
		t.Errorf("%d bytes are kept", grown)
	}
	runtime.KeepAlive(w)
}

// A flush that the disk has refused is in the file once it can be written.
func TestAFlushThatCouldNotBeWritten(t *testing.T) {
	w, files := inMemory(t, always)
	w.mustOpen()
	w.put("a", store.Value{TAT: uint64(t0 + 90*second)})
	w.commit()
	files.failing(failOn("write"))
	w.store.Flush()
	w.commit()
	files.failing(nil)
	w.tick(second)
	w.settle()
	w.replays(files.image(false), w.states())
	want := w.states()
	w.reopen().expect(want)
}

// What is decided while a write fails is written once the disk takes it.
func TestAChangeWhileAWriteFails(t *testing.T) {
	w, files := inMemory(t, always)
	w.mustOpen()
	w.throttle("a")
	w.commit()
	files.failing(func(call, _ string) error {
		if call == "write" {
			w.throttle("meanwhile")
			return syscall.ENOSPC
		}
		return nil
	})
	w.throttle("b")
	failures := w.m.Status().AOFFailures
	w.commit()
	files.failing(nil)
	if w.m.Status().AOFFailures == failures {
		t.Error("no failure")
	}
	w.tick(second / 2)
	w.commit()
	w.replays(files.image(true), w.states())
	want := w.states()
	w.reopen().expect(want)
}

// A rewrite goes on while the disk refuses appends, and the new file gets what was refused.
func TestACommitThatFailsDuringARewrite(t *testing.T) {
	for _, at := range []string{"before", "while"} {
		w, files := inMemory(t, always)
		w.mustOpen()
		for _, key := range []string{"a", "b", "c"} {
			w.put(key, store.Value{TAT: uint64(t0 + 90*second)})
		}
		w.commit()
		refuse := func() {
			w.put("a", store.Value{TAT: uint64(t0 + 91*second)})
			w.store.Delete([]byte("b"), w.now)
			files.failing(failOn("write"))
			if err := w.commit(); err == nil {
				t.Error("the disk is full")
			}
			files.failing(nil)
			w.put("a", store.Value{TAT: uint64(t0 + 92*second)}) // in a round that had begun
			w.store.Rename([]byte("c"), []byte("d"), store.Access{NowNS: w.now})
			_ = w.commit()
		}
		if at == "before" {
			refuse()
		} else {
			files.during("write", func() {
				refuse()
			})
		}
		if err := w.m.Rewrite(); err != nil {
			t.Fatal(err)
		}
		w.settle()
		if st := w.m.Status(); st.RewriteErr != nil || w.m.Refusal() != nil {
			t.Errorf("%s: %v, %v", at, st.RewriteErr, w.m.Refusal())
		}
		w.replays(files.image(true), w.states())
		w.recovers(files)
	}
}

// A rewrite whose first copied commands follow a tail without a stamp, as Redis writes it.
func TestARewriteBehindAForeignTail(t *testing.T) {
	for name, set := range map[string]func(*persistence.Options){"append-only": appendOnly, "always": always} {
		t.Run(name, func(t *testing.T) {
			w, files := inMemory(t, set)
			at := fmt.Sprint(t0 + 9*second)
			files.put(w.path("appendonly.aof"), fmt.Appendf(nil, "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$%d\r\n%s\r\n", len(at), at))
			w.mustOpen()
			once := files.during("write", func() {
				w.throttle("during")
				if w.m.Synchronous() {
					w.commit()
				} else {
					w.tick(second / 2)
					celldtest.Eventually(t, "it is appended", func() bool { return w.m.Status().AOFPending == 0 })
				}
			})
			if err := w.m.Rewrite(); err != nil {
				t.Fatal(err)
			}
			w.settle()
			if st := w.m.Status(); !once.Load() || st.RewriteErr != nil || st.Rewrites != 1 {
				t.Errorf("nothing was appended during it: %+v", st)
			}
			want := w.states()
			w.reopen().expect(want)
		})
	}
}

// takenAgain waits until no decision is refused.
func (w *world) takenAgain() {
	w.t.Helper()
	celldtest.Eventually(w.t, "decisions are taken again", func() bool { return w.m.Refusal() == nil })
}

// Many connections decide while the disk fails now and then, and rewrites go on. In the end the file holds what the store holds.
func TestAlwaysUnderFire(t *testing.T) {
	t.Parallel()
	w, files := inMemory(t, always)
	w.mustOpen()
	limit, err := cell.NewBucket(1000, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	var calls atomic.Uint64
	files.failing(func(call, _ string) error {
		if n := calls.Add(1); n*0x9e3779b97f4a7c15>>61 == 0 { // one in eight
			return syscall.ENOSPC
		}
		return nil
	})
	var connections sync.WaitGroup
	for c := range 4 {
		connections.Go(func() {
			for i := range 200 {
				w.takenAgain()
				w.m.Begin()
				if w.m.Refusal() == nil {
					key := fmt.Appendf(nil, "key %d", (c+1)*i%97)
					if _, err := w.store.Throttle(key, limit, int64(1+i%5), store.Access{NowNS: w.clock.Load()}); err != nil {
						t.Error(err)
					}
					if i%10 == 0 {
						w.store.Delete(key, w.clock.Load())
					}
				}
				_ = w.m.Commit()
			}
		})
	}
	w.rewriteWhile(&connections)
	if w.m.Status().AOFFailures == 0 {
		t.Error("nothing has failed")
	}
	w.recovers(files)
}

// A rewrite that repairs the file is tried until it succeeds.
func TestWhatIsLostIsNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, files := inMemory(t, appendOnly)
		w.mustOpen()
		key := func(i int) string { return fmt.Sprintf("%50000d", i) }
		const keys = 600
		for i := range keys {
			w.put(key(i), store.Value{TAT: uint64(t0 + 9000*second)})
		}
		w.tick(second)
		w.settle()
		for i := range keys {
			w.store.Delete([]byte(key(i)), w.now)
		}
		files.failing(failOn("create"))
		for range 30 {
			w.tick(second)
			w.settle()
		}
		if w.m.Status().RewriteErr == nil {
			t.Error("no rewrite was tried")
		}
		files.failing(nil)
		for range 10 {
			w.tick(second)
			w.settle()
		}
		want := w.states()
		w.reopen().expect(want)
		_ = w.close()
	})
}

// What waits for the disk is tried once more at the end.
func TestTheDiskRecoversBeforeTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, files := inMemory(t, appendOnly)
		w.mustOpen()
		files.failing(failOn("write"))
		w.put("a", store.Value{TAT: uint64(t0 + 90*second)})
		w.tick(second)
		synctest.Wait()
		w.put("b", store.Value{TAT: uint64(t0 + 90*second)})
		w.tick(second)
		synctest.Wait()
		files.failing(nil)
		want := w.states()
		w.reopen().expect(want)
		_ = w.close()
	})
}

// A rewrite that fails leaves no part of it behind.
func TestARewriteThatFailsLeavesNothing(t *testing.T) {
	for call, more := 1, true; more; call++ {
		w, files := inMemory(t, always)
		w.mustOpen()
		w.put("a", store.Value{TAT: uint64(t0 + 90*second)})
		w.commit()
		reached := files.failFrom(call, false)
		if err := w.m.Rewrite(); err != nil {
			t.Fatal(err)
		}
		w.settle()
		more = reached()
		if names := files.list(); len(names) != 1 {
			t.Errorf("call %d: %q are there", call, names)
		}
	}
}

// What the disk refused is in the file even if the server stops before it tries again.
func TestStopAfterAFlushThatCouldNotBeWritten(t *testing.T) {
	w, files := inMemory(t, always)
	w.mustOpen()
	w.throttle("a")
	if err := w.commit(); err != nil {
		t.Fatal(err)
	}
	files.failing(failOn("write"))
	w.store.Flush()
	w.throttle("b")
	if err := w.commit(); err == nil {
		t.Fatal("the disk is full")
	}
	files.failing(nil)
	want := w.states()
	w.reopen().expect(want)
	w.m.Stop()
}
