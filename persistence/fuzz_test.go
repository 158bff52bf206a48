package persistence_test

import (
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"celld/persistence"
	"celld/store"
	"celld/store/policy"
)

// FuzzRDB: any snapshot is loaded or refused, and takes no more memory than a multiple of its size.
func FuzzRDB(f *testing.F) {
	names, err := filepath.Glob("rdb/testdata/*.rdb")
	if err != nil || len(names) == 0 {
		f.Fatal(names, err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		if len(text) > 2000 {
			continue // they make the fuzzer slow
		}
		f.Add(text)
		// Without a checksum more than the first change is looked at.
		f.Add(append(text[:len(text)-8], 0, 0, 0, 0, 0, 0, 0, 0))
	}
	for _, own := range []string{ownFile(f, "dump.rdb"), ownFileOfLimits(f, "dump.rdb")} {
		f.Add([]byte(own[:len(own)-8] + "\x00\x00\x00\x00\x00\x00\x00\x00"))
	}
	f.Add([]byte("REDIS0012\xf4\x00\x01\x02\xf5\x03abc\xf7\x01\x01\x02\x03abcd\x04abcdefgh\x05\x01a\x00\xf8\x01\xf9\x01\xfd\xff" +
		"\xff\xff\x7f\x07\x01k\x01\x02\x05\x00\x03\x01z\x01\x01a\x031.5\x18\x01h12345678\x01\x00\x01a\x01b\x12\x01l\x01\x02\x01a\x00\x01x\xc3\x05\x0a\x005\xe0\x00\x00\xff\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, text []byte) { fuzzLoad(t, "dump.rdb", snapshots, text) })
}

// FuzzAOF does the same with an append-only file, or one that begins with a snapshot.
func FuzzAOF(f *testing.F) {
	f.Add([]byte(ownFile(f, "appendonly.aof")))
	f.Add([]byte(ownFileOfLimits(f, "appendonly.aof")))
	f.Add([]byte("*1\r\n$5\r\nMULTI\r\n*4\r\n$4\r\nHSET\r\n$1\r\nk\r\n$7\r\ngcra/1h\r\n$34\r\nlimit=5/1h tat=1700000009000000000\r\n" +
		aofText("PEXPIREAT k 1700000005000", "EXEC", "HSET k a b")))
	f.Add([]byte(aofText("SELECT 0", "SET a 1700000009000000000", "set b 1700000009000000000 pxat 1700000005000", "DEL a b", "DEL a",
		"ECHO hello")))
	f.Add([]byte(aofText("MULTI", "SET a 1700000009000000000", "EXEC", "SELECT 1", "SET a 1700000009000000000", "FLUSHALL", "FLUSHDB")))
	f.Add([]byte("#TS:1700000000\r\n" + aofText("SET a 1700000009000000000", "MULTI", "DEL a") + "\x00\x00\x00"))
	rdb, err := os.ReadFile("rdb/testdata/unchecked.rdb")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(append(rdb, aofText("SET a 1700000009000000000")...))
	f.Fuzz(func(t *testing.T, text []byte) { fuzzLoad(t, "appendonly.aof", appendOnly, text) })
}

// ownFileOfLimits is a file that celld wrote, with limits, policies and rules.
func ownFileOfLimits(f *testing.F, name string) string {
	w, files := inMemory(f, func(o *persistence.Options) { snapshots(o); appendOnly(o) })
	w.mustOpen()
	w.setPolicy("p", "7/1h,algo=window", policy.Options{})
	w.putRule(policy.Rule{Pattern: "x*", UntilNS: t0 + 60*second})
	for i, text := range fileLimits {
		w.take("k", 2, text)
		w.take(strings.Repeat("k", i), 2, text, "@p")
	}
	for range 3 { // of a log: parts, and what follows them
		for range 70 {
			w.take("log", 1, "300/1h,algo=log")
			w.pass(1)
		}
		w.tick(second)
		w.settle()
	}
	if err := w.close(); err != nil {
		f.Fatal(err)
	}
	return files.text(name)
}

// ownFile is a file that celld wrote.
func ownFile(f *testing.F, name string) string {
	w, files := inMemory(f, func(o *persistence.Options) { snapshots(o); appendOnly(o) })
	w.mustOpen()
	for key, st := range fewStates() {
		if len(key) < 100 {
			w.put(key, st)
		}
	}
	if err := w.close(); err != nil {
		f.Fatal(err)
	}
	return files.text(name)
}

func fuzzLoad(t *testing.T, name string, set func(*persistence.Options), text []byte) {
	w, files := inMemory(t, set)
	files.put(name, text)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := w.open()
	runtime.ReadMemStats(&after)
	// LZF makes at most 88 bytes of one. A buffer that grows has been allocated twice in all.
	if used := after.TotalAlloc - before.TotalAlloc; used > 8<<20+300*uint64(len(text)) {
		t.Errorf("%d bytes take %d of memory", len(text), used)
	}
	if err != nil {
		if !strings.HasPrefix(err.Error(), name+": ") {
			t.Errorf("%v", err)
		}
		if files.text(name) != string(text) {
			t.Errorf("%v, and the file was changed", err)
		}
		return
	}
	// What was loaded is written, and read back as the same.
	w.put("one more", store.Value{TAT: uint64(t0 + 90*second)})
	first := w.texts()
	second := w.reopen().texts()
	if a, b := slices.Sorted(maps.Keys(first)), slices.Sorted(maps.Keys(second)); !slices.Equal(a, b) {
		t.Errorf("%q became %q", a, b)
	}
	w.reopen().expectTexts(second)
	if err := w.close(); err != nil {
		t.Error(err)
	}
}
