package persistence

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"celld/internal/celldtest"
	"celld/persistence/rdb"
	"celld/persistence/source"
	"celld/store"

	"github.com/hdt3213/rdb/encoder"
	"github.com/hdt3213/rdb/model"
	"github.com/hdt3213/rdb/parser"
	"pgregory.net/rapid"
)

// github.com/hdt3213/rdb is the second opinion on RDB files.

const rdbFiles = "../../persistence/rdb/testdata/"

// seen is what is read of a file, in words.
type seen []string

func (s *seen) String(key, value []byte, expiryMS int64) error {
	text := fmt.Sprintf("%s=%s", key, value)
	if expiryMS >= 0 {
		text += fmt.Sprintf("@%d", expiryMS)
	}
	*s = append(*s, text)
	return nil
}

func (*seen) Field(f *rdb.Fields, _, _ []byte) { f.Bad = true }
func (*seen) Setting(string, string) bool      { return false }
func (s *seen) Hash(key []byte, _ *rdb.Fields, _ int64) error {
	s.Other(key, "hash")
	return nil
}
func (s *seen) Other(key []byte, kind string) { *s = append(*s, string(key)+":"+kind) }

func readAll(file []byte) (seen, error) {
	var all seen
	_, err := rdb.Read(source.New(bytes.NewReader(file), int64(len(file)), nil), &all)
	return all, err
}

func someTAT(t *rapid.T) uint64 {
	return rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 5_000_000), rapid.Uint64Range(1.7e18-5_000_000, 1.7e18+5_000_000),
		rapid.Uint64Range(math.MaxInt64-5_000_000, math.MaxInt64+5_000_000),
		rapid.Uint64Range(math.MaxUint64-5_000_000, math.MaxUint64)).Draw(t, "tat")
}

// byLibrary is what the library reads, in the words of seen, and how its values were coded.
func byLibrary(file []byte) (all seen, codings map[string]int, err error) {
	codings = map[string]int{}
	err = parser.NewDecoder(bytes.NewReader(file)).Parse(func(o parser.RedisObject) bool {
		text, isText := o.(*parser.StringObject)
		if !isText {
			codings[o.GetType()+" "+o.GetEncoding()]++
			all.Other([]byte(o.GetKey()), o.GetType())
			return true
		}
		switch {
		case o.GetDBIndex() != 0:
			all.Other([]byte(o.GetKey()), fmt.Sprint("database ", o.GetDBIndex()))
		case o.GetExpiration() != nil:
			_ = all.String([]byte(o.GetKey()), text.Value, o.GetExpiration().UnixMilli())
		default:
			_ = all.String([]byte(o.GetKey()), text.Value, -1)
		}
		return true
	})
	return all, codings, err
}

// The library reads what is written as it was.
func TestTheLibraryReadsOurs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		states := rapid.MapOf(rapid.String(), rapid.Custom(func(t *rapid.T) store.Value {
			// It knows no expiry of 0, and none that is past int64 in nanoseconds.
			ms := rapid.OneOf(rapid.Int64Range(-1, 2e12), rapid.Just[int64](-1), rapid.Int64Range(1, 9e12))
			return rdb.WithExpiry(store.Value{TAT: max(someTAT(t), 1)}, ms.Draw(t, "ms"))
		})).Draw(t, "states")
		var want seen
		for key, st := range states {
			ms := rdb.ExpiryMS(st)
			if ms > 9e12 {
				delete(states, key)
				continue
			}
			_ = want.String([]byte(key), st.AppendInteger(nil), ms)
		}
		file := snapshotOf(states)
		all, _, err := byLibrary(file)
		ours, err2 := readAll(file)
		slices.Sort(want)
		if !sameSeen(all, want) || err != nil {
			t.Errorf("the library reads %q, %v, and it is %q", all, err, want)
		}
		if !sameSeen(ours, want) || err2 != nil {
			t.Errorf("we read %q, %v, and it is %q", ours, err2, want)
		}
	})
}

// sameSeen compares without the order.
func sameSeen(a, b seen) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// snapshotOf is a snapshot of these.
func snapshotOf(states map[string]store.Value) []byte {
	var file bytes.Buffer
	w := rdb.NewWriter(&file, time.Now().UnixNano(), int64(len(states)), "1")
	for key, st := range states {
		w.Add([]byte(key), st)
		if len(key)%3 == 0 {
			_ = w.Flush()
		}
	}
	_ = w.Finish(time.Now().UnixNano())
	return file.Bytes()
}

// All types that the library writes are read, and their ends are found.
func TestTheLibraryWrites(t *testing.T) {
	long := strings.Repeat("long ", 1000)
	words := func(n int, text string) (all [][]byte) {
		for i := range n {
			all = append(all, fmt.Append(nil, text, i))
		}
		return all
	}
	hash := func(n int, text string) map[string][]byte {
		all := map[string][]byte{}
		for i := range n {
			all[fmt.Sprint("field ", i)] = fmt.Append(nil, text, i)
		}
		return all
	}
	zset := func(n int, text string) (all []*model.ZSetEntry) {
		for i := range n {
			all = append(all, &model.ZSetEntry{Member: fmt.Sprint(text, i), Score: float64(i) / 3})
		}
		return all
	}
	for name, compress := range map[string]bool{"plain": false, "compressed": true} {
		t.Run(name, func(t *testing.T) {
			var file bytes.Buffer
			e := encoder.NewEncoder(&file)
			if compress {
				e.EnableCompress()
			}
			ttl := encoder.WithTTL(4_000_000_000_000)
			do := func(errs ...error) {
				t.Helper()
				for _, err := range errs {
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			do(e.WriteHeader(), e.WriteAux("redis-ver", "4.0.6"), e.WriteAux("ctime", "1500000000"), e.WriteAux(long, long),
				e.WriteDBHeader(0, 20, 5))
			do(e.WriteStringObject("limit", []byte("4000000000000000000"), ttl), e.WriteStringObject("5", []byte("5")),
				e.WriteStringObject(long, []byte("300")),
				e.WriteStringObject("70000", []byte("70000"), ttl), e.WriteStringObject("word", []byte("word"), ttl),
				e.WriteStringObject("long", []byte(long)))
			do(e.WriteListObject("list", words(3, "")), e.WriteListObject("long list", words(2000, "word "), ttl),
				e.WriteListObject("list of long words", words(3, long)))
			do(e.WriteSetObject("16 bits", words(3, "")), e.WriteSetObject("32 bits", words(3, "7000")),
				e.WriteSetObject("64 bits", words(3, "70000000000")), e.WriteSetObject("set", words(300, "word "), ttl))
			do(e.WriteHashMapObject("hash", hash(3, "")), e.WriteHashMapObject("large hash", hash(2000, "word ")),
				e.WriteHashMapObject("hash of long words", hash(3, long), ttl))
			do(e.WriteHashMapObjectEx("hash with expiries", hash(3, ""), map[string]int64{"field 0": 4_000_000_000_000,
				"field 1": 4_000_000_000_001, "field 2": 4_000_000_000_002}))
			do(e.WriteZSetObject("zset", zset(3, "")), e.WriteZSetObject("large zset", zset(2000, "word "), ttl))
			do(e.WriteStringObject("last", []byte("18446744073709551615")), e.WriteDBHeader(3, 1, 0),
				e.WriteStringObject("elsewhere", []byte("5"), ttl), e.WriteEnd())

			all, err := readAll(file.Bytes())
			want := seen{
				"limit=4000000000000000000@4000000000000", "5=5", long + "=300", "70000=70000@4000000000000",
				"word=word@4000000000000", "long=" + long,
				"list:list", "long list:list", "list of long words:list", "16 bits:set", "32 bits:set", "64 bits:set", "set:set",
				"hash:hash", "large hash:hash", "hash of long words:hash", "hash with expiries:hash", "zset:zset", "large zset:zset",
				"last=18446744073709551615", "elsewhere:database 3",
			}
			if err != nil || !slices.Equal(all, want) {
				t.Errorf("%.3000q, %v", all, err)
			}
		})
	}
}

// The library agrees about the files of testdata, and finds in them the expected codings.
func TestRedisFilesByTheLibrary(t *testing.T) {
	small := []string{"hash listpack", "list quicklist2", "set intset", "set set", "stream listpack", "zset listpack"}
	large := []string{"hash hash", "list quicklist2", "set set", "stream listpack", "zset zset2"}
	for name, want := range map[string][]string{"packed.rdb": small, "lru.rdb": small, "lfu.rdb": small, "large.rdb": large,
		"compressed.rdb": large, "unchecked.rdb": nil} {
		file, err := os.ReadFile(rdbFiles + name)
		if err != nil {
			t.Fatal(err)
		}
		ours, err := readAll(file)
		all, codings, err2 := byLibrary(file)
		if err != nil || err2 != nil || !slices.Equal(ours, all) {
			t.Errorf("%s: we read %q, %v, the library %q, %v", name, ours, err, all, err2)
		}
		if got := slices.Sorted(maps.Keys(codings)); !slices.Equal(got, want) {
			t.Errorf("%s has %q, want %q", name, got, want)
		}
	}
	for name, parts := range map[string][]string{
		"strings.rdb":    {"\xf5\x40", "\xf5\xc3", "\xfe\x00", "\xfe\x03", "\xfe\x0f"}, // functions, and some that are compressed; databases
		"lru.rdb":        {"\xf8\x00\x00\x07limit-a"},                                  // an idle time
		"lfu.rdb":        {"\xf9\x05\x00\x07limit-a"},                                  // a frequency
		"large.rdb":      {"\x12\x04list\x05\x02", "\x01\x41\x18tenant"},               // a node of many words, and one of a long one
		"compressed.rdb": {"\x12\x04list\x05\x02", "\x01\xc3"},
	} {
		file, err := os.ReadFile(rdbFiles + name)
		for _, part := range parts {
			if err != nil || !bytes.Contains(file, []byte(part)) {
				t.Errorf("%s, %v: there is no %q", name, err, part)
			}
		}
	}
}

// The library contains example files of Redis 2.0 to 7.4. Both read the same in them.
func TestTheLibrarysFiles(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/hdt3213/rdb").Output()
	if err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "cases", "*.rdb"))
	if err != nil || len(names) < 30 {
		t.Fatal(names, err)
	}
	codings := map[string]int{}
	for _, name := range names {
		file, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		ours, err := readAll(file)
		theirs, c, err2 := byLibrary(file)
		maps.Copy(codings, c)
		if err != nil || err2 != nil || !slices.Equal(ours, theirs) {
			t.Errorf("%s: we read %.300q, %v, the library %.300q, %v", filepath.Base(name), ours, err, theirs, err2)
		}
	}
	t.Log(slices.Sorted(maps.Keys(codings)))
}

// TestTheLibrarysLimits shows why the server does not use the library.
func TestTheLibrarysLimits(t *testing.T) {
	var file bytes.Buffer
	e := encoder.NewEncoder(&file)
	for _, err := range []error{e.WriteHeader(), e.WriteAux("name", "value"), e.WriteDBHeader(0, 2, 0),
		e.WriteStringObject("a", []byte("5")), e.WriteStringObject("b", []byte("6")), e.WriteEnd()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	whole := file.Bytes()
	if !bytes.HasPrefix(whole, []byte("REDIS0011")) {
		t.Errorf("it writes %q", whole[:9])
	}
	wrong := bytes.Replace(whole, []byte("\x01b\xc0\x06"), []byte("\x01b\xc0\x07"), 1)
	if all, _, err := byLibrary(wrong); err != nil || !slices.Equal(all, seen{"a=5", "b=7"}) {
		t.Errorf("a wrong byte: it now reads %q, %v", all, err)
	}
	if all, err := readAll(wrong); err == nil {
		t.Errorf("a wrong byte: we read %q", all)
	}
	cut := whole[:bytes.Index(whole, []byte("value"))+2]
	if all, _, err := byLibrary(cut); err != nil || all != nil {
		t.Errorf("cut in an auxiliary field: it now reads %q, %v", all, err)
	}
	if all, err := readAll(cut); err == nil {
		t.Errorf("cut in an auxiliary field: we read %q", all)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := byLibrary([]byte("REDIS0009\x00\x80\x04\x00\x00\x00")) // a key of 64 MB
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; err == nil || used < 64<<20 {
		t.Errorf("a length that the file does not have: it now takes %d bytes, %v", used, err)
	}
	functions, err := os.ReadFile(rdbFiles + "strings.rdb")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := byLibrary(functions); err == nil {
		t.Error("it now reads functions")
	}
	t.Run("version", func(t *testing.T) {
		celldtest.Need(t, "redis-server")
		if out, err := exec.Command("redis-server", "--version").Output(); err != nil {
			t.Fatal(err)
		} else if !bytes.Contains(out, []byte("v=7.0.")) {
			celldtest.Missing(t, "this is about redis-server 7.0, and here is %s", out)
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "dump.rdb"), whole, 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "redis-server", "--port", "0", "--unixsocket", filepath.Join(dir, "socket"), "--dir", dir,
			"--save", "")
		if out, err := cmd.CombinedOutput(); err == nil || !bytes.Contains(out, []byte("Can't handle RDB format version 11")) {
			t.Errorf("redis-server: %v, %s", err, out)
		}
	})
}
