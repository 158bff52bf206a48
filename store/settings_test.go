package store_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"celld/cell"
	"celld/store"

	"pgregory.net/rapid"
)

// holds says by a rule's definition whether it holds for a key.
func holds(r *store.Rule, key string, nowNS int64) bool {
	if r.UntilNS != 0 && r.UntilNS <= nowNS {
		return false
	}
	if r.Net.IsValid() {
		rest, found := strings.CutPrefix(key, r.Pattern)
		addr, err := netip.ParseAddr(rest)
		if !found || err != nil || addr.Zone() != "" {
			return false
		}
		net := r.Net
		if net.Addr().Is4In6() && net.Bits() >= 96 {
			net = netip.PrefixFrom(net.Addr().Unmap(), net.Bits()-96)
		}
		return net.Contains(addr.Unmap())
	}
	if prefix, found := strings.CutSuffix(r.Pattern, "*"); found {
		return strings.HasPrefix(key, prefix)
	}
	return key == r.Pattern
}

var (
	rulePatterns = []string{"", "*", "a", "a*", "ab", "ab*", "a**", "ip:", "ip:*", "ip:10.0.0.1", "x"}
	ruleNets     = []string{"", "", "", "10.0.0.0/8", "10.0.0.1/32", "10.0.0.77/24", "0.0.0.0/0", "::/0", "2001:db8::/32", "2001:db8::1/128", "::ffff:10.0.0.0/104", "::ffff:0.0.0.0/90"}
	ruleKeys     = []string{"", "a", "ab", "abc", "a*", "x", "ip:", "ip:10.0.0.1", "ip:10.0.0.2", "ip:10.1.0.1", "ip:11.0.0.1", "ip:::ffff:10.0.0.1",
		"ip:2001:db8::1", "ip:2001:0db8:0000:0000:0000:0000:0000:0002", "ip:fe80::1%eth0", "ip:10.0.0.1x", "ip:010.0.0.1", "10.0.0.1", "::1", "ip:0000:0000:0000:0000:0000:ffff:255.255.255.255"}
)

// Rules are as if all of them were looked at, those that deny first.
func TestRulesModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := store.New(store.Options{Journal: true})
		var list []store.Rule
		now := t0
		limit := mustParse(t, "5/1m")
		draw := func(t *rapid.T) store.Rule {
			r := store.Rule{Deny: rapid.Bool().Draw(t, "deny"), Pattern: rapid.SampledFrom(rulePatterns).Draw(t, "pattern")}
			if net := rapid.SampledFrom(ruleNets).Draw(t, "net"); net != "" {
				r.Net = netip.MustParsePrefix(net)
			}
			return r
		}
		same := func(r store.Rule) func(store.Rule) bool {
			return func(of store.Rule) bool {
				masked := func(net netip.Prefix) netip.Prefix {
					if net.IsValid() && net.Addr().Is4In6() && net.Bits() >= 96 {
						net = netip.PrefixFrom(net.Addr().Unmap(), net.Bits()-96)
					}
					return net.Masked()
				}
				return of.Deny == r.Deny && of.Pattern == r.Pattern && masked(of.Net) == masked(r.Net)
			}
		}
		live := func(r store.Rule) bool { return r.UntilNS == 0 || r.UntilNS > now }
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				r := draw(t)
				r.UntilNS = rapid.SampledFrom([]int64{0, 0, now + second/1000, now + second}).Draw(t, "until")
				at := slices.IndexFunc(list, same(r))
				added, err := s.PutRule(r, now)
				if err != nil || added != (at < 0 || !live(list[at])) {
					t.Fatalf("put %+v: %v, %v", r, added, err)
				}
				list = append(slices.DeleteFunc(list, same(r)), r)
			},
			"delete": func(t *rapid.T) {
				r := draw(t)
				at := slices.IndexFunc(list, same(r))
				if got, want := s.DeleteRule(r, now), at >= 0 && live(list[at]); got != want {
					t.Fatalf("delete %+v: %v", r, got)
				}
				list = slices.DeleteFunc(list, same(r))
			},
			"sweep": func(t *rapid.T) {
				for s.Sweep(now) {
				}
				ended := func(r store.Rule) bool { return r.UntilNS != 0 && r.UntilNS <= now-10*second }
				list = slices.DeleteFunc(list, ended)
				if got := len(s.Settings(store.RuleSetting)); got > len(list) || s.SweepDue(now) {
					t.Fatalf("%d rules are kept of %+v", got, list)
				}
			},
			"pass": func(t *rapid.T) {
				now += rapid.SampledFrom([]int64{second / 1000, second / 2, 11 * second}).Draw(t, "ns")
			},
			"file": func(t *rapid.T) { // all of them through their texts
				next := store.New(store.Options{})
				for _, name := range s.Settings(store.RuleSetting) {
					setting := store.Setting{Kind: store.RuleSetting, Name: name}
					text, ok := s.SettingText(setting)
					if err := next.PutSetting(setting, text, now); err != nil || !ok {
						t.Fatalf("%q %q: %v", name, text, err)
					}
				}
				got, want := next.Rules(now), s.Rules(now)
				if !slices.Equal(got, want) {
					t.Fatalf("%+v became %+v", want, got)
				}
			},
			"": func(t *rapid.T) {
				if got, want := len(s.Rules(now)), len(slices.DeleteFunc(slices.Clone(list), func(r store.Rule) bool { return !live(r) })); got != want {
					t.Fatalf("%d rules, want %d", got, want)
				}
				for _, key := range ruleKeys {
					want := "no rule"
					for _, r := range list {
						if holds(&r, key, now) && want != "denied" {
							want = map[bool]string{true: "denied", false: "allowed"}[r.Deny]
						}
					}
					taken, err := s.Take([]store.Call{{Key: []byte(key), Limit: &limit}}, store.TakeOptions{Cost: 6}, at(now))
					got := "no rule" // 6 of 5 are too many
					if err != nil {
						t.Fatal(err)
					} else if !taken.Limited {
						got = "allowed"
					} else if limitOf(s, key, now) == 0 {
						got = "denied"
					}
					if got != want {
						t.Fatalf("%q: %s, want %s of %+v", key, got, want, list)
					}
				}
			},
		})
	})
}

// limitOf is the limit that CL.THROTTLE tells: 0 where a rule denies.
func limitOf(s *store.Store, key string, nowNS int64) int64 {
	l, err := cell.NewLimit(4, 1, 1)
	if err != nil {
		panic(err)
	}
	d, _ := s.Throttle([]byte(key), l, 0, at(nowNS))
	return d.Limit
}

// There are so many rules and policies and no more; rules that are over make room.
func TestMostSettings(t *testing.T) {
	s := store.New(store.Options{Journal: true})
	limit := mustParse(t, "5/1m")
	for i := range store.MaxRules {
		until := int64(0)
		if i%1000 == 0 {
			until = t0 + second
		}
		if added, err := s.PutRule(store.Rule{Pattern: fmt.Sprint(i), UntilNS: until}, t0); !added || err != nil {
			t.Fatal(added, err)
		}
		if set, err := s.SetPolicy(fmt.Sprint(i), limit, store.PolicyOptions{}); !set || err != nil {
			t.Fatal(set, err)
		}
	}
	if _, err := s.PutRule(store.Rule{Pattern: "more"}, t0); err != store.ErrTooMany {
		t.Error(err)
	}
	if _, err := s.SetPolicy("more", limit, store.PolicyOptions{}); err != store.ErrTooMany {
		t.Error(err)
	}
	if _, err := s.PutRule(store.Rule{Pattern: "1"}, t0); err != nil {
		t.Error(err)
	}
	if _, err := s.SetPolicy("1", limit, store.PolicyOptions{Reset: true}); err != nil {
		t.Error(err)
	}
	if _, err := s.PutRule(store.Rule{Pattern: "more"}, t0+second); err != nil || len(s.Rules(t0+second)) != store.MaxRules-store.MaxRules/1000 {
		t.Error(err, len(s.Rules(t0+second)))
	}
	changes := map[store.Setting]bool{}
	if lost := s.DrainSettings(func(c store.SettingChange) { changes[c.Setting] = c.Renewed }); lost || len(changes) != store.MaxRules+store.MaxPolicies+1 {
		t.Errorf("%d changes, lost: %v", len(changes), lost)
	}
	for setting, renewed := range changes {
		if renewed != (setting == store.Setting{Kind: store.PolicySetting, Name: "1"}) {
			t.Errorf("%+v renewed: %v", setting, renewed)
		}
	}
}

// A client that adds and deletes names for ever fills no memory when nobody drains them. What is lost of it is told.
func TestSettingsAreNotNotedForEver(t *testing.T) {
	s := store.New(store.Options{Journal: true})
	limit := mustParse(t, "5/1m")
	name := strings.Repeat("n", 1<<10)
	for i := range 40_000 {
		if _, err := s.SetPolicy(fmt.Sprint(name, i), limit, store.PolicyOptions{}); err != nil {
			t.Fatal(err)
		}
		s.DeletePolicy(fmt.Sprint(name, i))
	}
	changes := 0
	lost := s.DrainSettings(func(store.SettingChange) { changes++ })
	if !lost || changes > 17_000 || changes < 10_000 {
		t.Errorf("%d changes, lost: %v", changes, lost)
	}
	s.DeletePolicy("none")
	if lost := s.DrainSettings(func(store.SettingChange) { t.Error("a change") }); lost {
		t.Error("lost again")
	}
	if len(s.Policies()) != 0 {
		t.Error("policies")
	}
}

// A policy that is reset, or deleted and set again, forgets what was used under it, whatever key it was under.
func TestPoliciesForget(t *testing.T) {
	s := store.New(store.Options{})
	set := func(o store.PolicyOptions) *store.Policy {
		t.Helper()
		if _, err := s.SetPolicy("p", mustParse(t, "5/1h"), o); err != nil {
			t.Fatal(err)
		}
		return s.PolicyNamed("p")
	}
	take := func(key string, p *store.Policy) store.Taken {
		t.Helper()
		taken, err := s.Take([]store.Call{{Key: []byte(key), Limit: &p.Limit, Policy: p.ID}}, store.TakeOptions{Cost: 5}, at(t0))
		if err != nil {
			t.Fatal(err)
		}
		return taken
	}
	forget := map[string]func() *store.Policy{
		"reset":   func() *store.Policy { return set(store.PolicyOptions{Reset: true}) },
		"deleted": func() *store.Policy { s.DeletePolicy("p"); return set(store.PolicyOptions{}) },
	}
	for _, name := range slices.Sorted(maps.Keys(forget)) {
		if p := set(store.PolicyOptions{Reset: true}); take("k", p).Limited || !take("k", p).Limited {
			t.Error(name)
		}
		mustTake(t, s, 1, t0, calls(t, "other", "1/1m"))
		old := s.PolicyNamed("p")
		take("alone", old)
		take("other", old)
		p := forget[name]()
		// Keys that held nothing else are gone.
		if s.Rename([]byte("alone"), []byte("other"), t0) || !s.Rename([]byte("other"), []byte("other2"), t0) {
			t.Error(name, "rename")
		}
		expectKeys(t, s, t0, "other2")
		if n := count(s, "other2", t0); n != 1 {
			t.Errorf("%s: %d limits", name, n)
		}
		if end, ok := s.Get([]byte("other2"), at(t0)); !ok || end.TAT != uint64(t0+60*second) {
			t.Errorf("%s: ends at %d", name, end.TAT-uint64(t0))
		}
		if take("k", p).Limited || take("other2", p).Limited {
			t.Error(name, "is not forgotten")
		}
		s.Delete([]byte("other2"), t0)
		s.Delete([]byte("k"), t0)
		mustAudit(t, s)
	}
	if s.Stats(t0).Bytes != 0 {
		t.Errorf("%+v", s.Stats(t0))
	}
}

// A key that holds nothing but what was used of policies that are gone is no key, to whatever looks.
func TestKeysOfGonePoliciesAreNoKeys(t *testing.T) {
	limit := mustLimit(t, 3, 1, 1)
	name, a := []byte("ghost"), at(t0)
	looks := map[string]func(s *store.Store) bool{
		"Get":       func(s *store.Store) bool { _, ok := s.Get(name, a); return ok },
		"Delete":    func(s *store.Store) bool { return s.Delete(name, t0) },
		"IdleNS":    func(s *store.Store) bool { _, ok := s.IdleNS(name, t0); return ok },
		"Rename":    func(s *store.Store) bool { return s.Rename(name, []byte("live"), t0) },
		"RenameNew": func(s *store.Store) bool { there, _ := s.RenameNew(name, []byte("new"), t0); return there },
		"Copy":      func(s *store.Store) bool { ok, _ := s.Copy(name, []byte("new"), false, a); return ok },
		"KeyBytes":  func(s *store.Store) bool { _, ok := s.KeyBytes(name, t0); return ok },
		"Limits":    func(s *store.Store) bool { ok, _ := s.Limits(name, a, func(*store.LimitState) {}); return ok },
		"Len":       func(s *store.Store) bool { return s.Len(t0) != 1 },
		"Random":    func(s *store.Store) bool { key, _ := s.Random(t0); return key != "live" },
		"Scan": func(s *store.Store) (found bool) {
			s.Scan(0, 10, t0, func(key string, _ store.State) { found = found || key != "live" })
			return found
		},
		"Export": func(s *store.Store) (found bool) {
			s.Export(store.Position{}, t0, func(key []byte, _ store.State) { found = found || string(key) != "live" })
			return found
		},
		"Update": func(s *store.Store) (there bool) {
			_ = s.Update(name, a, func(st store.State, ok bool) (store.State, store.Action) { there = ok; return st, store.Leave })
			return there
		},
		"Throttle": func(s *store.Store) bool {
			d, err := s.Throttle(name, limit, 1, a)
			s.Delete(name, t0)
			return err != nil || d.Remaining != 3
		},
		"Give": func(s *store.Store) bool {
			l := mustParse(t, "1/1h")
			n, err := s.Give(name, &l, 0, 1, a)
			return n != 0 || err != nil
		},
		"Watch": func(s *store.Store) bool { w := s.Watch(name, t0); defer w.Stop(); s.Flush(); return w.Changed(t0) },
	}
	for look, there := range looks {
		for _, gone := range []string{"deleted", "reset"} {
			s := store.New(store.Options{Journal: true})
			limit := mustParse(t, "1/1h")
			if _, err := s.SetPolicy("p", limit, store.PolicyOptions{}); err != nil {
				t.Fatal(err)
			}
			p := s.PolicyNamed("p")
			if _, err := s.Take([]store.Call{{Key: name, Limit: &p.Limit, Policy: p.ID}}, store.TakeOptions{Cost: 1}, a); err != nil {
				t.Fatal(err)
			}
			mustPut(t, s, "live", live(t0, second), t0)
			if gone == "deleted" {
				s.DeletePolicy("p")
			} else if _, err := s.SetPolicy("p", limit, store.PolicyOptions{Reset: true}); err != nil {
				t.Fatal(err)
			}
			if there(s) {
				t.Errorf("%s: %s finds it", gone, look)
			}
			mustAudit(t, s)
			if sweep(s, t0); s.Stats(t0).Bytes > 4+store.OverheadBytes {
				t.Errorf("%s, %s: it still takes room: %+v", gone, look, s.Stats(t0))
			}
		}
	}
}

// Sweep walks through the whole table for what is of policies that are gone, in short steps, and once.
func TestSweepPrunes(t *testing.T) {
	for _, shards := range []int{1, 4} {
		s := store.New(store.Options{Shards: shards})
		for _, name := range []string{"p", "q"} {
			if _, err := s.SetPolicy(name, mustParse(t, "1/1h"), store.PolicyOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 1000 {
			p := s.PolicyNamed([]string{"p", "q"}[i%2])
			if _, err := s.Take([]store.Call{{Key: fmt.Append(nil, i), Limit: &p.Limit, Policy: p.ID}}, store.TakeOptions{Cost: 1}, at(t0)); err != nil {
				t.Fatal(err)
			}
		}
		if sweep(s, t0); s.SweepDue(t0) {
			t.Fatal("a sweep is due before a policy goes")
		}
		steps := 0
		s.DeletePolicy("p")
		for s.Sweep(t0) {
			if steps++; steps == 3 {
				s.DeletePolicy("q") // whose first keys it has passed
			}
		}
		if n := s.Len(t0); n != 0 || s.Stats(t0).Bytes != 0 || s.SweepDue(t0) || steps < 1000/64 {
			t.Errorf("%d keys are left after %d steps: %+v", n, steps, s.Stats(t0))
		}
		mustAudit(t, s)
	}
}
