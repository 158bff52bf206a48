package memory_test

import (
	"context"
	"fmt"
	"net/netip"
	"testing"

	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
	"celld/store/policy"
)

// A store in the process answers at once, and nobody else changes its keys.
func TestAStoreInTheProcess(t *testing.T) {
	p := memory.Port{Store: memory.New(memory.Options{})}
	woken := 0
	tx := p.Open([][]byte{[]byte("k")}, store.OpenOptions{NowNS: t0}, wakerFunc(func() { woken++ }))
	defer tx.Close()
	kind, foreign := tx.Foreign([]byte("k"))
	if woken != 1 || tx.TimeNS() != t0 || tx.Err() != nil || tx.Conflict() || foreign || kind != "" {
		t.Errorf("woken %d times, at %d, %v, conflict %v, foreign %v %q", woken, tx.TimeNS(), tx.Err(), tx.Conflict(), foreign, kind)
	}
	if !tx.Commit(nil) {
		t.Error("something is still to be stored")
	}
	if drained := p.Drain(context.Background()); !p.InProcess() || !drained() || p.Away() != nil || p.PoliciesUnknown() != nil {
		t.Error("it is not here")
	}
}

// Rules of a file are set, and end no more. Those that are there stay as they are. The first that is too many is named.
func TestKeepRules(t *testing.T) {
	p := memory.Port{Store: memory.New(memory.Options{})}
	list := []policy.Rule{{Deny: true, Pattern: "a"}, {Pattern: "b", Net: netip.MustParsePrefix("10.1.0.0/8")}}
	if _, err := p.Set.PutRule(policy.Rule{Deny: true, Pattern: "a", UntilNS: t0 + 1}, t0); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		refused, err := p.KeepRules(list, nil)
		if got := p.Set.Rules(t0 + 2); refused != 0 || err != nil || len(got) != 2 || p.SettingChanges() != 3 {
			t.Errorf("%d, %v: %+v after %d changes", refused, err, got, p.SettingChanges())
		}
	}
	for n := range policy.MaxRules {
		list = append(list, policy.Rule{Pattern: fmt.Sprint("r", n)})
	}
	if refused, err := p.KeepRules(list, nil); refused != policy.MaxRules || err != policy.ErrTooMany {
		t.Errorf("%d, %v", refused, err)
	}
}

// Policies of a file that are as they were keep what was used of them, and others are set. The first that is too many is named.
func TestKeepPolicies(t *testing.T) {
	p := memory.Port{Store: memory.New(memory.Options{})}
	list := []*policy.Policy{policy.New("same", memtest.MustParse(t, "5/1h")), policy.New("other", memtest.MustParse(t, "5/1h"))}
	keep := func(want int, wantErr error) {
		t.Helper()
		if refused, err := p.KeepPolicies(list, nil); refused != want || err != wantErr {
			t.Errorf("%d, %v, want %d, %v", refused, err, want, wantErr)
		}
	}
	keep(0, nil)
	before := p.PolicyNamed("same")
	list[1] = policy.New("other", memtest.MustParse(t, "9/1h"))
	keep(0, nil)
	if got := p.PolicyNamed("other"); got == nil || !got.Same(list[1]) {
		t.Errorf("another limit: %+v", got)
	}
	if got := p.PolicyNamed("same"); got != before {
		t.Errorf("the same limit: %p, was %p", got, before)
	}
	for n := len(list); n < policy.MaxPolicies; n++ {
		list = append(list, policy.New(fmt.Sprint("p", n), list[0].Plain()...))
	}
	keep(0, nil)
	list = append(list, policy.New("one more", list[0].Plain()...))
	keep(policy.MaxPolicies, policy.ErrTooMany)
}
