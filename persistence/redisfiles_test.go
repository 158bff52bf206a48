package persistence_test

import (
	"fmt"
	"maps"
	"math"
	"os"
	"strings"
	"testing"

	"celld/store"
)

// Files that redis-server 7.0.15 wrote, by rdb/testdata/make.sh: which parts are integers or limits, and which are not.
func TestRedisFiles(t *testing.T) {
	const tat = 4_000_000_000_000_000_000 // in 2096
	forever, plain := store.Value{TAT: tat, ExpiryNS: store.NoExpiry}, store.Value{TAT: tat}
	limits := store.Value{TAT: tat, ExpiryNS: store.NoExpiry, HoldsLimits: true}
	count := func(n int64) store.Value { return store.Value{Count: n, ExpiryNS: store.NoExpiry} }
	long := strings.Repeat("tenant/", 10)
	between := map[string]store.Value{"limit-a": forever, "limit-b": plain, "limit-c": forever}
	for _, test := range []struct {
		name   string
		limits map[string]store.Value
		others string
	}{
		{
			name: "strings.rdb",
			limits: map[string]store.Value{
				"plain":         forever,
				"user:1":        plain,
				"expires-first": {TAT: tat, ExpiryNS: tat - 1234e6},
				"past-int64":    {TAT: math.MaxUint64, ExpiryNS: store.NoExpiry},
				"7":             forever, "-100": forever, "300": forever, "-30000": forever, // keys that are stored as integers
				"70000": forever, "-2000000000": forever, "2147483648": forever,
				"":                forever,
				"bin\x00\r\n\xff": forever,
				long:              forever, // compressed
				"is-8-bits":       count(5), "is-16-bits": count(300), "is-32-bits": count(70000),
				"is-64-bits": count(1_700_000_000_000_000_000),
				"negative-8": count(-5), "negative-16": count(-300), "negative-32": count(-70000), "negative-64": count(-tat),
			},
			others: "1 database 15, 1 list, 3 database 3, 9 string",
		},
		{name: "packed.rdb", limits: between, others: "1 hash, 1 list, 1 zset, 2 stream, 4 set"},
		{name: "lru.rdb", limits: between, others: "1 hash, 1 list, 1 zset, 2 stream, 4 set"},
		{name: "lfu.rdb", limits: between, others: "1 hash, 1 list, 1 zset, 2 stream, 4 set"},
		{name: "large.rdb", limits: between, others: "1 list, 1 stream, 1 zset, 2 hash, 2 set"},
		{name: "compressed.rdb", limits: between, others: "1 list, 1 stream, 1 zset, 2 hash, 2 set"},
		{
			name: "limits.rdb",
			limits: map[string]store.Value{
				"packed":         {TAT: 1111113 * 3600 * 1e9, ExpiryNS: store.NoExpiry, HoldsLimits: true},
				"plain":          {TAT: tat + 4*1500 + 3*3600*1e9, ExpiryNS: store.NoExpiry, HoldsLimits: true},
				"compressed":     {TAT: tat + 12*1500 + 3*3600*1e9, ExpiryNS: store.NoExpiry, HoldsLimits: true},
				"expires":        {TAT: tat, ExpiryNS: tat - 1234e6, HoldsLimits: true},
				"lives-as-long":  {TAT: tat, HoldsLimits: true},
				"without-policy": limits, "limit": forever,
			},
			others: "1 limit of an unknown policy, 4 hash",
		},
		{name: "unchecked.rdb", limits: map[string]store.Value{"limit": forever}},
	} {
		t.Run(test.name, func(t *testing.T) {
			text, err := os.ReadFile("rdb/testdata/" + test.name)
			if err != nil {
				t.Fatal(err)
			}
			if len(text) > 20_000 {
				t.Errorf("%d bytes are too many for a file among the sources", len(text))
			}
			w, files := inMemory(t, snapshots)
			files.put(w.path("dump.rdb"), text)
			w.now = 2_000_000_000 * second
			w.mustOpen().expect(test.limits)
			loaded := w.m.Status().Loaded
			if got := loaded.OthersText(); got != test.others || loaded.Expired != 0 {
				t.Errorf("left out: %s; expired: %d", got, loaded.Expired)
			}
			w.reopen().expect(test.limits)

			// The same as the start of an append-only file, as Redis before 7 writes it, which is then extended.
			files.put(w.path("appendonly.aof"), append(text, "*3\r\n$3\r\nSET\r\n$5\r\nlater\r\n$19\r\n4000000000000000000\r\n"...))
			want := maps.Clone(test.limits)
			want["later"] = forever
			w.set = always
			w.mustOpen().expect(want)
			w.put("much later", plain)
			w.commit()
			want["much later"] = plain
			w.reopen().expect(want)
			if err := w.m.Rewrite(); err != nil {
				t.Fatal(err)
			}
			w.settle()
			w.reopen().expect(want)
		})
	}
}

// A file of Redis holds its time in whole seconds. It may be loaded in the second in which it was written.
func TestARedisFileOfThisSecond(t *testing.T) {
	w, files := inMemory(t, snapshots)
	files.put(w.path("dump.rdb"), fmt.Appendf(nil, "REDIS0009\xfa\x05ctime\x0a%d\x00\x01a\x13%d\xff\x00\x00\x00\x00\x00\x00\x00\x00",
		t0/second, t0+9*second))
	w.pass(second / 10)
	w.mustOpen().expect(map[string]store.Value{"a": {TAT: uint64(t0 + 9*second), ExpiryNS: store.NoExpiry}})
	if strings.Contains(w.log.String(), "clock") {
		t.Error(w.log)
	}
	w.now -= 5 * second
	w.mustOpen().expect(map[string]store.Value{"a": {TAT: uint64(t0 + 4*second + second/10), ExpiryNS: store.NoExpiry}})
	for _, nonsense := range []string{"-9223372036854775808", "9223372036854775807", "-5", "x"} {
		files.put(w.path("dump.rdb"), fmt.Appendf(nil, "REDIS0009\xfa\x05ctime%c%s\x00\x01a\x13%d\xff\x00\x00\x00\x00\x00\x00\x00\x00",
			len(nonsense), nonsense, t0+9*second))
		w.mustOpen().expect(map[string]store.Value{"a": {TAT: uint64(t0 + 9*second), ExpiryNS: store.NoExpiry}})
	}
}

// A snapshot says when it was taken, as redis-check-rdb and other tools show, and how many keys it holds, if any.
func TestASnapshotSaysWhatItIs(t *testing.T) {
	for keys, hint := range []string{"", "\xfe\x00\xfb\x01\x01"} {
		w, files := inMemory(t, snapshots)
		w.mustOpen()
		for key := range keys {
			w.put(fmt.Sprint(key), store.Value{TAT: uint64(t0 + 90*second)})
		}
		if err := w.m.Save(); err != nil {
			t.Fatal(err)
		}
		if text := files.text(w.path("dump.rdb")); !strings.Contains(text, "\xfa\x05ctime\x0a1700000000"+hint) ||
			hint == "" && strings.Contains(text, "\xfe\x00\xfb") {
			t.Errorf("%q", text)
		}
	}
}
