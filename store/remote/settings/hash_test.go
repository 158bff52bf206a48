package settings

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"celld/cell"
	"celld/internal/celldtest"
	"celld/store/policy"
	"celld/store/remote/link"
	"celld/store/remote/link/linktest"
)

// isBusy reports whether something is being done with a hash.
func (h *hash) isBusy() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.busy
}

// Requests on a hash go one after the other.
func TestTicketsAtAHash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told atomic.Value
		told.Store("")
		tell := func(name string) { told.Store(told.Load().(string) + name) }
		h := &hash{}
		for _, name := range []string{"a", "b", "c"} {
			h.enqueue(func() {
				time.Sleep(time.Second)
				tell(name)
			})
		}
		celldtest.Pass(500 * time.Millisecond)
		for _, want := range []string{"", "a", "ab", "abc"} {
			if synctest.Wait(); told.Load() != want || h.isBusy() != (want != "abc") {
				t.Errorf("%q are done, want %q; busy %v", told.Load(), want, h.isBusy())
			}
			celldtest.Pass(time.Second)
		}
		h.enqueue(func() { tell("d") })
		if synctest.Wait(); told.Load() != "abcd" || h.isBusy() {
			t.Errorf("%q are done, busy %v", told.Load(), h.isBusy())
		}
	})
}

// readOf reads a hash, and returns what was asked.
func readOf(t *testing.T, e *celldtest.Ailing, h *hash) []string {
	t.Helper()
	asked := e.Count()
	<-h.read()
	if synctest.Wait(); h.isBusy() {
		t.Error("it is busy")
	}
	return e.Commands()[asked:]
}

// A hash is asked for by its versions. An answer without fields, an error, or an engine that is away leaves what is known.
func TestReadingARegistry(t *testing.T) {
	inFakeTime(t, Options{Prefix: "p:"}, func(t *testing.T, s *Store, e *celldtest.Ailing) {
		r := &s.policies
		for i, c := range []struct {
			reply          string
			known          bool
			version, since string
			has            string
		}{
			{"-ERR odd\r\n", false, "", "", ""},
			{celldtest.BulkOf("5"), false, "", "", ""},
			{celldtest.ArrayOf(celldtest.BulkOf(versionField)), false, "", "", ""},
			{celldtest.ArrayOf(), true, "", "", ""},
			{celldtest.ArrayOf(celldtest.BulkOf(versionField), celldtest.BulkOf("5"), celldtest.BulkOf(sinceField), celldtest.BulkOf("4"), celldtest.BulkOf("a"), celldtest.BulkOf("1/1s 5 @p/gcra/1s")), true, "5", "4", "a=1/1s\n"},
			{"-ERR odd\r\n", true, "5", "4", "a=1/1s\n"},
			{celldtest.BulkOf("5"), true, "5", "4", "a=1/1s\n"},
			{celldtest.ArrayOf(celldtest.BulkOf(versionField), celldtest.BulkOf("6"), celldtest.BulkOf(sinceField), celldtest.BulkOf("4"), celldtest.BulkOf("b"), celldtest.BulkOf("2/1s 6 @p/gcra/1s")), true, "6", "4", "b=2/1s\n"},
		} {
			was := r.version + " " + r.since
			e.Answers(c.reply)
			asked := readOf(t, e, r)
			if len(asked) != 1 || !strings.HasSuffix(asked[0], " 1 p:celld:policies "+was+" ") ||
				!strings.Contains(asked[0], readSettings.Digest) {
				t.Errorf("%d: asked %q", i, asked)
			}
			if r.loaded() != c.known || r.version != c.version || r.since != c.since || textOf(s.Policies) != c.has {
				t.Errorf("%d: known %v, %q since %q, %q", i, r.loaded(), r.version, r.since, textOf(s.Policies))
			}
		}
		s.Link.Break("", linktest.Down)
		if asked := readOf(t, e, r); len(asked) > 0 {
			t.Errorf("asked %q of an engine that is away", asked)
		}
	})
}

// What the engine has takes the place of what this process has where a version is another. Then those who wait are tried again. The
// policies of the file are set on an engine that is met for the first time, or has lost all, and stay here meanwhile.
func TestWhatARegistryReplaces(t *testing.T) {
	rule := policy.Rule{Pattern: "r"}
	for _, c := range []struct {
		name                 string
		known                bool
		fields               []string // of the engine
		has                  string   // this process, then; it had policies of its own, of the file and of the engine
		pokes, sets, removes bool
	}{
		{"the first time", false, []string{versionField, "5", sinceField, "4", "engine", "3/1s 4 @p/gcra/1s"}, "engine=3/1s\nfile=2/1s\n", true, true, true},
		{"an engine without any, the first time", false, nil, "file=2/1s\n", true, true, true},
		{"nothing new", true, []string{versionField, "5", sinceField, "4", "engine", "9/1s 4 @p/gcra/1s"}, "engine=1/1s\nfile=2/1s\nown=1/1s\n", false, false, false},
		{"another version", true, []string{versionField, "6", sinceField, "4", "engine", "3/1s 6 @p/gcra/1s"}, "engine=3/1s\n", true, false, true},
		{"another first version", true, []string{versionField, "5", sinceField, "5", "engine", "3/1s 5 @p/gcra/1s"}, "engine=3/1s\nfile=2/1s\n", true, true, true},
		{"all is lost", true, nil, "file=2/1s\n", true, true, true},
	} {
		for _, kind := range []policy.Kind{policy.PolicySetting, policy.RuleSetting} {
			inFakeTime(t, Options{}, func(t *testing.T, s *Store, e *celldtest.Ailing) {
				if _, err := s.KeepPolicies([]*policy.Policy{policy.New("file", *linktest.Literal(t, "2/1s"))}, nil); err != nil {
					t.Fatal(err)
				}
				for name, limit := range map[string]string{"own": "1/1s", "file": "2/1s", "engine": "1/1s"} {
					if _, err := s.Policies.SetPolicy(name, []cell.Limit{*linktest.Literal(t, limit)}, policy.Options{}); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := s.Policies.PutRule(rule, 0); err != nil {
					t.Fatal(err)
				}
				r, fields := &s.policies, map[string]string{}
				for i := 0; i < len(c.fields); i += 2 {
					fields[c.fields[i]] = c.fields[i+1]
				}
				if kind == policy.RuleSetting {
					r = &s.rules
					delete(fields, "engine")
				}
				r.answers = c.known
				if c.known {
					r.version, r.since = "5", "4"
				}
				version, since := fields[versionField], fields[sinceField]
				e.Answers("-ERR odd\r\n")
				r.replace(fields)
				if n := s.pokes.Load(); (n == 1) != c.pokes || s.told.Load() > 0 {
					t.Errorf("%s: something has changed: %d times, here %d", c.name, n, s.told.Load())
				}
				if !r.answers || r.version != version || r.since != since {
					t.Errorf("%s: %q since %q", c.name, r.version, r.since)
				}
				synctest.Wait()
				if kind == policy.RuleSetting {
					if s.Policies.HasRules() == c.removes || len(s.Policies.Settings(policy.PolicySetting)) != 3 || e.Count() > 0 {
						t.Errorf("%s: a rule is there: %v, asked %q", c.name, s.Policies.HasRules(), e.Commands())
					}
					return
				}
				got := slices.DeleteFunc(strings.SplitAfter(textOf(s.Policies), "\n"),
					func(line string) bool { return strings.Contains(line, "ALLOW") })
				if text := strings.Join(got, ""); !strings.HasPrefix(text, c.has) || !s.Policies.HasRules() {
					t.Errorf("%s: it has\n%swant\n%s", c.name, text, c.has)
				}
				if (e.Count() == 1 && strings.HasSuffix(e.Commands()[0], " 2/1s @file/gcra/1s ")) != c.sets {
					t.Errorf("%s: asked %q", c.name, e.Commands())
				}
			})
		}
	}
}

// A change's answer says what it did, and between which versions. All is read where others have changed something before it, and others
// are told where something has changed.
func TestAnswersOfAChange(t *testing.T) {
	reply := func(did int64, was, version string, more ...string) string {
		parts := []string{celldtest.IntOf(did), celldtest.BulkOf(was), celldtest.BulkOf(version)}
		for _, text := range more {
			parts = append(parts, celldtest.BulkOf(text))
		}
		return celldtest.ArrayOf(parts...)
	}
	const before = "p=1/1s\n"
	for _, c := range []struct {
		name     string
		reply    string
		deletes  bool
		unknown  bool // the hash has not been read
		did      bool
		err      error // link.ErrAnswer: any
		has      string
		version  string
		since    string
		tells    bool
		readsAll bool
	}{
		{"set", reply(1, "5", "6", "2/1s 6 @p/gcra/1s"), false, false, true, nil, "p=2/1s\n", "6", "4", true, false},
		{"set to the same", reply(1, "5", "5", "1/1s 5 @p/gcra/1s"), false, false, true, nil, before, "5", "4", false, false},
		{"not set", reply(0, "5", "5"), false, false, false, nil, before, "5", "4", false, false},
		{"too many", reply(-1, "5", "5"), false, false, false, policy.ErrTooMany, before, "5", "4", false, false},
		{"deleted", reply(1, "5", "6"), true, false, true, nil, "", "6", "4", true, false},
		{"none to delete", reply(0, "5", "5"), true, false, false, nil, before, "5", "4", false, false},
		{"one that was over is deleted", reply(0, "5", "6"), true, false, false, nil, "", "6", "4", true, false},
		{"others were before it", reply(1, "6", "7", "2/1s 7 @p/gcra/1s"), false, false, true, nil, "p=2/1s\n", "5", "4", true, true},
		{"the engine had lost all", reply(1, "", "7", "2/1s 7 @p/gcra/1s"), false, false, true, nil, "p=2/1s\n", "5", "4", true, true},
		{"a hash that was not read", reply(1, "", "7", "2/1s 7 @p/gcra/1s"), false, true, true, nil, "p=2/1s\n", "", "", true, true},
		{"what cannot be used", reply(1, "5", "6", "odd"), false, false, true, link.ErrAnswer, before, "6", "4", true, false},
		{"an error", "-ERR odd\r\n", false, false, false, link.ErrAnswer, before, "5", "4", false, false},
		{"no array", celldtest.IntOf(1), false, false, false, link.ErrAnswer, before, "5", "4", false, false},
	} {
		inFakeTime(t, Options{}, func(t *testing.T, s *Store, e *celldtest.Ailing) {
			r := &s.policies
			if r.answers = !c.unknown; r.answers {
				r.version, r.since = "5", "4"
			}
			if err := s.put(policy.PolicySetting, "p", "1/1s 5 @p/gcra/1s", ""); err != nil {
				t.Fatal(err)
			}
			e.AnswersBy(func(command string) string {
				if strings.Contains(command, readSettings.Digest) {
					return "-ERR odd\r\n"
				}
				return c.reply
			})
			did, err := linktest.Told(t, func(done func(bool, error)) {
				if c.deletes {
					s.DeletePolicy("p", done)
				} else {
					s.SetPolicy("p", []cell.Limit{*linktest.Literal(t, "2/1s")}, policy.Options{}, done)
				}
			})
			synctest.Wait()
			if did != c.did || (err != nil) != (c.err != nil) || c.err == policy.ErrTooMany && err != c.err {
				t.Errorf("%s: %v, %v", c.name, did, err)
			}
			if textOf(s.Policies) != c.has || r.version != c.version || r.since != c.since || r.busy {
				t.Errorf("%s: %q, version %q since %q, busy %v", c.name, textOf(s.Policies), r.version, r.since, r.busy)
			}
			reads := slices.ContainsFunc(e.Commands(), func(command string) bool { return strings.Contains(command, readSettings.Digest) })
			if told, pokes := s.told.Load() == 1, s.pokes.Load() == 1; told != c.tells || reads != c.readsAll ||
				pokes != strings.HasPrefix(c.reply, "*") {
				t.Errorf("%s: tells others %v, reads all %v, something has changed %v", c.name, told, reads, pokes)
			}
		})
	}
}

// The first change of a hash that was empty is its first version, too.
func TestTheFirstVersionOfARegistry(t *testing.T) {
	inFakeTime(t, Options{}, func(t *testing.T, s *Store, e *celldtest.Ailing) {
		r := &s.policies
		r.answers = true
		e.Answers(celldtest.ArrayOf(celldtest.IntOf(1), celldtest.BulkOf(""), celldtest.BulkOf("7"), celldtest.BulkOf("2/1s 7 @p/gcra/1s")))
		if !setPolicyOf(t, s, "p", "2/1s", policy.Options{}) || r.version != "7" || r.since != "7" {
			t.Errorf("version %q since %q", r.version, r.since)
		}
	})
}

// Changes wait for those before them, but not for an engine that is known to be away.
func TestChangesGoByTickets(t *testing.T) {
	inFakeTime(t, Options{}, func(t *testing.T, s *Store, e *celldtest.Ailing) {
		s.policies.answers = true
		e.Takes(time.Second)
		e.Answers(celldtest.ArrayOf(celldtest.IntOf(0), celldtest.BulkOf(""), celldtest.BulkOf("")))
		began, ended := time.Now(), []time.Duration{}
		for range 3 {
			s.DeletePolicy("p", func(bool, error) { ended = append(ended, time.Since(began)) })
		}
		celldtest.Pass(4 * time.Second)
		if !slices.Equal(ended, []time.Duration{1e9, 2e9, 3e9}) {
			t.Errorf("answered after %v", ended)
		}
		s.Link.Break("", linktest.Down)
		asked := e.Count()
		for range 2 { // then the second is first
			if did, err := linktest.Told(t, func(done func(bool, error)) { s.DeletePolicy("p", done) }); did ||
				!link.Is(err, linktest.Down.Cause) || e.Count() != asked {
				t.Errorf("%v, %v, asked %q", did, err, e.Commands()[asked:])
			}
		}
	})
}
