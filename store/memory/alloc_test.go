//go:build !race

// With the race detector, a sync.Pool drops one in four at random.

package memory_test

import (
	"testing"

	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
)

func TestThrottleOfAKeyThatIsThereAllocatesNothing(t *testing.T) {
	limit, tight := memtest.MustLimit(t, 1<<30, 1000, 1), memtest.MustLimit(t, 0, 1, 3600)
	for _, o := range []memory.Options{{Shards: 1}, {Shards: 16}, {Shards: 16, Journal: true}} {
		s := memory.New(o)
		key := []byte("0123456789abcdef")
		memtest.MustAllow(t, s, key, limit, t0)
		memtest.MustAllow(t, s, []byte("tight"), tight, t0)
		watch := s.Watch(key, t0)
		calls := map[string]func(){
			"allowed":  func() { memtest.MustAllow(t, s, key, limit, t0) },
			"peek":     func() { _, _ = s.Throttle(key, limit, 0, memtest.Untouched(t0)) },
			"get":      func() { s.Get(key, memtest.At(t0)) },
			"limited":  func() { _, _ = s.Throttle([]byte("tight"), tight, 1, memtest.At(t0)) },
			"watching": func() { watch.Changed(t0) },
		}
		for name, call := range calls {
			if n := testing.AllocsPerRun(1000, call); n != 0 {
				t.Errorf("%+v: %s allocates %v times", o, name, n)
			}
		}
	}
}

func TestATakeOfKeysThatAreThereAllocatesNothing(t *testing.T) {
	s := memory.New(memory.Options{})
	for name, list := range map[string][]store.Call{
		"one limit":      memtest.Calls(t, "k", "1000/1s"),
		"several limits": memtest.Calls(t, "k", "1000/1s", "k", "9/1h", "l", "1000/1s,algo=window"),
	} {
		reqs := []store.TakeRequest{{Calls: list, TakeOptions: store.TakeOptions{Cost: 1}}}
		for range 10 { // it passes, and then is denied
			if n := testing.AllocsPerRun(100, func() { s.TakeBatch(reqs, memtest.At(t0), nil) }); n != 0 || reqs[0].Err != nil {
				t.Errorf("%s allocates %v times, %v", name, n, reqs[0].Err)
			}
		}
	}
}
