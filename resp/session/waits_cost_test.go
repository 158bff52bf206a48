//go:build all

package session

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// What a connection costs that waits, beside an idle one.
func TestWaitingIsCheap(t *testing.T) {
	w := newWorld(t)
	const sessions = 10_000
	var peers []*peer
	for i := range sessions {
		p := w.connect()
		p.send(fmt.Sprintf("CL.TAKE key:%d 1/1h,burst=1\r\n", i/10))
		peers = append(peers, p)
	}
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before, goroutines := heap(), runtime.NumGoroutine()
	if err := w.Config.Setting("wait-max").Value.Set("86400000"); err != nil {
		t.Fatal(err)
	}
	for i, p := range peers {
		if got := p.send(fmt.Sprintf("CL.TAKE key:%d 1/1h,burst=1 WAIT 86400000\r\n", i/10)); strings.HasPrefix(got, "-") {
			t.Fatal(got)
		}
	}
	n, keys := w.Store.Waiting()
	if n != sessions {
		t.Fatalf("%d wait", n)
	}
	if each := (heap() - before) / sessions; each > 2048 {
		t.Errorf("%d bytes each", each)
	} else {
		t.Logf("%d bytes each, for %d keys", each, keys)
	}
	if more := runtime.NumGoroutine() - goroutines; more > 0 {
		t.Errorf("%d goroutines", more)
	}
	for _, p := range peers {
		p.Closed()
	}
	if n, _ := w.Store.Waiting(); n != 0 {
		t.Errorf("%d wait", n)
	}
}
