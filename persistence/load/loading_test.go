package load

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"celld/internal/celldtest"
	"celld/persistence/aof"
	"celld/persistence/dir"
	"celld/persistence/rdb"
	"celld/persistence/source"
	"celld/store"
	"celld/store/memory"
	"celld/store/policy"
)

const (
	t0     int64 = 1_700_000_000_000_000_000
	second int64 = 1_000_000_000
)

// loading is a directory with files, and what a start makes of it.
type loading struct {
	t     *testing.T
	path  string
	store *memory.Store
	log   bytes.Buffer
	now   atomic.Int64
	Loader
}

// newLoading returns a loading of these files; a name may have a folder.
func newLoading(t *testing.T, files map[string]string) *loading {
	t.Helper()
	l := &loading{t: t, path: t.TempDir(), store: memory.New(memory.Options{MaxKeys: 9, NoEviction: true, Journal: true})}
	l.now.Store(t0)
	for name, text := range files {
		path := filepath.Join(l.path, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	log := slog.New(slog.NewTextHandler(&l.log, nil))
	directory := &dir.Dir{Path: l.path, FS: dir.System{}, Log: log}
	l.Loader = Loader{Dir: directory, Store: l.store, AppendOnly: true, Truncated: true, Clock: l.now.Load, Log: log,
		Paths: Paths{directory.Join("dump.rdb"), directory.Join("appendonly.aof"),
			directory.Join("appendonlydir/appendonly.aof.manifest")},
		Stopped: func() bool { return false }}
	return l
}

// load calls Load with an apply that knows KNOWN.
func (l *loading) load() (Result, error) {
	return l.Load(func(args [][]byte) error {
		if string(args[0]) == "KNOWN" {
			return nil
		}
		return errors.New("unknown")
	})
}

// mustLoad calls load, which must succeed, and returns the names of the files in place of their paths.
func (l *loading) mustLoad() Result {
	l.t.Helper()
	found, err := l.load()
	if err != nil {
		l.t.Fatal(err)
	}
	for _, paths := range [][]string{found.Files, found.NotRead} {
		for i, path := range paths {
			paths[i], _ = filepath.Rel(l.path, path)
		}
	}
	return found
}

// keys returns the keys of the store, one text each.
func (l *loading) keys() (all []string) {
	for at, more := (memory.Position{}), true; more; {
		at, more = l.store.Export(at, l.now.Load(), func(key []byte, st store.Value) {
			text := fmt.Sprint(string(key), "=", int64(st.TAT)-t0)
			if st.IsCount() {
				text = fmt.Sprint(string(key), " counts ", st.Count)
			}
			if st.ExpiryNS > 0 {
				text += fmt.Sprint("@t", st.ExpiryNS-t0)
			} else {
				text += fmt.Sprint("@", st.ExpiryNS)
			}
			if st.Limits != nil {
				for _, limit := range *st.Limits {
					text += " " + string(limit.AppendName(nil)) + string(limit.Limit.AppendState([]byte(" "), &limit.State))
				}
			}
			all = append(all, text)
		})
	}
	slices.Sort(all)
	return all
}

// logOf is an append-only file of commands. A ~ is a blank.
func logOf(commands ...string) string {
	var b strings.Builder
	for _, command := range commands {
		words := strings.Fields(command)
		fmt.Fprintf(&b, "*%d\r\n", len(words))
		for _, word := range words {
			fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(word), strings.ReplaceAll(word, "~", " "))
		}
	}
	return b.String()
}

// stampOf is a stamp behind a text.
func stampOf(text string, ns int64) string { return string(aof.AppendStamp(nil, ns, checksum(text))) }

func checksum(text string) uint64 { return source.Checksum(0, []byte(text)) }

// snapshotOf returns a snapshot that was written at an instant. Its one key has the TAT t0 + 9 s.
func snapshotOf(key string, ns int64) string {
	var b bytes.Buffer
	w := rdb.NewWriter(&b, ns, 1, "1")
	w.Add([]byte(key), store.Value{TAT: uint64(t0 + 9*second)})
	if err := w.Finish(ns); err != nil {
		panic(err)
	}
	return b.String()
}

const (
	tat  = "1700000009000000000"
	ends = tat + " PXAT 1700000009000"
	past = "1699999999000000000"
)

// Each command of a file changes the keys as it says. Commands that make no limit are counted.
func TestCommands(t *testing.T) {
	hash := func(until string) string {
		return "window/1h limit=5/1h,algo=window~until=" + until + "~used=2"
	}
	const window = "w=9000000000@-1 window/1h limit=5/1h,algo=window until=1700000009000000000 used=2"
	many := "HSET w"
	for i := range store.MaxLimits + 1 {
		many += fmt.Sprintf(" gcra/%ds limit=5/%ds~tat=%s", i+1, i+1, tat)
	}
	ms := func(ns int64) string { return fmt.Sprint((t0 + ns) / 1e6) }
	for _, test := range []struct {
		commands string
		keys     []string
		others   string
		expired  int64
	}{
		{"SET a " + tat, []string{"a=9000000000@-1"}, "", 0},
		{"set a " + tat + " pxat " + ms(5*second), []string{"a=9000000000@t5000000000"}, "", 0},
		{"SET a " + tat + " PXAT " + ms(9*second), []string{"a=9000000000@0"}, "", 0},
		{"SET a " + tat + " PXAT " + ms(0), nil, "", 1},
		{"SET a " + tat + " PXAT " + ms(-second), nil, "", 1},
		{"SET a " + past, []string{"a counts " + past + "@-1"}, "", 0},
		{"SET a " + past + " PXAT " + ms(5*second), []string{"a counts " + past + "@t5000000000"}, "", 0},
		{"SET a 5|SET b -9223372036854775808", []string{"a counts 5@-1", "b counts -9223372036854775808@-1"}, "", 0},
		{"SET a 5 PXAT " + ms(0), nil, "", 1},
		{"SET a 5|PEXPIREAT a " + ms(5*second), []string{"a counts 5@t5000000000"}, "", 0},
		{"SET a 5|SET a -9223372036854775809", nil, "1 string", 0},
		{"SET a 5|SET a 05", nil, "1 string", 0},
		{"SET a " + fmt.Sprint(t0), []string{fmt.Sprintf("a counts %d@-1", t0)}, "", 0},
		{"SET a " + fmt.Sprint(t0+1), []string{"a=1@-1"}, "", 0},
		{"SET a " + tat + "|SET a " + past, []string{"a counts " + past + "@-1"}, "", 0},
		{"SET a " + tat + "|SET a word", nil, "1 string", 0},
		{"SET a " + tat + " PXAT x", nil, "1 SET", 0},
		{"SET a " + tat + " PXAT -1", nil, "1 SET", 0},
		{"SET a " + tat + " PXAT 0", nil, "", 1},
		{"SET a " + tat + " EX 5", nil, "1 SET", 0},
		{"SET a " + tat + " NX", nil, "1 SET", 0},
		{"SETEX a " + tat, nil, "1 SETEX", 0},
		{"SET a " + tat + "|SET b " + tat + "|DEL a", []string{"b=9000000000@-1"}, "", 0},
		{"SET a " + tat + "|DEL a b", []string{"a=9000000000@-1"}, "1 DEL", 0},
		{"KNOWN a|known a|a-name-that-is-much-longer-than-those-of-commands a", nil, "1 A-NAME-THAT-IS-MUCH-LONGER-THAN-, 1 KNOWN", 0},
		{"SET a " + tat + "|FLUSHALL ASYNC|SET b " + tat, []string{"b=9000000000@-1"}, "", 0},
		{"SET a " + tat + "|FLUSHDB", nil, "", 0},
		{"SET a " + tat + "|SELECT 1|FLUSHDB|SET b " + tat + "|DEL a", []string{"a=9000000000@-1"}, "3 database 1", 0},
		{"SET a " + tat + "|SELECT 1|FLUSHALL|SELECT 0|SET b " + tat, []string{"b=9000000000@-1"}, "", 0},
		{"SELECT", nil, "1 SELECT", 0},
		{"ECHO", nil, "1 ECHO", 0},
		{"ECHO word|ECHO some~words", nil, "", 0},
		{"HSET w " + hash(tat), []string{window}, "", 0},
		{"hmset w " + hash(tat), []string{window}, "", 0},
		{"HSET w " + hash(past), nil, "", 1},
		{"HSET w " + hash(tat) + " odd", nil, "1 HSET", 0},
		{"HSET w", nil, "1 HSET", 0},
		{"HSET w field text", nil, "1 hash", 0},
		{"HSET w " + hash(tat) + "|HSET w field text " + hash(tat), nil, "1 hash", 0},
		{"HSET w " + hash(tat) + " " + hash(tat), []string{window}, "", 0},
		{"HSET w window/2h " + strings.TrimPrefix(hash(tat), "window/1h "), nil, "1 hash", 0},
		{many, nil, "1 hash", 0},
		{"HSET w @gone limit=5/1h~tat=" + tat, nil, "1 limit of an unknown policy", 0},
		{"HSET w @gone limit=5/1h~tat=" + tat + " " + hash(tat), []string{window}, "1 limit of an unknown policy", 0},
		{"HSET w " + hash(tat) + "|HSET w gcra/1h limit=5/1h~tat=" + tat,
			[]string{window + " gcra/1h limit=5/1h tat=1700000009000000000"}, "", 0},
		{"SET w " + tat + "|HSET w " + hash(tat), []string{window}, "", 0},
		{"SET a " + tat + "|PEXPIREAT a " + ms(5*second), []string{"a=9000000000@t5000000000"}, "", 0},
		{"SET a " + tat + "|PEXPIREAT a 0", nil, "", 0},
		{"SET a " + tat + "|PEXPIREAT a -1", []string{"a=9000000000@-1"}, "1 PEXPIREAT", 0},
		{"SET a " + tat + "|PEXPIREAT a x|PEXPIREAT a", []string{"a=9000000000@-1"}, "2 PEXPIREAT", 0},
		{"PEXPIREAT a " + ms(5*second), nil, "", 0},
		{"ECHO celld-policy~5/1h~p|HSET w @p limit=5/1h~tat=" + tat, []string{"w=9000000000@-1 @p/gcra/1h limit=5/1h tat=1700000009000000000"}, "", 0},
		{"ECHO celld-policy~5/1h~p|HSET w @p limit=5/1h~tat=" + tat + "|ECHO celld-policy~-~p", nil, "", 0},
		{"ECHO celld-policy~nonsense~p", nil, "1 celld-policy", 0},
	} {
		l := newLoading(t, map[string]string{"appendonly.aof": logOf(strings.Split(test.commands, "|")...)})
		found, changed := l.mustLoad(), l.store.Changed()
		if got := l.keys(); !slices.Equal(got, test.keys) || found.OthersText() != test.others || found.Expired != test.expired {
			t.Errorf("%s:\n%q, want %q; %q, %d expired", test.commands, got, test.keys, found.OthersText(), found.Expired)
		}
		gone := strings.HasSuffix(test.commands, "celld-policy~-~p") // what is under it is removed when it is met
		if found.Keys != int64(len(test.keys)) || changed != 0 && !gone {
			t.Errorf("%s: %d keys, %d changes", test.commands, found.Keys, changed)
		}
	}
}

// A start fails if there is no room, if it cannot continue, and when it is told to stop.
func TestWhatEndsAStart(t *testing.T) {
	many := func(command string) (all []string) {
		for i := range 10 {
			all = append(all, fmt.Sprintf(command, i))
		}
		return all
	}
	for _, test := range []struct {
		commands []string
		stop     bool
		want     string
	}{
		{many("SET key%d " + tat), false, "there are more keys than --max-keys, --maxmemory and noeviction allow"},
		{many("HSET key%d gcra/1h limit=5/1h~tat=" + tat), false, "there are more keys than --max-keys, --maxmemory and noeviction allow"},
		{many("SET key%d " + tat)[:9], false, ""},
		{[]string{"SELECT x"}, false, `SELECT "x"`},
		{[]string{ // costs of more than 2^53
			"HSET k log/1h limit=5/1h,algo=log~calls=1700000000000000000:2",
			"HSET k log/1h~1 limit=5/1h,algo=log~after=1700000000000000000~calls=1700000000000000001:9007199254740991",
		}, false, store.ErrField.Error()},
		{many("SET key%d " + tat)[:1], true, ErrStopping.Error()},
		{many("HSET key%d gcra/1h limit=5/1h~tat=" + tat)[:1], true, ErrStopping.Error()},
	} {
		l := newLoading(t, map[string]string{"appendonly.aof": logOf(test.commands...)})
		l.Stopped = func() bool { return test.stop }
		found, err := l.load()
		if err == nil && test.want == "" {
			continue
		}
		if err == nil || test.want == "" || !strings.HasSuffix(err.Error(), test.want) || found.File != "" {
			t.Errorf("%q: %v, want %q", test.commands, err, test.want)
		}
	}
	l := newLoading(t, map[string]string{"dump.rdb": snapshotOf("a", t0)})
	if l.Stopped = func() bool { return true }; l.Check() != nil {
		t.Error("the snapshot is whole")
	}
	if _, err := l.load(); !errors.Is(err, ErrStopping) {
		t.Errorf("a snapshot: %v", err)
	}
	l = newLoading(t, map[string]string{"appendonlydir/appendonly.aof.manifest/none": ""})
	if err := l.Check(); err == nil {
		t.Error("a folder is taken for the manifest")
	}
	l = newLoading(t, nil)
	other := &dir.Dir{Path: l.path, FS: dir.System{}, Log: l.Log}
	if err := other.Claim(); err != nil {
		t.Fatal(err)
	}
	l.Lock = true
	if _, err := l.load(); !errors.Is(err, dir.ErrInUse) {
		t.Error(err)
	}
	l.Stopped = func() bool { return true }
	if _, err := l.load(); !errors.Is(err, ErrStopping) {
		t.Error(err)
	}
	other.Release()
	if l.mustLoad(); !l.Dir.Claimed() {
		t.Error("the directory is not locked")
	}
	l.Dir.Release()
}

const manifest = "file base.aof seq 1 type b\nfile old.aof seq 1 type h\n\nfile other/incr.aof seq 2 type i\n"

// One kind of the files is read. What would be appended to another is written anew.
func TestWhichFilesAreRead(t *testing.T) {
	a, b, c := logOf("SET a "+ends), logOf("SET b "+ends), logOf("SET c "+ends)
	const both = "[appendonlydir/base.aof appendonlydir/incr.aof]"
	redis := map[string]string{"appendonlydir/appendonly.aof.manifest": manifest,
		"appendonlydir/base.aof": snapshotOf("base", t0) + b, "appendonlydir/incr.aof": c}
	with := func(files map[string]string, more ...string) map[string]string {
		files = maps.Clone(files)
		for i := 0; i < len(more); i += 2 {
			files[more[i]] = more[i+1]
		}
		return files
	}
	none := map[string]string{}
	snapshot := with(none, "dump.rdb", snapshotOf("d", t0))
	for _, test := range []struct {
		files      map[string]string
		snapshots  bool
		keys       string
		read, left string
		rewrite    bool
	}{
		{none, false, "[]", "[]", "[]", false},
		{none, true, "[]", "[]", "[]", false},
		{snapshot, true, "[d]", "[dump.rdb]", "[]", false},
		{snapshot, false, "[d]", "[dump.rdb]", "[]", true},
		{with(snapshot, "appendonly.aof", a), false, "[a]", "[appendonly.aof]", "[dump.rdb]", false},
		{with(snapshot, "appendonly.aof", a), true, "[d]", "[dump.rdb]", "[appendonly.aof]", false},
		{with(none, "appendonly.aof", ""), false, "[]", "[appendonly.aof]", "[]", false},
		{with(none, "appendonly.aof", snapshotOf("d", t0)+a), false, "[a d]", "[appendonly.aof]", "[]", false},
		{with(none, "appendonly.aof", a+logOf("SELECT 2")), false, "[a]", "[appendonly.aof]", "[]", true},
		{with(redis, "dump.rdb", snapshotOf("d", t0)), false, "[b base c]", both, "[dump.rdb]", true},
		{with(redis, "appendonly.aof", a), false, "[a]", "[appendonly.aof]", "[appendonlydir/appendonly.aof.manifest]", false},
		{with(redis, "appendonlydir/appendonly.aof.manifest", ""), false, "[]", "[]", "[]", true},
		{with(redis, "appendonlydir/incr.aof", c+"*1\r\n$"), false, "[b base c]", both, "[]", true},
	} {
		l := newLoading(t, test.files)
		l.AppendOnly = !test.snapshots
		if err := l.Check(); err != nil {
			t.Errorf("%q: %v", slices.Sorted(maps.Keys(test.files)), err)
		}
		found := l.mustLoad()
		var keys []string
		for _, key := range l.keys() {
			name, _, _ := strings.Cut(key, "=")
			keys = append(keys, name)
		}
		got := fmt.Sprint(keys, found.Files, found.NotRead, found.Rewrite)
		got = strings.ReplaceAll(got, " ", "")
		if want := strings.ReplaceAll(fmt.Sprint(test.keys, test.read, test.left, test.rewrite), " ", ""); got != want {
			t.Errorf("%q: %s, want %s", slices.Sorted(maps.Keys(test.files)), got, want)
		}
		size := int64(0)
		for _, name := range found.Files {
			size += int64(len(test.files[name]))
		}
		if p := l.Progress(); p.BeganNS != t0 || p.Done != size || p.Total != size {
			t.Errorf("%+v of %d bytes", p, size)
		}
	}
}

// A damaged file ends the start with an error that says what to do. A file that only ends too early is cut off.
func TestDamage(t *testing.T) {
	a, b := logOf("SET a "+ends), logOf("SET b "+ends)
	const missing = "base.aof, which appendonly.aof.manifest lists, is missing"
	for _, test := range []struct {
		name, text string
		strict     bool
		want       string // of the error; "": cut to a
		check      string // of Check
	}{
		{"appendonly.aof", a + b[:9], false, "", ""},
		{"appendonly.aof", a + b[:9] + "\x00\x00\x00", false, "", ""},
		{"appendonly.aof", a + b[:9], true, "redis-check-aof --fix PATH, or --aof-load-truncated yes", ""},
		{"appendonly.aof", a + "nonsense\r\n", false, "To cut it off there: redis-check-aof --fix PATH", ""},
		{"appendonly.aof", a + string(aof.AppendStamp(nil, t0, 5)), false, "To cut it off there: truncate -s 0 PATH", ""},
		{"appendonly.aof", "nonsense\r\n", false, "redis-check-aof --fix", "PATH: damaged at byte 0: "},
		{"dump.rdb", "REDIS0009", false, "PATH: ", ""},
		{"dump.rdb", "REDIS", false, "PATH: ", "PATH: damaged at byte 0: it ends in the middle"},
		{"dump.rdb", "REDIS9999 ", false, "PATH: ", "PATH: "},
		{"dump.rdb", "nonsense that is long", false, "PATH: ", "PATH: "},
		{"appendonly.aof", "REDIS0009 ", false, "Put a good copy in its place, or move it away to start without", ""},
		{"appendonlydir/base.aof", a + b[:9], false, "it is not the last of the append-only files. Put a good copy in its place", ""},
		{"appendonlydir/none.aof", a, false, missing, missing},
	} {
		files := map[string]string{test.name: test.text}
		if strings.HasPrefix(test.name, "appendonlydir") {
			files["appendonlydir/appendonly.aof.manifest"], files["appendonlydir/incr.aof"] = manifest, b
		}
		l := newLoading(t, files)
		l.Truncated = !test.strict
		path := filepath.Join(l.path, test.name)
		want, check := strings.ReplaceAll(test.want, "PATH", path), strings.ReplaceAll(test.check, "PATH", path)
		if err := l.Check(); (err == nil) != (check == "") || err != nil && !strings.Contains(err.Error(), check) {
			t.Errorf("%.40q: check: %v, want %q", test.text, err, check)
		}
		found, err := l.load()
		text, _ := os.ReadFile(path)
		switch {
		case want == "":
			told := fmt.Sprintf("at=%d bytes_lost=%d", len(a), len(test.text)-len(a))
			if err != nil || found.Rewrite || string(text) != a || !strings.Contains(l.log.String(), told) {
				t.Errorf("%.40q: %v, the file has %q; %s", test.text, err, text, &l.log)
			}
		case err == nil || !strings.Contains(err.Error(), want) || string(text) != test.text:
			t.Errorf("%.40q: %v, want %q; the file has %q", test.text, err, want, text)
		}
	}
	l := newLoading(t, map[string]string{"appendonly.aof": a})
	if err := os.Chmod(l.path, 0); err != nil || os.Getuid() == 0 {
		l.Dir.Path += "/none"
	}
	if err := l.Check(); err == nil || !strings.Contains(err.Error(), "--dir") {
		t.Error(err)
	}
	_ = os.Chmod(l.path, 0o755)
}

// The checksum of what follows the last stamp continues, unless a new file is written.
func TestTheChecksumOfTheTail(t *testing.T) {
	head, tail := logOf("SET a "+ends), logOf("SET b "+ends)
	text := head + stampOf(head, t0-second) + tail
	l := newLoading(t, map[string]string{"appendonly.aof": text})
	if found := l.mustLoad(); found.TailCRC != checksum(tail) || found.Rewrite || l.log.Len() > 0 {
		t.Errorf("%+v %s", found, &l.log)
	}
	l = newLoading(t, map[string]string{"appendonly.aof": text})
	l.now.Add(-2 * second)
	if found := l.mustLoad(); found.TailCRC != 0 || !found.Rewrite || !strings.Contains(l.log.String(), "by=1s") {
		t.Errorf("%+v %s", found, &l.log)
	}
	l = newLoading(t, map[string]string{"dump.rdb": snapshotOf("a", t0+second)})
	l.AppendOnly = false
	if found := l.mustLoad(); found.Rewrite || !slices.Equal(l.keys(), []string{"a=8000000000@0"}) {
		t.Errorf("%+v %q", found, l.keys())
	}
}

// If the clock is behind that of the file, all is set back as much.
func TestSetBack(t *testing.T) {
	text := logOf("SET a "+tat, "SET b "+tat+" PXAT "+fmt.Sprint((t0+5*second)/1e6), "SET first 1700000003500000000",
		"HSET w window/1h limit=5/1h,algo=window~until="+tat+"~used=2", "SET over "+tat+" PXAT "+fmt.Sprint((t0+3*second)/1e6))
	l := newLoading(t, map[string]string{"appendonly.aof": text + stampOf(text, t0+4*second)})
	for i, until := range []int64{0, 3 * second, 4 * second, 4*second + 1, 9 * second} {
		rule := policy.Rule{Deny: true, Pattern: fmt.Sprint("rule", i)}
		if until > 0 {
			rule.UntilNS = t0 + until
		}
		if _, err := l.store.PutRule(rule, t0); err != nil {
			t.Fatal(err)
		}
	}
	found := l.mustLoad()
	want := []string{"a=5000000000@-1", "b=5000000000@t1000000000",
		"w=5000000000@-1 window/1h limit=5/1h,algo=window until=1700000005000000000 used=2"}
	if got := l.keys(); !slices.Equal(got, want) || found.Keys != int64(len(want)) {
		t.Errorf("%q, want %q; %d keys", got, want, found.Keys)
	}
	var rules []string
	for _, r := range l.store.Rules(t0) {
		rules = append(rules, fmt.Sprint(r.Pattern, "@", max(r.UntilNS-t0, 0)))
	}
	if slices.Sort(rules); !slices.Equal(rules, []string{"rule0@0", "rule3@1", "rule4@5000000000"}) {
		t.Errorf("%q", rules)
	}
}

// Every two seconds the log says how far loading is, until the end.
func TestLogProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoading(t, nil)
		l.progress.beganNS.Store(t0)
		l.progress.total.Store(200)
		stop := l.logProgress()
		for i := range 3 {
			l.progress.done.Add(50)
			l.now.Add(2 * second)
			celldtest.Pass(2 * time.Second)
			want := fmt.Sprintf("percent=%d.0 loaded_bytes=%d total_bytes=200", 25*(i+1), 50*(i+1))
			if strings.Count(l.log.String(), "\n") != i+1 || !strings.Contains(l.log.String(), want) {
				t.Errorf("%s, want %s", &l.log, want)
			}
		}
		stop()
		synctest.Wait()
		celldtest.Pass(9 * time.Second)
		if strings.Count(l.log.String(), "\n") != 3 {
			t.Error(l.log.String())
		}
	})
}
