package view

import (
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
