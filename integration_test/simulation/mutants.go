package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"celld/integration_test/simulation/runner"
)

// mutant is a change that breaks celld. Seeds must see it.
type mutant struct {
	name     string
	about    string // what the worlds are about that see it: a focus, scenes; "": all may
	file     string // from the project's root
	old, new string // of its text, which has old once
}

// mutants are defects that celld has had, and others like them, by the package that they are in.
var mutants = []mutant{
	{"nobody looks at those who wait when something comes back", "leases", "store/memory/shard/line.go",
		"q.Spoil()\n\tif q.timerNS != 0 {", "q.Spoil()\n\tif false {"},
	{"nobody is refused at the end of the wait", "lines", "store/memory/leaving.go", "s.refuse(w, w.DeadlineNS)", ""},
	{"a key that was deleted is not journaled", "crashes", "store/memory/shard/journal.go",
		"if j == nil || expired && !e.Has(", "if true || expired && !e.Has("},
	{"who has waited as long as told is denied", "", "cell/gcra.go", "d.RetryAfterNS = debt - uint64(b.toleranceNS-increment)",
		"d.RetryAfterNS = (debt - uint64(b.toleranceNS-increment)) / 2"},
	{"limits go the wrong way when the clock is set", "", "store/memory/shard/wall.go",
		"by := ahead - s.Wall.Swap(ahead)", "by := s.Wall.Swap(ahead) - ahead"},
	{"a call that waits passes while a rule pauses its key", "pause", "store/memory/take.go", "!t.behind && !t.paused && t.try()",
		"!t.behind && t.try()"},
	{"a cost of a name is that of the other limits", "", "store/limiter.go", "return c.Cost\n", "return cost\n"},
	{"a true cost by name is what was taken", "budget", "store/memory/settle.go", "return b.of[at].N", "return l.Cost"},
	{"a lease owes all of its true cost", "budget", "store/memory/settle.go", "d := debt{*c, n - lease.Cost}", "d := debt{*c, n}"},
	{"a released lease gives nothing back", "budget", "store/memory/settle.go", "case b.all:\n\t\treturn 0", "case b.all:\n\t\treturn l.Cost"},
	{"what is given back is given back twice", "budget", "store/memory/give.go", "given = c.Limit.Give(&c.st, now, n)",
		"given = c.Limit.Give(&c.st, now, n)\n\t\tc.Limit.Give(&c.st, now, n)"},
	{"a repeat with an ID takes again", "budget", "store/memory/leases.go", "if t.Mode == cell.Peek || t.ruled || t.Terms == nil",
		"if true || t.Mode == cell.Peek || t.ruled || t.Terms == nil"},
	{"a lease of a limit does not end by its time", "budget", "store/memory/takes.go", "return t.Terms.LeaseNS",
		"return t.Terms.LeaseNS * 10"},
	{"a key with leases is evicted", "crowd", "store/memory/shard/leaseexpiry.go",
		"if p.HoldsLeases() && sh.EntryEndNS(p) > uint64(nowNS) {\n\t\t\treturn true",
		"if p.HoldsLeases() && sh.EntryEndNS(p) > uint64(nowNS) {\n\t\t\treturn false"},
	{"a new key does not count", "crowd", "store/memory/shard/room.go", "r.Bytes.Add(-n.Bytes)\n\tr.Keys.Add(-n.keys)", "r.Bytes.Add(-n.Bytes)\n\tr.Keys.Add(-n.keys - 1)"},
	{"more is held than maxmemory allows", "crowd", "store/memory/shard/room.go", "if old+delta > limit {",
		"if old+delta > limit+limit/8+1 {"},
	{"what Envoy adds to its hits is not counted", "envoy", "resp/envoy/service.go", "return int64(max(1, q.Hits))", "return 1"},
	{"a temporary policy and a rule end an hour later after a restart", "crashes policies", "store/policy/ends.go",
		"return int64(cell.ShiftInstant(uint64(ms*1_000_000), -aheadNS)), nil",
		"if ms > 0 {\n\t\tms += 3_600_000\n\t}\n\treturn int64(cell.ShiftInstant(uint64(ms*1_000_000), -aheadNS)), nil"},
	{"the lock of the directory goes before the last write", "crashes", "persistence/disk.go", "defer d.dir.Release()\n\tvar err",
		"d.dir.Release()\n\tvar err"},
	{"a call by JSON costs one", "http", "resp/web/api/take.go", "if c.Cost != nil {\n\t\tall", "if c.Cost != nil && false {\n\t\tall"},
	{"a call by JSON is answered before it is synced", "crashes http", "resp/door/question.go", "err = cmp.Or(err, r.commit())",
		"r.leave()"},
	{"a call by JSON that waits holds up the disk", "lines http", "resp/door/question.go",
		"r.leave() // no write begins while a round lasts, and no round while a write waits\n\t\tgone = q.await(answered)\n\t\tr.begin()",
		"gone = q.await(answered)"},
	{"a rule is not journaled", "crashes pause", "store/policy/rules.go", "s.note(Setting{RuleSetting, name}, nil)\n\trs.all", "rs.all"},
	{"a wrong configuration of Envoy's ends the right one", "envoy", "resp/envoy/port.go",
		"if err != nil {\n\t\treturn nil, err\n\t}\n\tfor _, warning",
		"if err != nil {\n\t\td.set.Store(nil)\n\t\treturn nil, err\n\t}\n\tfor _, warning"},
	{"a process that starts does not wait for the directory", "", "persistence/load/load.go",
		"if err := l.Dir.Wait(l.LockWait, l.Stopped); err != nil {", "if err := l.Dir.Wait(0, l.Stopped); err != nil && l.Stopped() {"},
	{"a reservation takes nothing", "", "store/memory/call.go", "c.aheadNS = int64(c.Limit.Book(&c.st, at, cost))",
		"after := c.st\n\t\tc.aheadNS = int64(c.Limit.Book(&after, at, cost))"},
	{"a call that is near is not", "tally", "resp/decisions/counts.go", "d.Limit*(100-p.Load())", "d.Limit*(90-p.Load())"},
	{"an old password stays", "secrets", "resp/reload/reload.go", "return nil, r.Config.ReloadPassword() }", "return nil, nil }"},
	{"a certificate is read once", "secrets", "resp/reload/reload.go", "if err := k.Reload(); err != nil {", "if err := error(nil); err != nil {"},
	{"an empty file of the password admits everybody", "secrets", "resp/config/config.go",
		"if text == \"\" {\n\t\treturn \"\", fmt.Errorf(\"read %s: %s is empty\"",
		"if false {\n\t\treturn \"\", fmt.Errorf(\"read %s: %s is empty\""},
	{"units are charged for the moment of the grant", "ahead", "store/remote/bucketscript.go",
		"if base < lasts then base = lasts end", ""},
	{"units outlive their window", "ahead", "store/remote/ahead/grant.go", "lasts = min(lasts, int64(st.A)-nowNS)", ""},
	{"units go back twice by the script", "ahead", "store/remote/bucketscript.go", "debt - ARGV[last + 5]", "debt - 2 * ARGV[last + 5]"},
	{"units are charged to one of two limits", "ahead", "store/remote/ahead/grant.go",
		"for at, i := range ours {", "for at, i := range ours[:1] {"},
	{"units do not end", "ahead", "store/remote/ahead/holding.go", "p.left >= cost && now.Before(p.end) && upperNS < p.endNS {", "p.left >= cost {"},
	{"leases do not end with their connection", "leases", "resp/session/session.go", "s.bound.Release(&s.srv.Later)", ""},

	{"a write is answered before it is synced", "crashes", "persistence/logfile.go", "if err == nil && sync {", "if err == nil && sync && len(b) == 0 {"},
	{"the error of a sync is ignored", "crashes", "persistence/logfile.go", "err = l.sync()", "_ = l.sync()"},
	{"half of a refused write stays in the file", "crashes", "persistence/logfile.go",
		"l.failed.Add(1)\n\t\tl.torn = l.cut() != nil\n\t\treturn err\n\t}\n\tl.size", "l.failed.Add(1)\n\t\treturn err\n\t}\n\tl.size"},
	{"what the disk has refused is not written later", "crashes", "persistence/aof.go",
		"l.refused, l.buffer = piece, nil", "l.buffer = nil"},
	{"a rewrite drops what came meanwhile", "crashes", "persistence/rewrite.go",
		"if err := copyRange(f, l.file, from, l.size.Load()); err != nil {", "if err := error(nil); err != nil {"},
	{"a new file takes the place of the old one before it is on the disk", "crashes", "persistence/rewrite.go",
		"if err := f.Sync(); err != nil {\n\t\treturn err\n\t}\n\tinfo, err", "info, err"},
	{"a unit does not begin with MULTI", "units", "persistence/aof.go", "slices.Insert(l.buffer, 0, []byte(aof.Multi)...), true", "l.buffer, true"},
	{"changes are gathered every two seconds", "crashes", "persistence/aof.go", "gatherEvery = 400 * time.Millisecond", "gatherEvery = 1900 * time.Millisecond"},
	{"a reply does not wait for the write", "crashes", "resp/transport/goroutine.go", "err = server.Commit()", "go func() { _ = server.Commit() }()"},
	{"a refused write is answered as done", "crashes", "resp/session/commit.go", "if err != nil {\n\t\ttext", "if false {\n\t\ttext"},

	{"an unknown policy is none, where the engine is away", "configurations", "resp/command/argument/literal.go",
		"if err := s.PoliciesUnknown(); err != nil {", "if err := s.PoliciesUnknown(); err != nil && false {"},
	{"a temporary policy does not end", "configurations", "store/policy/policies.go",
		"s.putPolicy(name, policy.Then)", "_ = name"},
	{"policies and users change in the middle of a script", "configurations", "resp/session/betweenscripts.go",
		"if !srv.Gate.Has(gate.Busy) { // nor", "if true { // nor"},
	{"policies of an engine change in the middle of a script", "policies", "resp/session/new.go", "\te.ChangeAlone(srv.BetweenScripts)\n", ""},
	{"a call waits that came after SIGTERM", "leases pause", "resp/door/waitingwithin.go",
		"if t != nil && t.Mode == store.Wait && d.Refusing.Load() {", "if false {"},
	{"what connections hold on an engine is not given back at the end", "leases", "resp/shutdown.go",
		"drained := srv.sessions.Port.Drain(ctx)", "drained := func() bool { return ctx != nil }"},

	{"who is denied without the engine is allowed", "outage", "store/remote/failure/failure.go", "	if f == Deny {", "	if f == Error {"},
	{"who is decided here without the engine has all of the limit", "outage", "store/remote/failure/local.go",
		"return int64(n)\n", "return 1\n"},
	{"the least strict mode decides on several limits", "outage", "store/remote/failure/failure.go",
		"mode := Allow\n\tfor i", "mode := Error\n\tfor i"},

	{"a cached TAT is not compared", "", "store/remote/shortcut.go", "if redis.call('GET', KEYS[1]) == ARGV[1] then", "if true then"},
	{"a cached state is not compared", "", "store/remote/view/script.go",
		"same = same and redis.call('HGET', key, ARGV[j]) == ARGV[j + 1]", "same = true"},
	{"those who wait elsewhere are not told what is given back", "leases", "store/remote/waits/invalidation.go", "w.publish(key)\n", "\n"},
	{"those who wait here are not told what is given back", "leases", "store/remote/waits/line.go", "l.poked = true\n\t\tl.serve()", "l.serve()"},
	{"a booked call is answered before its moment", "lines", "store/remote/waits/try.go",
		"at: t.read.Add(wait)", "at: t.read"},
	{"a call whose wait ends while it is decided is answered twice", "lines", "store/remote/waits/refuse.go",
		"if !v.Left() {", "if true {"},
	{"a call is sent again after an error", "", "store/remote/link/pipelines.go",
		"case r.Script != nil && !r.whole && errors.Is(Classify(err), errNoScript):", "case r.Script != nil && !r.whole:"},
	{"a call waits for a connection that another makes", "", "store/remote/link/pipelines.go",
		"inTime := context.AfterFunc(ctx, func() {", "inTime := context.AfterFunc(context.Background(), func() {"},
	{"nothing pauses connections to a node that is away", "", "store/remote/link/pace.go",
		"return max(0, time.Until(at.Add(paceInterval)))", "return 0 * time.Until(at)"},
	{"an engine that has come back is not noticed", "", "store/remote/link/breaker.go", "b.cause.Store(nil)", ""},
	{"plain calls are denied while somebody waits for the first answer", "lines", "store/remote/waits/refuse.go",
		"err == nil && !taken.Limited {\n\t\t\t\t\tcontinue", "err == nil && taken.Limited && false {\n\t\t\t\t\tcontinue"},
}

// prove runs seeds with each mutant whose name matches until one fails, and prints which and, shrunk, the least of it that does.
func prove(ctx context.Context, first, seeds uint64, which *regexp.Regexp, shrunk bool) error {
	folder, err := os.MkdirTemp("", "celld-mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	matching := slices.DeleteFunc(slices.Clone(mutants), func(m mutant) bool { return !which.MatchString(m.name) })
	if len(matching) == 0 {
		return fmt.Errorf("-mutants: no name of mutants.go matches %q; . is all", which)
	}
	missed := 0
	for _, m := range matching {
		found, err := m.find(ctx, folder, first, seeds, shrunk)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		if found == "" {
			missed++
			found = fmt.Sprintf("NOT FOUND by %d seeds", seeds)
		}
		fmt.Printf("%s: %s\n", m.name, found)
	}
	if missed > 0 {
		return fmt.Errorf("%d mutants were not found", missed)
	}
	return nil
}

// find returns what the first seed says that sees a mutant; "": none does.
func (m mutant) find(ctx context.Context, folder string, first, seeds uint64, shrunk bool) (found string, err error) {
	file, err := m.broken()
	if err != nil {
		return "", err
	}
	overlay, text := filepath.Join(folder, "overlay.json"), filepath.Join(folder, "broken.go")
	paths, err := json.Marshal(map[string]any{"Replace": map[string]string{file.path: text}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(overlay, paths, 0o600); err != nil {
		return "", err
	}
	if err := os.WriteFile(text, []byte(file.text), 0o600); err != nil {
		return "", err
	}
	var s Simulation
	if s.Program, err = runner.Build(ctx, World, "-overlay", overlay); err != nil {
		return "", err
	}
	defer s.Close(ctx)
	began, seed := time.Now(), uint64(0)
	many, stop := context.WithCancel(ctx)
	defer stop()
	s.Many(many, first, seeds, m.about, runtime.NumCPU(), false, func(done uint64, failed []Result) {
		fmt.Fprintf(os.Stderr, "\r%.60s: %d of %d seeds, %s ", m.name, done, seeds, time.Since(began).Round(time.Second))
		if len(failed) > 0 && found == "" {
			found, seed = failed[0].Err.Error(), failed[0].Seed.Number
			stop()
		}
	})
	fmt.Fprint(os.Stderr, "\r")
	if found != "" && shrunk {
		_ = s.shrink(ctx, seed) // the error is what the mutant does
	}
	return found, nil
}

// source is a file of celld.
type source struct{ path, text string }

// broken is the mutant's file with its change.
func (m *mutant) broken() (source, error) {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "celld").Output()
	if err != nil {
		return source{}, err
	}
	path := filepath.Join(strings.TrimSpace(string(root)), m.file)
	text, err := os.ReadFile(path)
	if err != nil {
		return source{}, err
	}
	if n := strings.Count(string(text), m.old); n != 1 {
		return source{}, fmt.Errorf("%s has %q %d times, want once: the mutant goes with an earlier version", m.file, m.old, n)
	}
	return source{path, strings.Replace(string(text), m.old, m.new, 1)}, nil
}
