package settings

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"celld/cell"
	"celld/internal/celldtest"
	"celld/store/policy"
	"celld/store/remote/link/linktest"
)

// openSettings returns a Store on a redis-server that has read its settings. Its process has the given file.
func openSettings(t *testing.T, addr string, file ...*policy.Policy) *Store {
	t.Helper()
	return openSettingsAt(t, addr, nil, file...)
}

func openSettingsAt(t *testing.T, addr string, time func() int64, file ...*policy.Policy) *Store {
	t.Helper()
	s := newTestStore(t, addr, Options{Time: time})
	if _, err := s.KeepPolicies(file, nil); err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func setPolicyOf(t *testing.T, s *Store, name, text string, o policy.Options) bool {
	t.Helper()
	limits, err := policy.ParseLimits(text)
	if err != nil {
		t.Fatal(err)
	}
	did, err := linktest.Told(t, func(done func(bool, error)) { s.SetPolicy(name, limits, o, done) })
	if err != nil {
		t.Fatal(err)
	}
	return did
}

// A celld serves once the engine has the policies of its file, however many: what is taken before that is void.
func TestAwaitPolicies(t *testing.T) {
	s := openSettings(t, linktest.StartRedis(t))
	var file []*policy.Policy
	for i := range 500 {
		file = append(file, policy.New(fmt.Sprint("p", i), *linktest.Literal(t, "5/1h")))
	}
	if _, err := s.KeepPolicies(file, nil); err != nil {
		t.Fatal(err)
	}
	s.AwaitPolicies()
	for _, p := range file {
		if s.EpochOf(s.Policies.PolicyNamed(p.Name).Limits[0]) == 0 {
			t.Fatal("the engine does not have", p.Name)
		}
	}
}

// textOf is all policies and rules of a process.
func textOf(set *policy.Set) string {
	var b strings.Builder
	for _, kind := range []policy.Kind{policy.PolicySetting, policy.RuleSetting} {
		for _, name := range set.Settings(kind) {
			text, _ := set.SettingText(policy.Setting{Kind: kind, Name: name}, 0)
			fmt.Fprintf(&b, "%s=%s\n", name, text)
		}
	}
	return b.String()
}

// Settings change between what a server is asked to begin and its end only: those of this process, those of another, and several at once.
func TestChangesAlone(t *testing.T) {
	t.Parallel()
	addr := linktest.StartRedis(t)
	first, second := openSettings(t, addr), openSettings(t, addr)
	var alone sync.Mutex
	last, began := map[*Store]string{}, map[*Store]int{}
	for _, s := range []*Store{first, second} {
		s.ChangeAlone(func() (end func()) {
			alone.Lock()
			if text := textOf(s.Policies); text != last[s] {
				t.Errorf("settings have changed from %q to %q", last[s], text)
			}
			began[s]++
			return func() {
				last[s] = textOf(s.Policies)
				alone.Unlock()
			}
		})
	}
	for i := range 20 {
		setPolicyOf(t, first, fmt.Sprint("p", i), fmt.Sprint(1+i, "/1s"), policy.Options{})
		if _, err := linktest.Told(t, func(done func(bool, error)) {
			first.PutRule(policy.Rule{Deny: true, Pattern: fmt.Sprint("r", i)}, 0, done)
		}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := linktest.Told(t, func(done func(bool, error)) { first.DeletePolicy("p3", done) }); err != nil {
		t.Fatal(err)
	}
	<-second.policies.read()
	<-second.rules.read()
	alone.Lock()
	defer alone.Unlock()
	for _, s := range []*Store{first, second} {
		if text := textOf(s.Policies); text != last[s] || strings.Count(text, "\n") != 39 || began[s] == 0 {
			t.Errorf("settings began to change %d times, and are\n%s, last\n%s", began[s], text, last[s])
		}
	}
}

// Changes by any of three processes are answered as one Set in memory answers them, and reach all three.
func TestSettingsAreThoseOfOneSet(t *testing.T) {
	t.Parallel()
	addr, rnd := linktest.StartRedis(t), celldtest.NewRand(t)
	var all []*Store
	for range 3 {
		all = append(all, openSettings(t, addr))
	}
	var model policy.Set
	limits := []string{"5/1s", "100/1m,burst=7", "3/1h,algo=conc", "10/day,tz=+08:00"}
	nets := []netip.Prefix{{}, netip.MustParsePrefix("10.1.2.3/8"), netip.MustParsePrefix("::ffff:10.0.0.0/104")}
	for range 600 {
		s := all[rnd.IntN(3)]
		name := fmt.Sprint("p:", rnd.IntN(4))
		rule := policy.Rule{Deny: rnd.IntN(2) == 0, Pattern: fmt.Sprint("r ", rnd.IntN(2)), Net: nets[rnd.IntN(len(nets))]}
		var got, want bool
		var err error
		kind := rnd.IntN(4)
		switch kind {
		case 0:
			o := policy.Options{IfAbsent: rnd.IntN(4) == 0, IfThere: rnd.IntN(4) == 0, Reset: rnd.IntN(4) == 0}
			if o.IfAbsent {
				o.IfThere = false
			}
			l := *linktest.Literal(t, limits[rnd.IntN(len(limits))])
			want, _ = model.SetPolicy(name, []cell.Limit{l}, o)
			got, err = linktest.Told(t, func(done func(bool, error)) { s.SetPolicy(name, []cell.Limit{l}, o, done) })
		case 1:
			want = model.DeletePolicy(name)
			got, err = linktest.Told(t, func(done func(bool, error)) { s.DeletePolicy(name, done) })
		case 2:
			want, _ = model.PutRule(rule, 0)
			got, err = linktest.Told(t, func(done func(bool, error)) { s.PutRule(rule, 0, done) })
		default:
			want = model.DeleteRule(rule, 0)
			got, err = linktest.Told(t, func(done func(bool, error)) { s.DeleteRule(rule, 0, done) })
		}
		if got != want || err != nil {
			t.Fatalf("%v, %v; want %v", got, err, want)
		}
		if have, want := s.Policies.PolicyNamed(name), model.PolicyNamed(name); kind < 2 &&
			((have == nil) != (want == nil) || have != nil && !have.Same(want)) {
			t.Fatalf("who has changed %s has %+v, want %+v", name, have, want)
		}
	}
	for i, s := range all {
		celldtest.Eventually(t, fmt.Sprintf("%d has all", i), func() bool { return textOf(s.Policies) == textOf(&model) })
	}
}

// An epoch is the same in all processes, stays when the limit changes, and grows with RESET and when the policy comes again. Then what
// has been spent is void everywhere: the policy has another ID.
func TestEpochs(t *testing.T) {
	t.Parallel()
	addr := linktest.StartRedis(t)
	a, b := openSettings(t, addr), openSettings(t, addr)
	last, lastID := uint64(0), uint32(0)
	for _, step := range []struct {
		limit   string
		options policy.Options
		deleted bool
		grows   bool
	}{
		{limit: "1/1s", grows: true},
		{limit: "2/1s"},
		{limit: "2/1s"},
		{limit: "2/1s", options: policy.Options{Reset: true}, grows: true},
		{limit: "3/1s"},
		{limit: "4/1s", deleted: true, grows: true},
	} {
		if step.deleted {
			if did, err := linktest.Told(t, func(done func(bool, error)) { a.DeletePolicy("p", done) }); !did || err != nil {
				t.Fatal(did, err)
			}
			celldtest.Eventually(t, "it has gone", func() bool { return b.Policies.PolicyNamed("p") == nil })
		}
		setPolicyOf(t, a, "p", step.limit, step.options)
		p := a.Policies.PolicyNamed("p").Limits[0]
		if epoch := a.EpochOf(p); epoch <= last && step.grows || epoch != last && !step.grows {
			t.Errorf("%+v: epoch %d after %d", step, epoch, last)
		}
		last = a.EpochOf(p)
		var q *policy.Limit
		celldtest.Eventually(t, "the other has it", func() bool {
			of := b.Policies.PolicyNamed("p")
			if of == nil {
				return false
			}
			q = of.Limits[0]
			return q != nil && q.Limit == p.Limit && b.EpochOf(q) == last
		})
		if (q.ID != lastID) != step.grows {
			t.Errorf("%+v: ID %d after %d", step, q.ID, lastID)
		}
		lastID = q.ID
	}
	if len(a.epochs) != 1 || len(b.epochs) != 1 {
		t.Errorf("%d and %d epochs of one policy", len(a.epochs), len(b.epochs))
	}
}

// A rule ends by the engine's clock, wherever it was made.
func TestRulesEndByTheEnginesClock(t *testing.T) {
	t.Parallel()
	addr := linktest.StartRedis(t)
	a, b := openSettings(t, addr), openSettings(t, addr)
	rule := policy.Rule{Deny: true, Pattern: "bad:*", UntilNS: 1}
	put := func(lasts time.Duration) bool {
		t.Helper()
		did, err := linktest.Told(t, func(done func(bool, error)) { a.PutRule(lasting(rule, lasts), 0, done) })
		if err != nil {
			t.Fatal(err)
		}
		return did
	}
	engineMS := func() int64 {
		at, err := a.Link.Client().Do(context.Background(), a.Link.Client().B().Time().Build()).AsIntSlice()
		if err != nil {
			t.Fatal(err)
		}
		return at[0]*1000 + at[1]/1000
	}
	before := engineMS()
	if !put(time.Hour) || put(time.Hour) {
		t.Error("a rule is new once")
	}
	after := engineMS()
	celldtest.Eventually(t, "the other has it", func() bool { return len(b.Policies.Rules(0)) == 1 })
	got := a.Policies.Rules(0)
	if until := got[0].UntilNS / 1_000_000; until < before+3_600_000 || until > after+3_600_000 || got[0].UntilNS%1_000_000 != 0 {
		t.Errorf("until %d, set between %d and %d", until, before, after)
	}
	celldtest.Eventually(t, "both have the same end", func() bool { return slices.Equal(a.Policies.Rules(0), b.Policies.Rules(0)) })
	put(time.Nanosecond)
	ends := engineMS() + 1
	celldtest.Eventually(t, "it ends", func() bool { return engineMS() > ends })
	if did, err := linktest.Told(t, func(done func(bool, error)) { a.DeleteRule(rule, 0, done) }); did || err != nil {
		t.Errorf("one that is over: %v, %v", did, err)
	}
	if put(1<<63 - 1); a.Policies.Rules(0)[0].UntilNS < 1<<62 {
		t.Errorf("one that lasts long: %+v", a.Policies.Rules(0))
	}
	if put(0); a.Policies.Rules(0)[0].UntilNS != 0 {
		t.Errorf("one for ever: %+v", a.Policies.Rules(0))
	}
	put(time.Nanosecond)
	celldtest.Eventually(t, "one that is over is new again", func() bool { return put(time.Nanosecond) })
}

// A temporary policy ends by the engine's clock in what is read of it, and each process ends it by its own. Where the fields of a policy
// are read by an earlier build, that finds the lasting one, and no other.
func TestTemporaryPoliciesOfTheEngine(t *testing.T) {
	t.Parallel()
	addr := linktest.StartRedis(t)
	var now atomic.Int64
	now.Store(1e12)
	a, b := openSettingsAt(t, addr, now.Load), openSettingsAt(t, addr, now.Load)
	setPolicyOf(t, a, "p", "7/1s 8/1m", policy.Options{})
	hour := policy.Options{UntilNS: 3600e9}
	setPolicyOf(t, a, "p", "9/1s", hour)
	setPolicyOf(t, a, "alone", "1/1s", hour)
	celldtest.Eventually(t, "the other has them", func() bool {
		return textOf(b.Policies) == "alone=|4600000|1/1s\np=7/1s;8/1m|4600000|9/1s\n"
	})
	p := b.Policies.PolicyNamed("p")
	for i, l := range a.Policies.PolicyNamed("p").All() {
		if epoch := a.EpochOf(l); epoch == 0 || epoch != b.EpochOf(p.All()[i]) {
			t.Errorf("%s has epoch %d here, %d there", l.Limit, epoch, b.EpochOf(p.All()[i]))
		}
	}
	if p.Limits[0].ID != p.Then.Limits[0].ID || p.Then.Limits[1].ID == p.Limits[0].ID {
		t.Errorf("IDs %d and %d, %d", p.Limits[0].ID, p.Then.Limits[0].ID, p.Then.Limits[1].ID)
	}
	fields, err := a.do(t, "HGETALL", "celld:policies").AsStrMap()
	if err != nil {
		t.Fatal(err)
	}
	for field, value := range fields {
		if field[0] == ' ' {
			delete(fields, field)
			if _, _, err := parsePolicy(field, value); err == nil && strings.HasPrefix(field, temporaryFields) {
				t.Errorf("an earlier build takes %s for a policy", field)
			}
		}
	}
	if value := fmt.Sprint(fields); !regexp.MustCompile(`^map\[p:7/1s \d+ @p/gcra/1s 8/1m \d+ @p/gcra/1m]$`).MatchString(value) {
		t.Errorf("an earlier build finds %s", value)
	}
	epochs := b.epochsOf(p.Then)
	b.EndPolicies(4600e9 - 1)
	if textOf(b.Policies) != textOf(a.Policies) {
		t.Errorf("it ends early: %s", textOf(b.Policies))
	}
	if b.EndPolicies(4600e9); textOf(b.Policies) != "p=7/1s;8/1m\n" || len(b.epochs) != 2 ||
		!slices.Equal(b.epochsOf(b.Policies.PolicyNamed("p")), epochs) {
		t.Errorf("after its end: %s, epochs %d were %d", textOf(b.Policies), b.epochs, epochs)
	}
	setPolicyOf(t, a, "other", "1/1s", policy.Options{})
	celldtest.Eventually(t, "it has read all again", func() bool { return b.Policies.PolicyNamed("other") != nil })
	if textOf(b.Policies) != "other=1/1s\np=7/1s;8/1m\n" {
		t.Errorf("what has ended is in force again: %s", textOf(b.Policies))
	}
	if did, err := linktest.Told(t, func(done func(bool, error)) { a.DeletePolicy("other", done) }); !did || err != nil {
		t.Error(did, err)
	}
	now.Store(4600e9)
	if c := openSettingsAt(t, addr, now.Load); textOf(c.Policies) != "p=7/1s;8/1m\n" {
		t.Errorf("one that starts after its end has %s", textOf(c.Policies))
	}
	if did, err := linktest.Told(t, func(done func(bool, error)) { a.DeletePolicy("alone", done) }); did || err != nil {
		t.Errorf("one that is over is deleted: %v, %v", did, err)
	}
	setPolicyOf(t, a, "p", "9/1s", policy.Options{UntilNS: 3600e9, Reset: true})
	if epochs = a.epochsOf(a.Policies.PolicyNamed("p")); epochs[0] != epochs[1] || epochs[1] != epochs[2] {
		t.Errorf("a reset leaves epochs %d", epochs)
	}
}

// The engine refuses what is too many for a process. Rules that are over make room.
func TestTooManySettings(t *testing.T) {
	addr := linktest.StartRedis(t)
	s := openSettings(t, addr)
	client := s.Link.Client()
	fill := func(key, value string, n int, name func(int) string) {
		t.Helper()
		const step = 1024
		for i := 0; i < n; i += step {
			c := client.B().Hset().Key(key).FieldValue()
			for j := i; j < min(i+step, n); j++ {
				c = c.FieldValue(name(j), value)
			}
			if err := client.Do(context.Background(), c.Build()).Error(); err != nil {
				t.Fatal(err)
			}
		}
	}
	setPolicyOf(t, s, "first", "1/1s", policy.Options{})
	fill("celld:policies", "1/1s 5 @p/gcra/1s", policy.MaxPolicies-1, func(i int) string { return fmt.Sprint("p", i) })
	if did, err := linktest.Told(t, func(done func(bool, error)) {
		s.SetPolicy("more", []cell.Limit{*linktest.Literal(t, "1/1s")}, policy.Options{}, done)
	}); did || !errors.Is(err, policy.ErrTooMany) {
		t.Errorf("%v, %v", did, err)
	}
	setPolicyOf(t, s, "first", "2/1s", policy.Options{})
	did, err := linktest.Told(t, func(done func(bool, error)) { s.PutRule(policy.Rule{Pattern: "first"}, 0, done) })
	if !did || err != nil {
		t.Fatalf("%v, %v", did, err)
	}
	more := func(done func(bool, error)) { s.PutRule(policy.Rule{Pattern: "more"}, 0, done) }
	fill("celld:rules", "0", policy.MaxRules-1, func(i int) string { return fmt.Sprint("ALLOW - ", i) })
	if did, err := linktest.Told(t, more); did || !errors.Is(err, policy.ErrTooMany) {
		t.Errorf("%v, %v", did, err)
	}
	fill("celld:rules", "1", 10, func(i int) string { return fmt.Sprint("ALLOW - ", i) })
	if did, err := linktest.Told(t, more); !did || err != nil {
		t.Errorf("%v, %v", did, err)
	}
}

// Processes with the same file set it once, and one that meets an engine that has lost all sets it again, also where another has
// changed something since, and where the version after the loss is the one before it. What the engine has from elsewhere stays.
func TestPoliciesOfAFile(t *testing.T) {
	t.Parallel()
	addr := linktest.StartRedis(t)
	var now atomic.Int64
	now.Store(1e9)
	other := openSettingsAt(t, addr, now.Load)
	setPolicyOf(t, other, "other", "1/1s", policy.Options{})
	file := []*policy.Policy{policy.New("a", *linktest.Literal(t, "7/1s")), policy.New("b", *linktest.Literal(t, "8/1m,algo=log"))}
	first := openSettingsAt(t, addr, now.Load, file...)
	const all = "a=7/1s\nb=8/1m,algo=log\n"
	celldtest.Eventually(t, "the file is on the engine", func() bool {
		return textOf(first.Policies) == all+"other=1/1s\n" && first.EpochOf(first.Policies.PolicyNamed("b").Limits[0]) > 0
	})
	epoch := first.EpochOf(first.Policies.PolicyNamed("a").Limits[0])
	second := openSettingsAt(t, addr, now.Load, file...)
	celldtest.Eventually(t, "another has it", func() bool {
		return textOf(second.Policies) == all+"other=1/1s\n" && second.EpochOf(second.Policies.PolicyNamed("a").Limits[0]) == epoch
	})
	second.AwaitPolicies() // otherwise what it still sets would have the first version again
	now.Add(2e6)           // the third version was this, in ms
	client := first.Link.Client()
	if err := client.Do(context.Background(), client.B().Flushall().Build()).Error(); err != nil {
		t.Fatal(err)
	}
	setPolicyOf(t, other, "soon", "1/1s", policy.Options{})
	for _, s := range []*Store{first, second} {
		celldtest.Eventually(t, "the file is there again", func() bool {
			return textOf(s.Policies) == all+"soon=1/1s\n" && s.EpochOf(s.Policies.PolicyNamed("a").Limits[0]) > epoch
		})
	}
}

// The rules of a file hold in its process at once, and then on the engine, also if that has lost all. A rule that is there is not set
// again: all processes would read all.
func TestRulesOfAFile(t *testing.T) {
	t.Parallel()
	addr := linktest.StartRedis(t)
	other := openSettings(t, addr)
	for _, r := range []policy.Rule{{Deny: true, Pattern: "a"}, {Deny: true, Pattern: "b", UntilNS: 1e12}} {
		if _, err := linktest.Told(t, func(done func(bool, error)) { other.PutRule(r, 0, done) }); err != nil {
			t.Fatal(err)
		}
	}
	file := []policy.Rule{{Deny: true, Pattern: "a"}, {Deny: true, Pattern: "b"}, {Pattern: "c", Net: netip.MustParsePrefix("10.1.0.0/8")}}
	const all = "ALLOW 10.0.0.0/8 c=0\nDENY - a=0\nDENY - b=0\n"
	s := newTestStore(t, addr, Options{})
	if _, err := s.KeepRules(file, nil); err != nil || textOf(s.Policies) != all {
		t.Errorf("%v: it has\n%s", err, textOf(s.Policies))
	}
	s.Start()
	t.Cleanup(s.Close)
	celldtest.Eventually(t, "another has them", func() bool { return textOf(other.Policies) == all })
	version := func() string {
		text, _ := other.do(t, "HGET", "celld:rules", versionField).ToString()
		return text
	}
	before := version()
	if _, err := s.KeepRules(file, nil); err != nil {
		t.Error(err)
	}
	<-s.rules.read()
	if version() != before || textOf(s.Policies) != all {
		t.Errorf("version %s, was %s; it has\n%s", version(), before, textOf(s.Policies))
	}
	other.do(t, "FLUSHALL")
	celldtest.Eventually(t, "they are there again", func() bool {
		return version() > before && textOf(s.Policies) == all && textOf(other.Policies) == all
	})
	for n := range policy.MaxRules {
		file = append(file, policy.Rule{Pattern: fmt.Sprint("r", n)})
	}
	if refused, err := newStore(Options{}).KeepRules(file, nil); refused != policy.MaxRules || !errors.Is(err, policy.ErrTooMany) {
		t.Errorf("%d, %v", refused, err)
	}
}

// What the engine has refused of the file is set as soon as it accepts it.
func TestPoliciesOfAFileThatAreRefused(t *testing.T) {
	t.Parallel()
	addr := linktest.StartRedis(t)
	plain := newTestStore(t, addr, Options{})
	plain.do(t, "CONFIG", "SET", "min-replicas-to-write", "1")
	s := openSettings(t, addr, policy.New("a", *linktest.Literal(t, "7/1s")))
	celldtest.Eventually(t, "it is refused twice", func() bool {
		stats, _ := plain.do(t, "INFO", "errorstats").ToString()
		_, after, _ := strings.Cut(stats, "errorstat_NOREPLICAS:count=")
		refused, _ := strconv.Atoi(strings.Fields(after + " 0")[0])
		return refused >= 2
	})
	if s.EpochOf(s.Policies.PolicyNamed("a").Limits[0]) > 0 {
		t.Error("it is on an engine that takes no writes")
	}
	plain.do(t, "CONFIG", "SET", "min-replicas-to-write", "0")
	celldtest.Eventually(t, "it is on the engine", func() bool { return s.EpochOf(s.Policies.PolicyNamed("a").Limits[0]) > 0 })
}

// A process whose engine does not answer knows what it knew.
func TestSettingsStayWhileTheEngineIsAway(t *testing.T) {
	addr := linktest.StartRedis(t)
	s := openSettings(t, addr, policy.New("a", *linktest.Literal(t, "7/1s")))
	celldtest.Eventually(t, "it is on the engine", func() bool { return s.EpochOf(s.Policies.PolicyNamed("a").Limits[0]) > 0 })
	s.Link.Client().Close()
	for range 3 {
		<-s.policies.read()
	}
	if _, err := linktest.Told(t, func(done func(bool, error)) { s.DeletePolicy("a", done) }); err == nil {
		t.Error("it is deleted on an engine that is away")
	}
	if textOf(s.Policies) != "a=7/1s\n" {
		t.Errorf("%q", textOf(s.Policies))
	}
}

// Two that set the same name if it is absent do not both do it.
func TestOnlyOneSetsWhatIsAbsent(t *testing.T) {
	addr := linktest.StartRedis(t)
	all := []*Store{openSettings(t, addr), openSettings(t, addr), openSettings(t, addr)}
	for n := range 50 {
		did := make(chan bool, len(all))
		for _, s := range all {
			l := *linktest.Literal(t, fmt.Sprintf("%d/1s", 1+rand.IntN(100)))
			s.SetPolicy(fmt.Sprint("p", n), []cell.Limit{l}, policy.Options{IfAbsent: true}, func(set bool, _ error) { did <- set })
		}
		set := 0
		for range all {
			if <-did {
				set++
			}
		}
		if set != 1 {
			t.Fatalf("%d have set it", set)
		}
	}
}

// A limit that somebody has made of the name of the settings does not keep others from changing them.
func TestALimitOfTheNameOfSettings(t *testing.T) {
	addr := linktest.StartRedis(t)
	s := newTestStore(t, addr, Options{})
	for _, name := range []string{policiesKey, rulesKey} {
		s.do(t, "SET", name, "1")
	}
	s = openSettings(t, addr)
	if !s.policies.loaded() || !s.rules.loaded() {
		t.Error("the settings are not known")
	}
	if !setPolicyOf(t, s, "api", "10/1m", policy.Options{}) {
		t.Error("the policy is not set")
	}
	added, err := linktest.Told(t, func(done func(bool, error)) { s.PutRule(policy.Rule{Pattern: "k"}, 0, done) })
	if !added || err != nil {
		t.Errorf("the rule is added: %v, %v", added, err)
	}
	if other := openSettings(t, addr); textOf(other.Policies) != textOf(s.Policies) || textOf(s.Policies) == "" {
		t.Errorf("%q, want %q", textOf(other.Policies), textOf(s.Policies))
	}
}

// lasting is a rule that lasts so long, by a clock at 0.
func lasting(r policy.Rule, lasts time.Duration) policy.Rule {
	r.UntilNS = int64(lasts)
	return r
}

// Each limit of a policy has its epoch, which stays while the policy has a limit that is alike, and is a new one for a limit that comes
// back.
func TestEpochsOfLimits(t *testing.T) {
	t.Parallel()
	addr := linktest.StartRedis(t)
	first := openSettings(t, addr)
	linktest.Do(t, first.Link, "HSET", policiesKey, versionField, "100", sinceField, "100", "p", "5/1h 77 @p/gcra/1h")
	s, other := openSettings(t, addr), openSettings(t, addr)
	last := map[string]uint64{"p/gcra/1h": 77}
	for i, limits := range []string{"5/1h", "6/1h,burst=1", "6/1h 9/1d", "9/1d,burst=2 6/1h", "9/1d", "6/1h 9/1d", "9/1h,algo=log 7/1d"} {
		parsed, err := policy.ParseLimits(limits)
		if err != nil {
			t.Fatal(err)
		}
		did, err := linktest.Told(t, func(done func(bool, error)) { s.SetPolicy("p", parsed, policy.Options{}, done) })
		if !did || err != nil {
			t.Fatal(did, err)
		}
		epochs := map[string]uint64{}
		for _, l := range s.Policies.PolicyNamed("p").Limits {
			name := string(l.AppendName(nil))[1:]
			epoch := s.EpochOf(l)
			if stays := last[name] != 0; stays && epoch != last[name] || epoch == 0 || !stays && epoch == 77 {
				t.Errorf("%d: %s has epoch %d, and had %d", i, name, epoch, last[name])
			}
			epochs[name] = epoch
		}
		last = epochs
		celldtest.Eventually(t, "the other has it", func() bool {
			p := other.Policies.PolicyNamed("p")
			if p == nil || !p.Same(s.Policies.PolicyNamed("p")) {
				return false
			}
			for _, l := range p.Limits {
				if other.EpochOf(l) != epochs[string(l.AppendName(nil))[1:]] {
					return false
				}
			}
			return true
		})
		if len(s.epochs) != len(parsed) {
			t.Errorf("%d: %d epochs of %d limits", i, len(s.epochs), len(parsed))
		}
	}
	for _, wrong := range []string{
		"", "5/1h", "5/1h 7", "5/1h x", "5/1h 7 @p/gcra/1h 6/1d", "x 7 @p/gcra/1h", "5/1h 7 @p/gcra/1h 6/1h 7 @p/gcra/1h",
	} {
		if err := s.put(policy.PolicySetting, "wrong", wrong, ""); err == nil || s.Policies.PolicyNamed("wrong") != nil {
			t.Errorf("%q is a policy: %v", wrong, err)
		}
	}
}
