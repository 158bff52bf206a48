package memory_test

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"celld/cell"
	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
	"celld/store/policy"
)

// A waiter takes less than 1 KB beside its request, and a store that nobody waits for any more keeps nothing.
func TestWhatAWaiterTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 10_000
		s := memory.New(memory.Options{Now: clock, MaxWaiters: n})
		l := memtest.MustParse(t, "1/1h")
		all := make([]waiter, n)
		for i := range all {
			all[i].s = s
			all[i].reqs[0] = store.TakeRequest{Calls: []store.Call{{Key: []byte("k"), Limit: &l}},
				TakeOptions: store.TakeOptions{Cost: 1, Terms: &store.Terms{Mode: store.Wait, MaxNS: 1 << 60}}}
		}
		heap := func() int64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		plainly(s, 1, memtest.Call(t, "k", "1/1h"))
		before := heap()
		for i := range all {
			if s.TakeBatch(all[i].reqs[:], memtest.At(clock()), &all[i]) {
				t.Fatal("it does not wait")
			}
		}
		if each := (heap() - before) / n; each > 1024 {
			t.Errorf("%d bytes each", each)
		} else {
			t.Logf("%d bytes each", each)
		}
		for i := range all {
			all[(i*7919)%n].leave(nil)
		}
		if callers, keys := s.Waiting(); callers != 0 || keys != 0 {
			t.Errorf("%d callers, %d keys", callers, keys)
		}
	})
}

// Real goroutines, real time: all that happens at once to those who wait leaves nobody behind.
func TestWaitersAtOnce(t *testing.T) {
	s := memory.New(memory.Options{Shards: 4, MaxWaiters: 1 << 20})
	clock := func() int64 { return time.Now().UnixNano() }
	limits := []string{"20000/1s,burst=1", "1000/10ms,algo=window", "200/10ms,algo=log", "2000/100ms,algo=slide"}
	var group sync.WaitGroup
	done := make(chan struct{})
	for worker := range 4 {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := range 1500 {
				key, other := string(rune('a'+i%3)), string(rune('a'+(i+1)%3))
				calls := []store.Call{memtest.Call(t, key, limits[(i/3+worker)%4])}
				if i%5 == 0 {
					calls = append(calls, memtest.Call(t, other, limits[i%4]))
				}
				woken := make(chan struct{})
				w := wakerFunc(func() { close(woken) })
				reqs := []store.TakeRequest{{Calls: calls, TakeOptions: store.TakeOptions{Cost: int64(1 + i%3),
					Terms: &store.Terms{Mode: store.Wait, MaxNS: 1e12}}}}
				if s.TakeBatch(reqs, memtest.At(clock()), w) {
					continue
				}
				if i%7 == 0 && s.Leave(&reqs[0], nil) {
					continue
				}
				if i%11 == 0 {
					s.Leave(&reqs[0], store.ErrRefused)
				}
				<-woken
			}
		}()
	}
	var others sync.WaitGroup
	others.Add(1)
	go func() {
		defer others.Done()
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
			}
			key := []byte{byte('a' + i%3)}
			switch l := memtest.MustParse(t, limits[i%4]); i % 6 {
			case 0:
				_, _ = s.Give(key, &l, nil, 2, memtest.At(clock()))
			case 1:
				s.Delete(key, clock())
			case 2:
				s.Rename(key, []byte{byte('a' + (i+1)%3)}, memtest.At(clock()))
			case 3:
				s.Sweep(clock())
			case 4:
				s.Flush()
			case 5:
				_, _ = s.SetPolicy("p", []cell.Limit{l}, policy.Options{})
			}
		}
	}()
	group.Wait()
	close(done)
	others.Wait()
	if callers, keys := s.Waiting(); callers != 0 || keys != 0 {
		t.Errorf("%d callers wait for %d keys", callers, keys)
	}
}
