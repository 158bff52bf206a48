package remote

import (
	"fmt"
	"sync/atomic"
	"testing"

	"celld/store"
	"celld/store/storetest"
)

// timed passes on the caller's time as the engine's.
type timed struct {
	*Store
	nowNS *atomic.Int64
}

func (l timed) ThrottleBatch(reqs []store.Request, a store.Access, w store.Waker) bool {
	l.nowNS.Store(a.NowNS)
	return l.Store.ThrottleBatch(reqs, a, w)
}

func (l timed) TakeBatch(reqs []store.TakeRequest, a store.Access, w store.Waker) bool {
	l.nowNS.Store(a.NowNS)
	return l.Store.TakeBatch(reqs, a, w)
}

func TestConformance(t *testing.T) {
	socket := startRedis(t)
	n := 0
	storetest.Run(t, func() store.Limiter {
		l := timed{nowNS: &atomic.Int64{}}
		n++
		l.Store = newTestStore(t, socket, Options{Prefix: fmt.Sprint(n, ":"), Time: l.nowNS.Load})
		return l
	})
}
