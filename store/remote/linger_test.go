package remote

import (
	"fmt"
	"testing"
	"time"

	"celld/cell"
	"celld/internal/celldtest"
	"celld/store"
	"celld/store/remote/view"
)

// TestWhatWasTakenLingers: a key of which nothing is left to remember is still there for a while, so who has seen that it was not there
// notices that somebody has taken from it.
func TestWhatWasTakenLingers(t *testing.T) {
	stores := testStores(t, 2)
	taker, other := stores[0], stores[1]
	quick, err := cell.NewBucket(0, 1000, 1) // 1 ms
	if err != nil {
		t.Fatal(err)
	}
	throttle := func(key string) {
		reqs := []store.Request{{Key: []byte(key), Bucket: quick, Quantity: 1}}
		taker.throttleNow(reqs, store.Access{NowNS: time.Now().UnixNano()})
		if reqs[0].Err != nil || reqs[0].Decision.Limited {
			t.Fatalf("%+v", reqs[0])
		}
	}
	throttle("clock") // by a script, which tells the engine's time: the next is by SET NX GET
	for _, how := range []struct {
		key  string
		take func(key string)
	}{
		{"set", throttle},
		{"script", func(key string) {
			taker.newKeys.unknown.Store(true)
			throttle(key)
		}},
		{"bucket", func(key string) { taker.plainly(t, 1, takeCall(t, key, "1000/1s,burst=1")).answered() }},
		{"change", func(key string) { taker.plainly(t, 1, takeCall(t, key, "1/1ms,algo=window")).answered() }},
		{"field", func(key string) {
			taker.plainly(t, 1, takeCall(t, key, "1/1ms,algo=window")).answered()
			time.Sleep(5 * time.Millisecond)
			taker.plainly(t, 1, takeCall(t, key, "1/1ms,algo=slide")).answered() // by a view that does not know the window any more
		}},
	} {
		t.Run(how.key, func(t *testing.T) {
			celldtest.Again(t, func(attempt string) string { // a machine that stands still for view.Linger sees none
				key := how.key + attempt
				woken := make(signal, 1)
				v := other.views.Open([][]byte{[]byte(key)}, woken)
				defer v.Close()
				<-woken
				how.take(key)
				time.Sleep(20 * time.Millisecond) // of the engine: nothing is left by now, and what does not view.Linger is gone
				if left, err := other.do(t, "PTTL", key).AsInt64(); err != nil || left < 1 || left > view.Linger.Milliseconds() {
					return fmt.Sprintf("it is there for %d ms, %v", left, err)
				}
				if how.key == "field" {
					if n, _ := other.do(t, "HLEN", key).AsInt64(); n != 2 {
						return fmt.Sprintf("it has %d fields", n)
					}
				}
				v.Table()
				if taken, err := v.Take([]store.Call{takeCall(t, key, "5/1m")}, store.TakeOptions{Cost: 1},
					store.Access{NowNS: v.NowNS}); err != nil || taken.Limited {
					t.Errorf("%+v, %v", taken, err)
				}
				if v.Commit(woken) {
					t.Fatal("nothing is stored")
				}
				<-woken
				if !v.Conflict() {
					return "it is stored, though another has taken from the key meanwhile"
				}
				return ""
			})
		})
	}
}
