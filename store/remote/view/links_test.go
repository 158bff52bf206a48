package view

import (
	"errors"
	"testing"

	"celld/store"
	"celld/store/remote/link/linktest"
)

// A key to which a lease leads is neither read nor changed for a caller without the right to it, who asks by a view or without one.
func TestLinksNeedARight(t *testing.T) {
	s := newTestStore(t, linktest.StartRedis(t), Options{Prefix: "p:"})
	limit := linktest.Literal(t, "9/1h")
	take := func(may store.Right, name string, keys ...string) *store.TakeRequest {
		r := &store.TakeRequest{TakeOptions: store.TakeOptions{Cost: 2, Terms: &store.Terms{LeaseNS: 60e9, Name: name}}}
		for _, key := range keys {
			r.Calls = append(r.Calls, store.Call{Key: []byte(key), Limit: limit})
		}
		s.takeAs(r, may)
		return r
	}
	one := func(r *store.TakeRequest) int64 { return r.Terms.Lease }
	id := one(take(nil, "n", "a", "b"))
	if id == 0 {
		t.Fatal("no lease")
	}
	before := []map[string]string{s.hash(t, "p:a"), s.hash(t, "p:b")}
	asked := false
	none := store.Right(func(key []byte, reads, writes bool) bool {
		asked = true
		if string(key) != "b" || !reads || !writes {
			t.Errorf("asked for %s", key)
		}
		return false
	})
	for name, ask := range map[string]func(v *View, a store.Access) error{
		"release": func(v *View, a store.Access) error { _, err := v.Release([]byte("a"), id, a); return err },
		"settle":  func(v *View, a store.Access) error { _, err := v.Settle([]byte("a"), id, 9, a); return err },
		"renew":   func(v *View, a store.Access) error { _, err := v.Renew([]byte("a"), id, 1e9, a); return err },
		"rename":  func(v *View, a store.Access) error { _, err := v.Rename([]byte("a"), []byte("c"), a); return err },
	} {
		asked = false
		s.on(t, func(v *View) {
			refused := (*store.NoRightError)(nil)
			if err := ask(v, store.Access{NowNS: v.NowNS, May: none}); !errors.As(err, &refused) || !asked || len(v.missing) > 0 {
				t.Errorf("%s: %v, asked %v, reads %q", name, err, asked, v.missing)
			}
		}, "a", "c")
	}
	if lease := one(take(none, "n", "a")); lease != 0 || !asked {
		t.Errorf("lease %d", lease)
	}
	if b := s.hash(t, "p:b"); len(b) != len(before[1]) || len(s.hash(t, "p:a")) != len(before[0]) {
		t.Errorf("%v was %v", b, before[1])
	} else {
		for name, text := range b {
			if before[1][name] != text {
				t.Errorf("b: %s is %s, was %s", name, text, before[1][name])
			}
		}
	}
	if take(func([]byte, bool, bool) bool { return true }, "n", "a").Terms.Lease != id {
		t.Error("who may, has no answer")
	}
}
