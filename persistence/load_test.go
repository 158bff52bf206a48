package persistence_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"celld/persistence"
	"celld/store"
	"celld/store/memory"
)

// logOf is an append-only file. A ~ is a blank.
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

// A start fails where a file has what there is no room for, or what no server writes.
func TestAFileThatCannotBeLoaded(t *testing.T) {
	const a, b = "SET a 1700000100000000000", "SET b 1700000100000000000"
	const full = "there are more keys than --max-keys, --maxmemory and noeviction allow"
	for _, test := range []struct {
		commands []string
		want     string // "": it is loaded
	}{
		{[]string{"SELECT 0", a, "SELECT 1", b}, ""},
		{[]string{a, b}, full},
		{[]string{a, "HSET b gcra/1h limit=5/1h~tat=1700000100000000000"}, full},
		{[]string{"SELECT x"}, `SELECT "x"`},
		{[]string{ // costs of more than 2^53
			"HSET k log/1h limit=5/1h,algo=log~calls=1700000000000000000:2",
			"HSET k log/1h~1 limit=5/1h,algo=log~after=1700000000000000000~calls=1700000000000000001:9007199254740992",
		}, "not a limit and its state"},
	} {
		w := newWorld(t, appendOnly)
		w.room = memory.Options{MaxKeys: 1, NoEviction: true}
		w.write("appendonly.aof", logOf(test.commands...))
		err := w.open()
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%q: %v, want %q", test.commands, err, test.want)
		}
	}
}

// Of several files one is read, and the others are told of.
func TestFilesThatAreNotRead(t *testing.T) {
	const aof, manifest, rdb = "appendonly.aof", "appendonlydir/appendonly.aof.manifest", "dump.rdb"
	text := map[string]string{aof: logOf("SET a 1700000100000000000"), manifest: "file a.incr.aof seq 1 type i\n"}
	w := newWorld(t, snapshots).mustOpen()
	w.put("a", store.Value{TAT: uint64(t0 + 90*second)})
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	text[rdb] = w.read(rdb)
	for _, test := range []struct {
		set     func(*persistence.Options)
		files   []string
		notRead []string
	}{
		{appendOnly, []string{aof, manifest, rdb}, []string{manifest, rdb}},
		{appendOnly, []string{manifest, rdb}, []string{rdb}},
		{appendOnly, []string{rdb}, nil},
		{snapshots, []string{aof, manifest, rdb}, []string{aof, manifest}},
		{snapshots, []string{aof}, nil},
	} {
		w := newWorld(t, test.set)
		if err := os.Mkdir(w.path("appendonlydir"), 0o700); err != nil {
			t.Fatal(err)
		}
		w.write("appendonlydir/a.incr.aof", text[aof])
		for _, name := range test.files {
			w.write(name, text[name])
		}
		w.mustOpen()
		var got []string
		for _, path := range w.m.Status().Loaded.NotRead {
			name, err := filepath.Rel(w.dir, path)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, name)
		}
		if !slices.Equal(got, test.notRead) {
			t.Errorf("%q: %q are not read, want %q", test.files, got, test.notRead)
		}
	}
}

// Commands that leave no limit are counted by what they would have left, and annotations are read over.
func TestCommandsThatAreNoLimits(t *testing.T) {
	long := strings.Repeat("x", 2000)
	for text, test := range map[string]struct{ others, fails string }{
		logOf("SET a text"): {others: "1 string"},
		logOf("SET a 1700000100000000000 PXAT x", "SET a 1700000100000000000 PXAT -1"): {others: "2 SET"},
		logOf("PEXPIREAT a x", "PEXPIREAT a -1", "PEXPIREAT a 1700000100000"):          {others: "2 PEXPIREAT"},
		logOf("PEXPIREAT a 0"):                                           {},
		logOf("LPUSH a x", "INCR a"):                                     {others: "1 INCR, 1 LPUSH"},
		logOf("SELECT 7", "SET a x"):                                     {others: "1 database 7"},
		"#TS:1700000000\r\n" + logOf("SET "+long+" 1700000100000000000"): {},
		"#" + long + "\r\n":                                              {},
		"#" + long:                                                       {fails: "an annotation that is too long"},
		"#TS:17":                                                         {}, // cut off
	} {
		w := newWorld(t, appendOnly)
		w.write("appendonly.aof", text)
		err := w.open()
		if test.fails == "" && err != nil || test.fails != "" && (err == nil || !strings.Contains(err.Error(), test.fails)) {
			t.Errorf("%.80q: %v", text, err)
		}
		if got := w.m.Status().Loaded.OthersText(); got != test.others {
			t.Errorf("%.80q: %q, want %q", text, got, test.others)
		}
	}
}
