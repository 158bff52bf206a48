package remote

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"celld/integration_test/harness"
	"celld/store"
	"celld/store/policy"
	"celld/store/storetest"
)

// timed passes on the caller's time as the engine's.
type timed struct {
	*Store
	nowNS *atomic.Int64
}

func (l timed) Open(keys [][]byte, o store.OpenOptions, w store.Waker) store.Tx {
	l.nowNS.Store(o.NowNS)
	return l.Store.Open(keys, o, w)
}

func (l timed) ThrottleBatch(reqs []store.Request, a store.Access, w store.Waker) bool {
	l.nowNS.Store(a.NowNS)
	return l.Store.ThrottleBatch(reqs, a, w)
}

func (l timed) TakeBatch(reqs []store.TakeRequest, a store.Access, w store.Waker) bool {
	l.nowNS.Store(a.NowNS)
	return l.Store.TakeBatch(reqs, a, w)
}

// TestConformance asks each engine, alone, as a Cluster and with Sentinels, what the table in memory is asked. In a Cluster all keys
// of a Store are in one slot by its prefix, as calls of several keys want it.
func TestConformance(t *testing.T) {
	harness.EachFleet(t, func(t *testing.T, f *harness.Fleet) {
		first, err := Open(Options{URL: f.URL, Policies: &policy.Set{}, Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(first.Close)
		for i := range 20 { // connects to all masters: that has 2 s, whatever Timeout is
			client := first.link.Client()
			harness.Eventually(t, "the engine answers", func() bool {
				err := client.Do(t.Context(), client.B().Get().Key(fmt.Sprint("none", i)).Build()).Error()
				return rueidis.IsRedisNil(err)
			})
		}
		n := 0
		another := func() timed { // all by one connection
			l := timed{nowNS: &atomic.Int64{}}
			n++
			l.Store = newStore(Options{Prefix: fmt.Sprintf("{%d}:", n), Time: l.nowNS.Load, Policies: &policy.Set{}, Timeout: time.Minute, MaxWaiting: defaultMaxWaiting})
			l.Store.link.Use(first.link.Client())
			return l
		}
		storetest.Run(t, func() store.Limiter { return another() })
		storetest.RunStore(t, func() (store.Store, *policy.Set) {
			l := another()
			l.settings.Start()
			t.Cleanup(l.settings.Close)
			return l, l.policies
		})
	})
}
