package engines

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"celld/store"
	"celld/store/policy"
	"celld/store/remote"
	"celld/store/storetest"
)

// timed passes on the caller's time as the engine's.
type timed struct {
	*remote.Store
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

// Conform asks an engine what the table in memory is asked. o says where it is. In a Cluster all keys of a Store are in one slot by its
// prefix, as calls of several keys want it.
func Conform(t *testing.T, o remote.Options) {
	t.Helper()
	n := 0
	var open []timed // no test uses more than the last few: thousands of connections take GB
	another := func() (l timed, policies *policy.Set) {
		if n++; len(open) == 4 {
			open[0].Close()
			open = open[1:]
		}
		l.nowNS, policies = &atomic.Int64{}, &policy.Set{}
		o.Prefix, o.Time, o.Policies, o.Timeout = fmt.Sprintf("{%d}:", n), l.nowNS.Load, policies, time.Minute
		var err error
		if l.Store, err = remote.Open(o); err != nil {
			t.Fatal(err)
		}
		open = append(open, l)
		return l, policies
	}
	storetest.Run(t, func() store.Limiter { l, _ := another(); return l })
	storetest.RunStore(t, func() (store.Store, *policy.Set) { return another() })
	for _, l := range open {
		l.Close()
	}
	t.Log(n, "stores")
}
