package view

import (
	"math"
	"strconv"
	"testing"

	"celld/store"
	"celld/store/remote/link/linktest"
)

// Whatever is said of a key's expiry, the engine keeps it no longer than a little after its limits have nothing left to remember, and what
// was said is told as in memory.
func TestNoKeyOutlivesItsLimits(t *testing.T) {
	now := in2100
	s := newTestStore(t, linktest.StartRedis(t), Options{Time: func() int64 { return now }})
	for name, make := range map[string]func(v *View, a store.Access){
		"TAT": func(v *View, a store.Access) {
			_, _ = v.Throttle([]byte("k"), linktest.Literal(t, "1/4s").Bucket(), 1, a)
		},
		"lease":  func(v *View, _ store.Access) { v.take(t, "k", "1/4s,algo=conc") },
		"window": func(v *View, _ store.Access) { v.take(t, "k", "1/4s,algo=window") },
	} {
		for _, said := range []int64{store.NoExpiry, now + 3600e9, now + 4e9, now + 3e9} {
			told := said
			if said == now+4e9 {
				told = store.AtTAT
			}
			s.do(t, "DEL", "k", "other")
			a := store.Access{NowNS: now}
			s.on(t, func(v *View) { make(v, a) }, "k")
			s.on(t, func(v *View) {
				_ = v.Update([]byte("k"), a, func(old store.Value, _ bool) (store.Value, bool) {
					old.ExpiryNS = said
					return old, true
				})
			}, "k")
			s.on(t, func(v *View) { _, _ = v.Rename([]byte("k"), []byte("other"), a) }, "k", "other")
			s.on(t, func(v *View) { _, _ = v.Copy([]byte("other"), []byte("k"), false, a) }, "k", "other")
			for _, key := range []string{"k", "other"} {
				if name == "lease" && key == "k" { // no lease is copied
					continue
				}
				s.on(t, func(v *View) {
					if got, ok := v.Get([]byte(key), a); !ok || got.ExpiryNS != told {
						t.Errorf("%s, %d: %s expires at %d, %v", name, said, key, got.ExpiryNS, ok)
					}
				}, key)
				if at, err := s.do(t, "PEXPIRETIME", key).AsInt64(); err != nil || at <= now/1e6 || at > (now+4e9)/1e6+persisted {
					t.Errorf("%s, %d: %s is on the engine until %d, %v", name, said, key, at, err)
				}
			}
			now += 4e9
			s.on(t, func(v *View) {
				if _, ok := v.Get([]byte("other"), store.Access{NowNS: now}); ok {
					t.Errorf("%s, %d: it is there after its end", name, said)
				}
			}, "other")
			now -= 4e9
		}
	}
}

// What nobody sees is there all the same: DEL removes it, and what is written in its place lives no longer than it would elsewhere.
func TestWhatIsNotShown(t *testing.T) {
	now := in2100
	s := newTestStore(t, linktest.StartRedis(t), Options{Time: func() int64 { return now }})
	k, end := []byte("k"), strconv.FormatInt(now/1e6+3600e3, 10)
	for name, hidden := range map[string][]string{
		"limit of a policy that is gone": {"HSET", "k", "@gone/gcra/1h", "limit=9/1h tat=" + strconv.FormatInt(now+3600e9, 10)},
		"limit that is full":             {"HSET", "k", "gcra/1h", "limit=9/1h tat=" + strconv.FormatInt(now-1, 10)},
		"TAT that has passed":            {"SET", "k", strconv.FormatInt(now-1, 10)},
	} {
		hide := func() {
			s.do(t, "DEL", "k")
			s.do(t, hidden...)
			s.do(t, "PEXPIREAT", "k", map[bool]string{true: strconv.FormatInt(now/1e6+900, 10), false: end}[hidden[0] == "SET"])
		}
		hide()
		s.on(t, func(v *View) {
			if _, there := v.Get(k, store.Access{NowNS: now}); there || v.Delete(k, now) {
				t.Errorf("%s: it is shown", name)
			}
		}, "k")
		if n, _ := s.do(t, "EXISTS", "k").AsInt64(); n != 0 {
			t.Errorf("%s: DEL has left it", name)
		}
		hide()
		s.on(t, func(v *View) { _, _ = v.Throttle(k, linktest.Literal(t, "1/4s").Bucket(), 1, store.Access{NowNS: now}) }, "k")
		if at, _ := s.do(t, "PEXPIRETIME", "k").AsInt64(); at != now/1e6+4e3+Linger.Milliseconds() {
			t.Errorf("%s: a TAT in its place stays until %d", name, at)
		}
	}
}

// An expiry of another program may lie beyond what ns can say.
func TestExpiryBeyond2262(t *testing.T) {
	s := newTestStore(t, linktest.StartRedis(t), Options{})
	for _, value := range []string{"5", "x"} {
		s.do(t, "SET", "k", value, "PXAT", "9300000000000")
		s.on(t, func(v *View) {
			if got, there := v.Get([]byte("k"), store.Access{NowNS: v.NowNS}); !there || got.Expiry() != math.MaxInt64/1_000_000*1_000_000 {
				t.Errorf("%s: %+v, %v", value, got, there)
			}
		}, "k")
		if at, _ := s.do(t, "PEXPIRETIME", "k").AsInt64(); at != 9_300_000_000_000 {
			t.Errorf("%s: reading it has changed it to %d", value, at)
		}
	}
}
