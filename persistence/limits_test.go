package persistence_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"celld/cell"
	"celld/persistence"
	"celld/store"
	"celld/store/memory"
	"celld/store/policy"

	"pgregory.net/rapid"
)

// texts are all that the store has, policies and rules as well, as tools see it.
func (w *world) texts() map[string]string {
	all := map[string]string{}
	for at, more := (memory.Position{}), true; more; {
		at, more = w.store.Export(at, w.now, func(key []byte, st store.Value) {
			text := fmt.Sprintf("%d %d", st.TAT, st.ExpiryNS)
			if st.Limits != nil {
				text += w.limitsText(*st.Limits)
			}
			all["key "+string(key)] = text
		})
	}
	for kind := range policy.SettingKinds {
		for _, name := range w.store.Settings(kind) {
			text, _ := w.store.SettingText(policy.Setting{Kind: kind, Name: name})
			all[fmt.Sprint("setting ", kind, " ", name)] = text
		}
	}
	return all
}

func (w *world) limitsText(limits store.Limits) string {
	var fields []string
	for i := range limits {
		if l := &limits[i]; l.Limit.EndNS(&l.State) > uint64(w.now) {
			fields = append(fields, "; "+string(l.AppendName(nil))+" "+string(l.Limit.AppendState(nil, &l.State)))
		}
	}
	slices.Sort(fields)
	return strings.Join(fields, "")
}

func (w *world) expectTexts(want map[string]string) {
	w.t.Helper()
	if got := w.texts(); !maps.Equal(got, want) {
		w.t.Fatalf("the store has %v\nwant %v", got, want)
	}
}

// take takes from limits under a key: literals, or @ and the name of a policy.
func (w *world) take(key string, cost int64, limits ...string) store.Taken {
	w.t.Helper()
	var calls []store.Call
	for _, text := range limits {
		if name, isPolicy := strings.CutPrefix(text, "@"); isPolicy {
			p := w.store.PolicyNamed(name)
			for _, l := range p.Limits {
				calls = append(calls, store.CallOf([]byte(key), l))
			}
		} else {
			l := w.literal(text)
			calls = append(calls, store.Call{Key: []byte(key), Limit: &l})
		}
	}
	taken, err := w.store.Take(calls, store.TakeOptions{Cost: cost}, store.Access{NowNS: w.now})
	if err != nil {
		w.t.Fatal(err)
	}
	return taken
}

func (w *world) literal(text string) cell.Limit {
	w.t.Helper()
	l, err := cell.ParseLimit(text)
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

func (w *world) setPolicy(name, limits string, o policy.Options) {
	w.t.Helper()
	parsed, err := policy.ParseLimits(limits)
	if err == nil {
		_, err = w.store.SetPolicy(name, parsed, o)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) putRule(r policy.Rule) {
	w.t.Helper()
	if _, err := w.store.PutRule(r, w.now); err != nil {
		w.t.Fatal(err)
	}
}

var fileLimits = []string{"5/1h", "9/1h,burst=3", "5/2h,block=1m", "4/1h,algo=window", "6/1d,algo=window,align=clock,tz=-03:30",
	"90/month",
	"9/day,tz=Africa/Cairo", "8/week,from=wed/04:00", "5/1h,algo=slide", "6/1h,algo=slide,buckets=7", "5/1h,algo=conc", "5/1h,algo=log",
	"90/3h,algo=log,block=500ms", "5/1h,warmup=9h,cold=2.5", "5/1h,name=a", "9/1h,name=b", "5/1h,algo=log,name=a",
	"9007199254740991/1h,algo=window", "9007199254740991/month", "9007199254740990/1h,algo=slide"}

// drawChange changes something.
func (w *world) drawChange(t *rapid.T) {
	w.store.EndPolicies(w.now)
	key := rapid.SampledFrom([]string{"a", "b", "", "k\r\n*\x00", "e"}).Draw(t, "key")
	name := rapid.SampledFrom([]string{"p", "q:r"}).Draw(t, "name")
	limit := rapid.SampledFrom(fileLimits).Draw(t, "limit")
	switch rapid.IntRange(0, 14).Draw(t, "change") {
	case 0:
		w.store.Rename([]byte(key), []byte("e"), store.Access{NowNS: w.now})
	case 13:
		w.store.RenameNew([]byte(key), []byte("e"), store.Access{NowNS: w.now})
	case 14:
		if key != "e" {
			_, _ = w.store.Copy([]byte(key), []byte("e"), rapid.Bool().Draw(t, "replace"), store.Access{NowNS: w.now})
		}
	case 1:
		w.store.Delete([]byte(key), w.now)
	case 2:
		w.put(key,
			store.Value{TAT: uint64(w.now + 9*second), ExpiryNS: rapid.SampledFrom([]int64{0, -1, w.now + second}).Draw(t, "expiry")})
	case 3:
		expiry := rapid.SampledFrom([]int64{0, -1, w.now + second}).Draw(t, "expiry")
		_ = w.store.Update([]byte(key), store.Access{NowNS: w.now}, func(st store.Value, ok bool) (store.Value, bool) {
			if st.ExpiryNS = expiry; !ok {
				return st, false
			}
			return st, true
		})
	case 4:
		w.setPolicy(name, limit, policy.Options{Reset: rapid.Bool().Draw(t, "reset"), Lasting: rapid.Bool().Draw(t, "lasting"),
			UntilNS: rapid.SampledFrom([]int64{0, 0, w.now + second + 1, w.now + 3600*second}).Draw(t, "until")})
	case 5:
		w.store.DeletePolicy(name)
	case 6:
		r := policy.Rule{Deny: true, Pattern: key + "x*", UntilNS: rapid.SampledFrom([]int64{0, w.now + 60*second}).Draw(t, "until")}
		if rapid.Bool().Draw(t, "net") {
			r.Pattern, r.Net = "ip: ", netip.MustParsePrefix("10.1.0.0/16")
		}
		w.putRule(r)
	case 7:
		w.store.DeleteRule(policy.Rule{Deny: true, Pattern: key + "x*"}, w.now)
	default:
		if st, ok := w.store.Get([]byte(key), store.Access{NowNS: w.now}); ok && !st.HoldsLimits {
			w.store.Delete([]byte(key), w.now)
		}
		limits := []string{limit}
		for _, policy := range w.store.Policies() {
			limits = append(limits, "@"+policy.Name)
		}
		// A cost that no small limit admits is part of a large one.
		cost := rapid.OneOf(rapid.Int64Range(1, 5), rapid.Int64Range(1<<32-2, 1<<51)).Draw(t, "cost")
		w.take(key, cost, limits[rapid.IntRange(0, len(limits)-1).Draw(t, "from"):]...)
	}
}

// All of a store, both kinds of keys, policies and rules, is the same after a restart, and after the next.
func TestRestartWithLimits(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*persistence.Options){"snapshot": snapshots, "append-only": appendOnly, "always": always,
		"rewritten": appendOnly} {
		t.Run(name, func(tt *testing.T) {
			rapid.Check(tt, func(t *rapid.T) {
				w, _ := inMemory(tt, set)
				w.mustOpen()
				for range rapid.IntRange(1, 4).Draw(t, "parts") {
					for range rapid.IntRange(1, 15).Draw(t, "changes") {
						w.drawChange(t)
					}
					if name == "always" {
						if err := w.commit(); err != nil {
							t.Fatal(err)
						}
					}
					w.tick(second)
					w.settle() // else a limit that ends meanwhile is in the file, and not in the store
				}
				if name == "rewritten" {
					w.settle()
					if err := w.m.Rewrite(); err != nil {
						t.Fatal(err)
					}
					w.drawChange(t)
				}
				w.settle()
				w.store.EndPolicies(w.now)
				want := w.texts()
				w.reopen().expectTexts(want)
				w.reopen().expectTexts(want)
				w.m.Stop()
			})
		})
	}
}

// A policy that was reset, or deleted and set again, has forgotten what was used before that, and nothing that was used later, even
// after a restart: whether both were written at once or one after the other, or the file was rewritten.
func TestRestartAfterAReset(t *testing.T) {
	resets := map[string]func(w *world){
		"reset":   func(w *world) { w.setPolicy("p", "5/1h", policy.Options{Reset: true}) },
		"deleted": func(w *world) { w.store.DeletePolicy("p"); w.setPolicy("p", "5/1h", policy.Options{}) },
		"changed": func(w *world) { w.setPolicy("p", "4/1h", policy.Options{}) },
	}
	for name, reset := range resets {
		for _, set := range []func(*persistence.Options){appendOnly, always, snapshots} {
			for rewritten := range 2 {
				w, _ := inMemory(t, set)
				w.mustOpen()
				w.setPolicy("p", "5/1h", policy.Options{})
				w.take("before", 5, "@p")
				w.take("both", 5, "@p", "9/1h")
				w.mustWrite()
				reset(w)
				w.take("since", 5, "@p")
				if rewritten > 0 {
					_ = w.m.Rewrite()
				}
				w.mustWrite()
				want := w.texts()
				w.reopen().expectTexts(want)
				if limited := w.take("before", 1, "@p").Limited; limited != (name == "changed") {
					t.Errorf("%s: limited by what was before: %v", name, limited)
				}
				if name != "changed" && !w.take("since", 1, "@p").Limited {
					t.Errorf("%s: what was used since is forgotten", name)
				}
				if !w.take("both", 5, "9/1h").Limited {
					t.Errorf("%s: what was used of another limit is forgotten", name)
				}
				w.m.Stop()
			}
		}
	}
}

// A limit that stays in its policy keeps what was used of it, and one that left and came back has forgotten it, after a restart, too.
func TestRestartAfterAPlanHasChanged(t *testing.T) {
	for _, set := range []func(*persistence.Options){appendOnly, always, snapshots} {
		w, _ := inMemory(t, set)
		w.mustOpen()
		w.setPolicy("p", "5/1h 9/1d", policy.Options{})
		w.take("k", 5, "@p")
		for _, limits := range []string{"9/1d 30/1m", "5/1h 30/1m 9/1d", "5/1h 9/1d 30/1m"} {
			w.mustWrite()
			w.setPolicy("p", limits, policy.Options{})
		}
		w.mustWrite()
		want := w.texts()
		w.reopen().expectTexts(want)
		if w.take("k", 4, "@p").Limited {
			t.Error("a limit that came back has not begun anew")
		}
		if !w.take("k", 1, "9/1d", "@p").Limited {
			t.Error("what was used of a limit that stayed is forgotten")
		}
		w.m.Stop()
	}
}

// A policy that was there before the files were read, as that of --policies is, is in them from then on.
func TestPoliciesBeforeTheFiles(t *testing.T) {
	for _, set := range []func(*persistence.Options){appendOnly, always} {
		w, _ := inMemory(t, set)
		w.room.Policies = &policy.Set{Journal: true}
		if _, err := w.room.Policies.SetPolicy("p", []cell.Limit{w.literal("5/1h")}, policy.Options{}); err != nil {
			t.Fatal(err)
		}
		w.mustOpen()
		w.take("k", 3, "@p")
		w.mustWrite()
		want := w.texts()
		w.room.Policies = nil
		w.reopen().expectTexts(want)
		if w.store.PolicyNamed("p") == nil || !w.take("k", 3, "@p").Limited {
			t.Error("the policy or what was used of it is gone")
		}
		w.m.Stop()
	}
}

// history is what was ever there, by name.
type history map[string]map[string]bool

func (h history) note(texts map[string]string) {
	for name, text := range texts {
		if h[name] == nil {
			h[name] = map[string]bool{}
		}
		h[name][text] = true
	}
}

func (h history) check(t *testing.T, what string, w *world) {
	t.Helper()
	for name, text := range w.texts() {
		if !h[name][text] {
			t.Fatalf("%s: %s is %s, which never was", what, name, text)
		}
	}
}

// smallLimits returns a world whose file is closed, and all that was in it.
func smallLimits(t *testing.T, set func(*persistence.Options)) (*world, *memoryFS, history) {
	w, files := inMemory(t, set)
	w.mustOpen()
	h := history{}
	step := func(change func()) {
		change()
		h.note(w.texts())
		w.tick(second)
		w.settle()
		h.note(w.texts())
	}
	step(func() { w.setPolicy("p", "5/1h", policy.Options{}) })
	step(func() { w.take("k", 2, "5/1h", "@p") })
	step(func() { w.take("k", 1, "5/1h,algo=log"); w.throttle("other") })
	for _, calls := range []int{65, 3, 70, 1} { // of one log: parts, and what follows them
		step(func() {
			for range calls {
				w.take("long", 1, "300/1h,algo=log")
				w.pass(1)
			}
		})
	}
	step(func() { w.take("k", 1, "5/1h,algo=log", "@p"); w.putRule(policy.Rule{Pattern: "x*"}) })
	step(func() { w.take("k", 9, "5/1h,algo=slide,buckets=2,block=1h") })
	step(func() {
		w.setPolicy("p", "9/1h", policy.Options{Reset: true})
		h.note(w.texts())
		w.take("k", 1, "@p")
	})
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	return w, files, h
}

// If the clock was set back, nobody waits longer than when the file was written, and rules end as much earlier.
func TestLimitsOnAClockSetBack(t *testing.T) {
	for name, set := range map[string]func(*persistence.Options){"snapshot": snapshots, "append-only": appendOnly} {
		w, _ := inMemory(t, set)
		w.mustOpen()
		limits := slices.DeleteFunc(slices.Clone(fileLimits), func(text string) bool { return text == "90/month" })
		for i, text := range limits {
			w.take(fmt.Sprint(i), 3, text)
		}
		w.putRule(policy.Rule{Deny: true, Pattern: "x", UntilNS: w.now + 60*second})
		w.putRule(policy.Rule{Deny: true, Pattern: "y"})
		if err := w.close(); err != nil {
			t.Fatal(err)
		}
		waits := func() (all []store.Taken) {
			for i, text := range limits {
				taken := w.take(fmt.Sprint(i), 0, text)
				all = append(all, taken)
			}
			return append(all, w.take("x", 0, "5/1h"))
		}
		before := waits()
		w.now -= 10*86400*second + 1_234_567
		w.mustOpen()
		for key, st := range w.states() {
			if held, _ := w.store.Get([]byte(key), store.Access{NowNS: w.now}); held.TAT != st.TAT {
				t.Errorf("%q ends at %d, and its limits at %d", key, held.TAT, st.TAT)
			}
		}
		for i, after := range waits() {
			longest := before[i].ResetAfterNS
			if i < len(limits) && strings.Contains(limits[i], "buckets") {
				longest += 3600 * uint64(second) / 7 // a sub-window begins where it does
			}
			if after.ResetAfterNS > longest || after.ResetAfterNS < before[i].ResetAfterNS/2 {
				t.Errorf("%s: %d: %+v, before %+v", name, i, after, before[i])
			}
		}
		want := w.texts()
		w.reopen().expectTexts(want)
		w.m.Stop()
	}
}

// A clock that is a little behind at each of many starts takes nothing from a limit that counts in sub-windows.
func TestTheClockIsALittleBehindAtEachStart(t *testing.T) {
	w, _ := inMemory(t, always)
	w.mustOpen()
	const limit = "20/300d,algo=slide,buckets=5"
	w.take("k", 20, limit)
	w.mustWrite()
	for range 9 {
		if err := w.close(); err != nil {
			t.Fatal(err)
		}
		w.now--
		w.mustOpen()
		if taken := w.take("k", 1, limit); !taken.Limited {
			t.Fatalf("%+v; %s", taken, w.log)
		}
	}
}

// A temporary policy ends while celld is down, or goes on after the start, also where the wall clock was set. What was used of the lasting
// one still counts.
func TestRestartWithATemporaryPolicy(t *testing.T) {
	for name, set := range map[string]func(*persistence.Options){"snapshot": snapshots, "append-only": appendOnly, "always": always} {
		for _, by := range []int64{0, -7200 * second, 7200 * second} {
			w := newWorld(t, set).mustOpen()
			w.setPolicy("p", "5/1h,algo=window 9/1d", policy.Options{})
			w.take("k", 3, "@p")
			w.setPolicy("p", "50/1h,algo=window 2/1s", policy.Options{UntilNS: w.now + 60*second})
			w.take("k", 1, "@p")
			w.mustWrite()
			w.setWall(by)
			w.tick(0)
			w.settle()
			for _, passed := range []int64{10, 100} {
				w.now += passed * second
				w.restartAt(w.store.WallNS(w.now))
				p := w.store.PolicyNamed("p")
				if temporary := passed < 60; temporary != (p.UntilNS != 0) || temporary && p.UntilNS-w.now != 49*second {
					t.Fatalf("%s, set by %d: until %d at %d", name, by, p.UntilNS, w.now)
				}
			}
			one, other := w.take("k", 2, "@p"), w.take("k", 1, "@p")
			w.setPolicy("p", "9/1d", policy.Options{})
			if !one.Limited || other.Limited || !w.take("k", 6, "@p").Limited || w.take("k", 5, "@p").Limited {
				t.Errorf("%s, set by %d: what was used is forgotten", name, by)
			}
			w.m.Stop()
		}
	}
}

// A rule that was over when the file was written does not hold again because the clock was set back.
func TestARuleThatWasOverWhenTheClockWasSetBack(t *testing.T) {
	w, _ := inMemory(t, appendOnly)
	w.mustOpen()
	w.putRule(policy.Rule{Deny: true, Pattern: "over", UntilNS: w.now + 2*second})
	w.putRule(policy.Rule{Deny: true, Pattern: "holds", UntilNS: w.now + 60*second})
	w.mustWrite()
	w.pass(5 * second) // too short for the removal of those that are over
	w.throttle("a")
	w.mustWrite()
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	w.now -= 3600 * second
	w.mustOpen()
	if w.take("over", 1, "5/1h").Limited || !w.take("holds", 1, "5/1h").Limited {
		t.Errorf("%+v", w.store.Rules(w.now))
	}
	w.m.Stop()
}
