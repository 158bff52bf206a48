package store_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"celld/store"

	"pgregory.net/rapid"
)

// settingTexts are all policies, with their IDs, and all rules.
func settingTexts(s *store.Store) map[store.Setting]string {
	all := map[store.Setting]string{}
	for kind := range store.SettingKinds {
		for _, name := range s.Settings(kind) {
			setting := store.Setting{Kind: kind, Name: name}
			text, _ := s.SettingText(setting)
			if kind == store.PolicySetting {
				text += fmt.Sprint(" ID ", s.PolicyNamed(name).ID)
			}
			all[setting] = text
		}
	}
	return all
}

// Undo takes settings back to what was told when Keep was last called, as it does keys. Policies have their IDs again.
func TestUndoOfSettings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := store.New(store.Options{Journal: true})
		texts := []string{"5/1h", "6/1h", "5/1m,algo=log"}
		var ids []uint32
		change := func() {
			name := rapid.SampledFrom([]string{"p", "q"}).Draw(t, "name")
			r := store.Rule{Pattern: rapid.SampledFrom([]string{"a", "a*"}).Draw(t, "pattern"), Deny: rapid.Bool().Draw(t, "deny")}
			switch rapid.IntRange(0, 4).Draw(t, "change") {
			case 0, 1:
				o := store.PolicyOptions{Reset: rapid.Bool().Draw(t, "reset")}
				before := s.PolicyNamed(name)
				if _, err := s.SetPolicy(name, mustParse(t, rapid.SampledFrom(texts).Draw(t, "limit")), o); err != nil {
					t.Fatal(err)
				}
				if id := s.PolicyNamed(name).ID; before == nil || o.Reset {
					if slices.Contains(ids, id) {
						t.Fatalf("the ID %d is used again", id)
					}
					ids = append(ids, id)
				}
			case 2:
				s.DeletePolicy(name)
			case 3:
				r.UntilNS = rapid.SampledFrom([]int64{0, t0 + second, t0 + 2*second}).Draw(t, "until")
				if _, err := s.PutRule(r, t0); err != nil {
					t.Fatal(err)
				}
			default:
				s.DeleteRule(r, t0)
			}
		}
		changes := func() {
			for range rapid.IntRange(0, 6).Draw(t, "changes") {
				change()
			}
		}
		copied, renewed := map[store.Setting]string{}, map[store.Setting]bool{}
		tell := func() {
			clear(renewed)
			s.DrainSettings(func(c store.SettingChange) {
				if copied[c.Setting] = settingTexts(s)[c.Setting]; copied[c.Setting] == "" {
					delete(copied, c.Setting)
				}
				if c.Renewed {
					renewed[c.Setting] = true
				}
			})
		}
		s.KeepUndo()
		kept := settingTexts(s)
		for range 5 {
			changes()
			told := settingTexts(s)
			tell()
			changes() // while it is written
			switch rapid.IntRange(0, 2).Draw(t, "end") {
			case 0:
				s.Keep()
				kept = told
				continue
			case 1:
				tell()
			}
			s.Undo(t0)
			if got := settingTexts(s); !maps.Equal(got, kept) {
				t.Fatalf("there is %v, want %v", got, kept)
			}
			tell()
			for setting := range renewed {
				t.Fatalf("%v is told as renewed when it was taken back", setting)
			}
			if !maps.Equal(copied, kept) {
				t.Fatalf("told was %v, and there is %v", copied, kept)
			}
		}
		for _, key := range []string{"a", "ab", "b"} { // the rules hold as they are listed
			want := "no rule"
			for _, r := range s.Rules(t0) {
				if holds(&r, key, t0) && want != "denied" {
					want = map[bool]string{true: "denied", false: "allowed"}[r.Deny]
				}
			}
			limit := mustParse(t, "5/1h")
			taken, err := s.Take([]store.Call{{Key: []byte(key), Limit: &limit}}, store.TakeOptions{Cost: 6}, at(t0)) // 6 of 5 are too many
			if err != nil {
				t.Fatal(err)
			}
			if allowed := !taken.Limited; allowed != (want == "allowed") || (limitOf(s, key, t0) == 0) != (want == "denied") {
				t.Fatalf("%q: %+v, want %s", key, taken, want)
			}
		}
	})
}

// What was used under a policy counts again, also where a key was changed or renamed in between, or had to make room for more
// limits.
func TestUndoOfAPolicyWithWhatWasUsed(t *testing.T) {
	gone := map[string]func(s *store.Store){
		"deleted": func(s *store.Store) { s.DeletePolicy("p") },
		"reset": func(s *store.Store) {
			_, _ = s.SetPolicy("p", mustParse(t, "5/1h"), store.PolicyOptions{Reset: true})
		},
	}
	meanwhile := map[string]func(s *store.Store){
		"nothing": func(*store.Store) {},
		"taken":   func(s *store.Store) { mustTake(t, s, 1, t0, calls(t, "k", "9/1h")) },
		"throttle": func(s *store.Store) {
			s.Delete([]byte("k"), t0)
			mustAllow(t, s, []byte("k"), mustLimit(t, 3, 1, 1), t0)
		},
		"renamed": func(s *store.Store) { s.Rename([]byte("k"), []byte("k2"), t0) },
		"put": func(s *store.Store) {
			_ = s.Update([]byte("k"), at(t0), func(st store.State, ok bool) (store.State, store.Action) { return st, store.Put })
		},
		"room": func(s *store.Store) {
			var others []store.Call
			for i := range store.MaxLimits - 1 {
				others = append(others, calls(t, "k", fmt.Sprintf("9/%ds", 100+i))...)
			}
			mustTake(t, s, 1, t0, others)
		},
	}
	for how, goes := range gone {
		for what, do := range meanwhile {
			s := store.New(store.Options{Journal: true})
			if _, err := s.SetPolicy("p", mustParse(t, "5/1h"), store.PolicyOptions{}); err != nil {
				t.Fatal(err)
			}
			p := s.PolicyNamed("p")
			take := func() store.Taken {
				taken, err := s.Take([]store.Call{{Key: []byte("k"), Limit: &p.Limit, Policy: p.ID}}, store.TakeOptions{Cost: 5}, at(t0))
				if err != nil {
					t.Fatal(err)
				}
				return taken
			}
			take()
			mustTake(t, s, 1, t0, calls(t, "k", "8/2h"))
			s.KeepUndo()
			goes(s)
			do(s)
			version := s.PoliciesVersion()
			s.Undo(t0)
			if s.PoliciesVersion() == version {
				t.Errorf("%s, %s: who knows the policy as it was meanwhile goes on with it", how, what)
			}
			if s.PolicyNamed("p") != p || !take().Limited {
				t.Errorf("%s, %s: what was used is forgotten", how, what)
			}
			expectKeys(t, s, t0, "k")
			mustAudit(t, s)
		}
	}
}
