package settings

import (
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"celld/cell"
	"celld/store/policy"
	"celld/store/remote/link/linktest"
)

// The scripts say in Lua what policy.Set says in Go: NX, XX, RESET, EX, which limits keep what was used of them, how many policies there
// may be, and when a temporary policy or a rule is over. The test says the same drawn changes to both. An epoch stays where a Set keeps the
// ID of a limit, and is a later one where that gives another.
func TestDrawnChanges(t *testing.T) {
	var now atomic.Int64
	linktest.OnEngines(t, now.Load, func(t *testing.T, dial linktest.Dialer, simulated bool) {
		const ms = 1_000_000
		now.Store(4_102_444_800_000 * ms)
		s := newStoreBy(t, Options{Time: now.Load}, dial)
		var model policy.Set
		one, fields := *linktest.Literal(t, "1/1s"), []string{versionField, "5", sinceField, "5"}
		for i := range policy.MaxPolicies - 2 { // so there is room for two of those that are drawn
			name := fmt.Sprint("p", i)
			if _, err := model.SetPolicy(name, []cell.Limit{one}, policy.Options{}); err != nil {
				t.Fatal(err)
			}
			if fields = append(fields, name, "1/1s 5 @"+name+"/gcra/1s"); len(fields) > 1000 || i == policy.MaxPolicies-3 {
				s.do(t, append([]string{"HSET", policiesKey}, fields...)...)
				fields = nil
			}
		}
		s.policies.version, s.policies.since, s.policies.answers, s.rules.answers = "5", "5", true, true // as if it had read those
		if simulated {
			s.Time = nil // the scripts ask for it
		}
		c := &changed{T: t, model: &model, s: s, epochs: map[uint32]uint64{}, ids: map[uint32]uint32{}, last: map[string]uint64{}}
		rapid.Check(t, func(rt *rapid.T) {
			for _, name := range []string{"a", "b", "c"} {
				model.DeletePolicy(name)
				_, _ = linktest.Told(t, func(done func(bool, error)) { s.DeletePolicy(name, done) })
			}
			for _, r := range model.Rules(0) {
				model.DeleteRule(r, now.Load())
				_, _ = linktest.Told(t, func(done func(bool, error)) { s.DeleteRule(r, now.Load(), done) })
			}
			for range rapid.IntRange(1, 12).Draw(rt, "changes") {
				now.Add(rapid.SampledFrom([]int64{0, 0, 1, 2, 1000}).Draw(rt, "pass") * ms)
				model.EndPolicies(now.Load())
				s.EndPolicies(now.Load())
				if rapid.IntRange(0, 3).Draw(rt, "of a rule") == 0 {
					c.changeRule(rt, now.Load())
				} else {
					c.changePolicy(rt, now.Load())
				}
			}
		})
	})
}

// changed are both, and what each limit of the model was on the engine.
type changed struct {
	*testing.T
	model  *policy.Set
	s      *Store
	epochs map[uint32]uint64 // by the model's ID
	ids    map[uint32]uint32 // of the process, by the model's
	last   map[string]uint64 // the latest epoch of a limit, by its name
}

func (c *changed) changePolicy(t *rapid.T, nowNS int64) {
	name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "policy")
	var did, want bool
	var err, wantErr error
	if rapid.IntRange(0, 4).Draw(t, "delete") == 0 {
		want = c.model.DeletePolicy(name)
		did, err = linktest.Told(c.T, func(done func(bool, error)) { c.s.DeletePolicy(name, done) })
	} else {
		var limits []cell.Limit
		for range rapid.IntRange(0, 3).Draw(t, "limits") {
			l, _ := cell.ParseLimit(rapid.SampledFrom([]string{
				"5/1s", "7/1s,burst=2", "100/1m", "3/1h,algo=conc", "9/1h,algo=log", "10/day,tz=+08:00", "9/1h,algo=window",
				"9/1h,block=1m",
			}).Draw(t, "limit"))
			limits = append(limits, l)
		}
		o := policy.Options{Reset: rapid.IntRange(0, 3).Draw(t, "RESET") == 0}
		switch rapid.IntRange(0, 5).Draw(t, "condition") {
		case 0:
			o.IfAbsent = true
		case 1:
			o.IfThere = true
		}
		switch ms := rapid.SampledFrom([]int64{-1, 0, 0, 1, 1000, 1 << 40}).Draw(t, "lasts"); {
		case ms < 0:
			o.Lasting, o.Reset = true, false // as a file sets it
		case ms > 0:
			o.UntilNS, o.NowNS = nowNS+ms*1e6, nowNS
		}
		want, wantErr = c.model.SetPolicy(name, limits, o)
		did, err = linktest.Told(c.T, func(done func(bool, error)) { c.s.SetPolicy(name, limits, o, done) })
	}
	if did != want || fmt.Sprint(err) != fmt.Sprint(wantErr) {
		t.Fatalf("%v, %v, want %v, %v", did, err, want, wantErr)
	}
	c.same(t, name)
}

// same compares a policy in both.
func (c *changed) same(t *rapid.T, name string) {
	is, want := c.s.Policies.PolicyNamed(name), c.model.PolicyNamed(name)
	if (is == nil) != (want == nil) || is != nil && !is.Same(want) {
		t.Fatalf("%s is %v, want %v", name, is, want)
	}
	if is == nil {
		return
	}
	all := is.All()
	for i, l := range want.All() {
		epoch, id, of := c.s.EpochOf(all[i]), all[i].ID, string(l.AppendName(nil))
		switch was, known := c.epochs[l.ID]; {
		case known && (epoch != was || id != c.ids[l.ID]):
			t.Fatalf("%s has epoch %d and ID %d, had %d and %d, and its use is kept", of, epoch, id, was, c.ids[l.ID])
		case !known && epoch <= c.last[of]:
			t.Fatalf("%s has epoch %d after %d, and its use is forgotten", of, epoch, c.last[of])
		}
		c.epochs[l.ID], c.ids[l.ID], c.last[of] = epoch, id, epoch
	}
}

func (c *changed) changeRule(t *rapid.T, nowNS int64) {
	r := policy.Rule{Pattern: rapid.SampledFrom([]string{"r ", "r*"}).Draw(t, "pattern"), Deny: rapid.Bool().Draw(t, "deny")}
	if r.Pattern == "r " && rapid.Bool().Draw(t, "net") {
		r.Net = netip.MustParsePrefix("::ffff:10.1.0.0/104")
	}
	var did, want bool
	var err error
	if rapid.IntRange(0, 3).Draw(t, "delete") == 0 {
		want = c.model.DeleteRule(r, nowNS)
		did, err = linktest.Told(c.T, func(done func(bool, error)) { c.s.DeleteRule(r, nowNS, done) })
	} else {
		if ms := rapid.SampledFrom([]int64{0, 1, 2, 1000, 1 << 40}).Draw(t, "lasts"); ms > 0 {
			r.UntilNS = nowNS + ms*1e6
		}
		want, _ = c.model.PutRule(r, nowNS)
		did, err = linktest.Told(c.T, func(done func(bool, error)) { c.s.PutRule(r, nowNS, done) })
	}
	if did != want || err != nil {
		t.Fatalf("%+v: %v, %v, want %v", r, did, err, want)
	}
	if is, want := c.s.Policies.Rules(nowNS), c.model.Rules(nowNS); !slices.Equal(is, want) {
		t.Fatalf("the rules are %+v, want %+v", is, want)
	}
}
