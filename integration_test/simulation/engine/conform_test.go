package engine

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

// kinds are the fleets that tests run on.
var kinds = []struct {
	name    string
	options Options
}{
	{"alone", Options{Valkey: true, Password: "s3cret"}},
	{"cluster", Options{Kind: Cluster, Replicas: 1}},
	{"sentinel", Options{Kind: Sentinel, Replicas: 2, Files: EachSecond}},
}

// newEngine is New for a test, which fails if somebody sends what is not simulated.
func newEngine(t testing.TB, o Options) *Engine {
	o.Rand = testRand()
	e := New(o)
	t.Cleanup(func() {
		for _, command := range e.Unknown() {
			t.Errorf("not simulated: %s", command)
		}
	})
	return e
}

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

// TestConformance asks a Store on each kind of Engine what real engines are asked.
func TestConformance(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			e := newEngine(t, kind.options)
			n := 0
			var open []timed // no test uses more than the last few
			another := func() (l timed, policies *policy.Set) {
				if n++; len(open) == 4 {
					open[0].Close()
					open = open[1:]
				}
				l.nowNS, policies = &atomic.Int64{}, &policy.Set{}
				var err error
				l.Store, err = remote.Open(remote.Options{URL: e.URL(), Dial: e.Dial, Prefix: fmt.Sprintf("{%d}:", n), Time: l.nowNS.Load,
					Policies: policies, Timeout: time.Minute})
				if err != nil {
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
		})
	}
}
