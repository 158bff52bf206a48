package keys

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"celld/cell"
	"celld/internal/celldtest"
	"celld/resp/command"
	"celld/resp/command/argument"
	"celld/resp/command/calltest"
	"celld/resp/glob"
	"celld/store"
	"celld/store/memory"
)

var (
	bulk  = celldtest.BulkOf
	array = celldtest.BulksOf
)

// take uses some of the limits of a key.
func take(t *testing.T, h *calltest.Host, key string, limits ...string) {
	t.Helper()
	calls := make([]store.Call, len(limits))
	for i, text := range limits {
		limit, err := cell.ParseLimit(text)
		if err != nil {
			t.Fatal(err)
		}
		calls[i] = store.Call{Key: []byte(key), Limit: &limit}
	}
	if _, err := h.Store.Take(calls, store.TakeOptions{Cost: 1}, h.Access()); err != nil {
		t.Fatal(err)
	}
}

func TestStrings(t *testing.T) {
	h := host(memory.Options{})
	take(t, h, "h", "5/1h")
	wants(t, h, "GET k", "$-1\r\n", "STRLEN k", ":0\r\n", "SET k "+tat, "+OK\r\n", "GET k", bulk(tat), "STRLEN k", ":19\r\n",
		"GET h", fails(command.ErrWrongType), "STRLEN h", fails(command.ErrWrongType), "GETRANGE h 0 1", fails(command.ErrWrongType),
		"GETRANGE k x 1", fails(argument.ErrNotInteger), "GETRANGE k 1 x", fails(argument.ErrNotInteger),
		"SETNX k 9000000000000000001", ":0\r\n", "GET k", bulk(tat), "SET k 9000000000000000002 NX", "$-1\r\n", "SET no 5 XX", "$-1\r\n",
		"SET no 5 XX GET", "$-1\r\n", "SET k 9123456780000000000 GET NX", bulk(tat), "SET k 9123456780000000000 XX GET", bulk(tat),
		"SET h 9000000000000000000 GET", fails(command.ErrWrongType), "GETSET h "+tat, fails(command.ErrWrongType),
		"GETEX h", fails(command.ErrWrongType), "GETDEL h", fails(command.ErrWrongType), "TYPE h", "+hash\r\n",
		"GETEX no", "$-1\r\n", "GETDEL no", "$-1\r\n", "SETEX s 100 "+tat, "+OK\r\n", "TTL s", ":100\r\n", "PSETEX s 1500 "+tat, "+OK\r\n",
		"PTTL s", ":1500\r\n", "SET h "+tat, "+OK\r\n", "GET h", bulk(tat), "SET a "+tat+" NX EX 5 KEEPTTL", fails(argument.ErrSyntax),
		"SETEX s x "+tat, fails(argument.ErrNotInteger), "SETEX s -5 "+tat, fails(argument.ErrInvalidExpire, "setex"),
		"SET k "+tat+" XX NX", fails(argument.ErrSyntax))
	const text = "9123456780000000000"
	for call, want := range map[string]string{
		"0 0": "9", "0 3": "9123", "1 2": "12", "5 5": "5", "18 18": "0", "0 18": text, "0 99": text, "19 20": "", "5 4": "",
		"-19 -1": text, "-99 -1": text, "-99 1": "91", "0 -19": "9", "0 -20": "9", "0 -99": "9", "-3 -5": "", "-20 -20": "9",
		"-5 -5": "0", "-99 -100": "", "3 -15": "34", "1 -19": "", "2 -99": "",
	} {
		wants(t, h, "GETRANGE k "+call, bulk(want))
	}
	wants(t, h, "GETRANGE none 0 -1", bulk(""))
}

// GETEX and SET set an expiry by each of the units.
func TestExpiryOptions(t *testing.T) {
	h := host(memory.Options{})
	for _, option := range []string{"EX 30", "PX 30000", "EXAT 1767225630", "PXAT 1767225630000"} {
		wants(t, h, "SET k "+tat+" "+option, "+OK\r\n", "PTTL k", ":30000\r\n", "SET k "+tat, "+OK\r\n", "TTL k", ":-1\r\n",
			"GETEX k "+option, bulk(tat), "PTTL k", ":30000\r\n", "GETEX k", bulk(tat), "PTTL k", ":30000\r\n",
			"GETEX k PERSIST", bulk(tat), "TTL k", ":-1\r\n", "GETEX k PERSIST", bulk(tat), "TTL k", ":-1\r\n")
	}
	wants(t, h, "GETEX k EX 0", fails(argument.ErrInvalidExpire, "getex"), "GETEX k EX x", fails(argument.ErrNotInteger),
		"GETEX no EX 0", "$-1\r\n", "GETEX no EX x", "$-1\r\n", "GETEX k PERSIST EX 5", fails(argument.ErrSyntax), "TTL k", ":-1\r\n",
		"SET k "+tat+" EX 100", "+OK\r\n", "GETEX k EX -1", fails(argument.ErrInvalidExpire, "getex"), "TTL k", ":100\r\n",
		"GETDEL k", bulk(tat), "GET k", "$-1\r\n", "SET k "+tat+" EX 1", "+OK\r\n", "TTL k", ":1\r\n",
		"SET new "+tat+" KEEPTTL", "+OK\r\n", "TTL new", ":-1\r\n", "SET k "+tat+" KEEPTTL", "+OK\r\n", "PTTL k", ":1000\r\n")
}

// An expiry that no instant can be is an error, and one beyond the year 2262 is that year's.
func TestExpire(t *testing.T) {
	h := host(memory.Options{})
	last := fmt.Sprintf(":%d\r\n", int64(9223372036854))
	const now, most = 1767225600_000, 9223372036854775807
	set := func() { wants(t, h, "SET k "+tat, "+OK\r\n") }
	set()
	for _, call := range []string{
		"EXPIRE k 9223372036854776", "EXPIRE k -9223372036854776", fmt.Sprint("EXPIRE k ", int64(most/1000)), "EXPIREAT k 9223372036854776",
		"EXPIREAT k -9223372036854776", fmt.Sprint("PEXPIRE k ", int64(most-now+1)),
	} {
		wants(t, h, call, fails(argument.ErrInvalidExpire, strings.ToLower(strings.Fields(call)[0])))
	}
	for _, call := range []string{
		"EXPIREAT k 9223372036854775", "PEXPIREAT k 9223372036854775807", fmt.Sprint("PEXPIRE k ", int64(most-now)),
	} {
		wants(t, h, call, ":1\r\n", "PEXPIRETIME k", last)
	}
	for _, call := range []string{
		"EXPIREAT k -9223372036854775", "PEXPIREAT k -9223372036854775808", "EXPIREAT k 1767225600", "PEXPIRE k 0", "PEXPIREAT k 0",
	} {
		set()
		wants(t, h, call, ":1\r\n", "EXISTS k", ":0\r\n")
	}
	set()
	wants(t, h, "EXPIRE k x", fails(argument.ErrNotInteger), "PEXPIRE k 1499", ":1\r\n", "TTL k", ":1\r\n",
		"EXPIRETIME k", ":1767225601\r\n", "PEXPIRE k 1500", ":1\r\n", "TTL k", ":2\r\n", "EXPIRETIME k", ":1767225602\r\n",
		"PTTL k", ":1500\r\n", "PEXPIRE k 1500 GT", ":0\r\n", "PEXPIRE k 1500 LT", ":0\r\n",
		"PEXPIRE k 1501 LT", ":0\r\n", "PEXPIRE k 1499 GT", ":0\r\n", "PEXPIRE k 1501 GT", ":1\r\n", "PEXPIRE k 1500 LT XX", ":1\r\n",
		"PEXPIRE k 1 NX XX", fails(errExpireNX), "PEXPIRE k 1 NX LT", fails(errExpireNX), "PEXPIRE k 1 nx", ":0\r\n",
		"EXPIRETIME no", ":-2\r\n", "PTTL no", ":-2\r\n", "PERSIST no", ":0\r\n", "PERSIST k", ":1\r\n", "EXPIRETIME k", ":-1\r\n",
		"EXPIRE k 5 NX", ":1\r\n", "PTTL k", ":5000\r\n")
	ends := h.NowNS + 100e9 // a limiter's key ends at its TAT
	if err := h.Store.Update([]byte("t"), h.Access(), func(store.Value, bool) (store.Value, bool) {
		return store.Value{TAT: uint64(ends), ExpiryNS: store.AtTAT}, true
	}); err != nil {
		t.Fatal(err)
	}
	wants(t, h, "PTTL t", ":100000\r\n", "EXPIRE t 50 GT", ":0\r\n", "SET t "+tat+" KEEPTTL", "+OK\r\n", "PTTL t", ":100000\r\n")
	h.NowNS += 5000e6 - 1
	wants(t, h, "PTTL k", ":1\r\n", "TTL k", ":0\r\n")
}

func TestGeneric(t *testing.T) {
	h := host(memory.Options{})
	take(t, h, "h", "5/1h")
	wants(t, h, "SET a "+tat, "+OK\r\n", "SET b 9000000000000000001", "+OK\r\n", "EXISTS a a no h", ":3\r\n", "TOUCH a no", ":1\r\n",
		"TYPE no", "+none\r\n", "TYPE a", "+string\r\n", "RENAME no x", fails(errNoSuchKey), "RENAMENX no x", fails(errNoSuchKey),
		"RENAME a c", "+OK\r\n", "EXISTS a", ":0\r\n", "RENAMENX c b", ":0\r\n", "RENAMENX c a", ":1\r\n", "COPY a b", ":0\r\n",
		"GET b", bulk("9000000000000000001"), "COPY a b DB 0 REPLACE", ":1\r\n", "GET b", bulk(tat),
		"COPY no x", ":0\r\n", "COPY a x DB x", fails(argument.ErrNotInteger),
		"COPY a x DB 2147483647", fails(argument.ErrDBIndex), "COPY a x DB -2147483648", fails(argument.ErrDBIndex),
		"COPY a x DB 2147483648", fails(argument.ErrNotBetween, -2147483648, 2147483647),
		"COPY a x DB -2147483649", fails(argument.ErrNotBetween, -2147483648, 2147483647), "COPY a x", ":1\r\n", "UNLINK x x", ":1\r\n",
		"OBJECT ENCODING a", bulk("int"), "OBJECT ENCODING h", bulk("listpack"), "SET big 9223372036854775808", "+OK\r\n",
		"OBJECT ENCODING big", bulk("embstr"), "SET big 9223372036854775807", "+OK\r\n", "OBJECT ENCODING big", bulk("int"),
		"PEXPIRETIME big", ":-1\r\n", "OBJECT ENCODING no", "$-1\r\n", "OBJECT FREQ no", "$-1\r\n", "OBJECT FREQ a", fails(errObjectFreq),
		"OBJECT REFCOUNT a", ":1\r\n", "OBJECT REFCOUNT no", "$-1\r\n", "OBJECT IDLETIME no", "$-1\r\n", "OBJECT IDLETIME a", ":0\r\n")
	h.NowNS += 100e9
	wants(t, h, "TYPE a", "+string\r\n", "TTL a", ":-1\r\n", "OBJECT ENCODING a", bulk("int"), "OBJECT IDLETIME a", ":100\r\n",
		"TOUCH a", ":1\r\n", "OBJECT IDLETIME a", ":0\r\n", "DBSIZE", ":4\r\n", "FLUSHDB async", "+OK\r\n", "DBSIZE", ":0\r\n",
		"SET a "+tat, "+OK\r\n", "RANDOMKEY", bulk("a"), "FLUSHALL", "+OK\r\n", "EXISTS a", ":0\r\n")
}

func TestHashes(t *testing.T) {
	h := host(memory.Options{})
	do := func(want string, words ...string) {
		t.Helper()
		if got := h.Do(words...); got != want {
			t.Errorf("%s: %q, want %q", words, got, want)
		}
	}
	take(t, h, "h", "5/1h", "9/1m")
	wants(t, h, "SET s "+tat, "+OK\r\n", "HLEN h", ":2\r\n", "HLEN no", ":0\r\n", "HGET h no", "$-1\r\n", "HGET no gcra/1h", "$-1\r\n",
		"HGETALL no", "*0\r\n", "HSCAN no 0", "*2\r\n$1\r\n0\r\n*0\r\n", "HSCAN h x", fails(errInvalidCursor),
		"HSCAN h 0 COUNT x", fails(argument.ErrNotInteger), "HSCAN h 0 COUNT 0", fails(argument.ErrSyntax),
		"HSCAN h 0 TYPE string", fails(argument.ErrSyntax), "HSCAN no 0 COUNT x", "*2\r\n$1\r\n0\r\n*0\r\n",
		"HSCAN h 0 MATCH x*", "*2\r\n$1\r\n0\r\n*0\r\n", "HSET h gcra/1h", fails(command.ErrArity, "hset"),
		"HSET h x 1", fails(errHashField, "x"), "HSET h gcra/1h x", fails(errHashField, "gcra/1h"))
	for _, call := range []string{"HGETALL s", "HGET s gcra/1h", "HLEN s", "HSCAN s 0"} {
		if got := h.Do(strings.Fields(call)...); !strings.HasPrefix(got, "-") {
			t.Errorf("%s: %q", call, got)
		}
	}
	field := func(name string) string {
		got := h.Do("HGET", "h", name)
		_, value, _ := strings.Cut(got, "\r\n")
		return strings.TrimSuffix(value, "\r\n")
	}
	hour, minute := field("gcra/1h"), field("gcra/1m")
	if hour == "" || hour == minute {
		t.Errorf("fields %q and %q", hour, minute)
	}
	all := []string{"gcra/1m", minute, "gcra/1h", hour}
	wants(t, h, "HGETALL h", array(all...), "HSCAN h 0 COUNT 1", "*2\r\n$1\r\n0\r\n"+array(all...),
		"HSCAN h 5 MATCH *h", "*2\r\n$1\r\n0\r\n"+array(all[2:]...), "HSCAN h 0 MATCH *m COUNT 5", "*2\r\n$1\r\n0\r\n"+array(all[:2]...))
	do(":2\r\n", append([]string{"HSET", "i"}, all...)...)
	do(array(all...), "HGETALL", "i")
	do(":0\r\n", "HSET", "i", "gcra/1h", hour)
	do(fails(errHashField, "x"), "HSET", "i", "gcra/1h", hour, "x", hour)
	do(fails(argument.ErrNoPolicy, "none"), "HSET", "i", "@none", hour)
	h.RESP3 = true
	wants(t, h, "HGETALL h", "%2\r\n"+array(all...)[len("*4\r\n"):])
	h.Most = len(hour) + len(minute)
	if wants(t, h, "HLEN h", ":2\r\n"); h.Do("HGETALL", "h") == "" {
		t.Error("a hash of just the most that a client may have is refused")
	}
	h.Most--
	wants(t, h, "HGETALL h", "")
}

// offloading notes which calls a goroutine does, and calls the store's work shared.
type offloading struct {
	*calltest.Host
	call          *command.Call
	aside, shared int
}

func (a *offloading) Offload(_ bool, begin func([][]byte) command.Work) {
	a.aside++
	begin(a.call.Args)()(a.call)
}

func (a *offloading) Shared(_ store.Access, do func()) {
	a.shared++
	do()
}

// Large hashes are read and written aside, where that may be.
func TestLargeHashes(t *testing.T) {
	a := &offloading{Host: host(memory.Options{})}
	do := func(words ...string) string {
		a.call = &command.Call{Host: a, NowNS: a.NowNS}
		for _, word := range words {
			a.call.Args = append(a.call.Args, []byte(word))
		}
		a.aside, a.shared = 0, 0
		for _, row := range Rows(Options{}) {
			if strings.EqualFold(row.Name, words[0]) {
				row.Run(a.call)
			}
		}
		return string(a.call.Out)
	}
	var limits []string
	for i := range 100 {
		limits = append(limits, fmt.Sprintf("5/%dm", i+1))
	}
	take(t, a.Host, "h", limits...)
	for _, inside := range []bool{false, true} {
		a.InExec = inside
		if got := do("HGETALL", "h"); !strings.HasPrefix(got, "*200\r\n") || a.aside != 0 || a.shared != 0 {
			t.Errorf("a small hash: %.9q, %d aside, %d shared", got, a.aside, a.shared)
		}
		if got := do("HSET", "h", "x", strings.Repeat("y", asideBytes-len("HSEThx")-1)); !strings.HasPrefix(got, "-") || a.aside != 0 {
			t.Errorf("a small write: %.9q, %d aside", got, a.aside)
		}
		got := do("HSET", "h", "x", strings.Repeat("y", asideBytes-len("HSEThx")))
		if !strings.HasPrefix(got, "-") || a.aside == 1 == inside {
			t.Errorf("a large write: %.9q, %d aside", got, a.aside)
		}
	}
	for range 20_000 {
		a.NowNS += 1e6
		take(t, a.Host, "big", "30000/1h,algo=log")
	}
	if a.bytes("big") < asideBytes {
		t.Fatalf("the hash has only %d bytes", a.bytes("big"))
	}
	a.InExec = true
	want := do("HGETALL", "big")
	if a.aside != 0 || len(want) < 1000 {
		t.Errorf("inside: %.20q, %d aside", want, a.aside)
	}
	a.InExec = false
	if got := do("HGETALL", "big"); got != want || a.aside != 1 || a.shared != 1 {
		t.Errorf("a large hash: %.20q, %d aside, %d shared", got, a.aside, a.shared)
	}
}

func (a *offloading) bytes(key string) int64 {
	n, _ := a.Store.KeyBytes([]byte(key), a.NowNS)
	return n
}

// SCAN goes on from its cursor, and KEYS takes steps, which end where the reply is too long or, in a transaction, the work.
func TestScanOfManyKeys(t *testing.T) {
	h := host(memory.Options{})
	const n = 3000
	for i := range n {
		h.Do("SET", fmt.Sprintf("key:%d", i), tat)
	}
	take(t, h, "hash", "5/1h")
	for _, call := range []string{"KEYS key:*", "KEYS *[0-9]"} {
		if got := h.Do(strings.Fields(call)...); !strings.HasPrefix(got, fmt.Sprintf("*%d\r\n", n)) || strings.Count(got, "key:") != n {
			t.Errorf("%s: %.20q, %d keys", call, got, strings.Count(got, "key:"))
		}
	}
	wants(t, h, "KEYS has?", array("hash"),
		"KEYS none*", "*0\r\n", "KEYS "+strings.Repeat("?", glob.MaxWild+1), fails(argument.ErrPatternLong, glob.MaxWild),
		"SCAN 0 MATCH "+strings.Repeat("?", glob.MaxWild+1), fails(argument.ErrPatternLong, glob.MaxWild),
		"SCAN 0 COUNT x", fails(argument.ErrNotInteger),
		"SCAN 0 TYPE HASH COUNT 10000", "*2\r\n$1\r\n0\r\n"+array("hash"), "SCAN 0 TYPE none COUNT 10000", "*2\r\n$1\r\n0\r\n*0\r\n",
		"SCAN 0 COUNT 10000 TYPE STRING MATCH key:77", "*2\r\n$1\r\n0\r\n"+array("key:77"))
	seen, calls := map[string]bool{}, 0
	for cursor := "0"; cursor != "0" || calls == 0; calls++ {
		lines := strings.Split(h.Do("SCAN", cursor, "COUNT", "100"), "\r\n")
		cursor = lines[2]
		for i := 5; i < len(lines); i += 2 {
			seen[lines[i]] = true
		}
	}
	if len(seen) != n+1 || calls < 20 || calls > 120 {
		t.Errorf("%d keys in %d calls", len(seen), calls)
	}
	h.Most = 16 + len("hash")
	if wants(t, h, "KEYS has*", array("hash")); h.Do("KEYS", "key:*") != "" {
		t.Error("KEYS replies more than a client may have")
	}
	h.Most--
	wants(t, h, "KEYS has*", "")
	h.Most, h.InExec = 0, true
	wants(t, h, "KEYS has*", array("hash"))
	for i := range 200_000 {
		h.Do("SET", fmt.Sprintf("%d", i), tat)
	}
	wants(t, h, "KEYS has*", fails(ErrKeysInside))
	h.InExec = false
	wants(t, h, "KEYS has*", array("hash"))
}

// space is what an engine says.
type space struct {
	asked string
	err   error
	none  bool
}

func (s *space) Scan(_ context.Context, o store.ScanOptions, done func(uint64, []string, error)) {
	s.asked = fmt.Sprintf("%d %s %d %s", o.Cursor, o.Pattern, o.Count, o.Type)
	done(7, []string{"a", "bc"}, s.err)
}

func (s *space) Keys(_ context.Context, pattern string, most int, done func([]string, error)) {
	s.asked = fmt.Sprint(pattern, " ", most)
	done([]string{"a", "bc"}, s.err)
}

func (s *space) Size(_ context.Context, done func(int64, error)) { done(9, s.err) }

func (s *space) RandomKey(_ context.Context, done func(string, bool, error)) {
	done("a", !s.none, s.err)
}

func (s *space) Flush(done func(error)) {
	s.asked = "flush"
	done(s.err)
}

// Where an engine has the keys, commands over all of them ask it.
func TestEngineKeys(t *testing.T) {
	s := &space{}
	o := Options{Space: func() Space { return s }}
	h := calltest.New(memory.Options{}, append(AllRows(o), Rows(o)...)...)
	do := func(call string) (reply string) {
		s.asked = ""
		return h.Do(strings.Fields(call)...)
	}
	want := func(call, reply, asked string) {
		t.Helper()
		if got := do(call); got != reply || s.asked != asked {
			t.Errorf("%s: %q, asked %q; want %q, %q", call, got, s.asked, reply, asked)
		}
	}
	scanned := "*2\r\n$1\r\n7\r\n" + array("a", "bc")
	want("DBSIZE", ":9\r\n", "")
	want("RANDOMKEY", bulk("a"), "")
	want("FLUSHALL", "+OK\r\n", "flush")
	want("FLUSHDB sync", "+OK\r\n", "flush")
	want("FLUSHDB NOW", fails(argument.ErrSyntax), "")
	h.Most = 35
	want("KEYS k*", array("a", "bc"), "k* 35")
	h.Most = 34
	want("KEYS k*", "", "k* 34")
	want("KEYS "+strings.Repeat("?", glob.MaxWild+1), fails(argument.ErrPatternLong, glob.MaxWild), "")
	want("SCAN 5", scanned, "5 * 10 ")
	want("SCAN 5 MATCH x* COUNT 99999 TYPE HASH", scanned, "5 x* 10000 hash")
	want("SCAN 5 COUNT 10000", scanned, "5 * 10000 ")
	want("SCAN x", fails(errInvalidCursor), "")
	s.asked = ""
	if got := h.Do("SCAN", "5", "TYPE", ""); got != "*2\r\n$1\r\n0\r\n*0\r\n" || s.asked != "" {
		t.Errorf("SCAN of no type: %q, asked %q", got, s.asked)
	}
	s.none = true
	want("RANDOMKEY", "$-1\r\n", "")
	s.err = errors.New("gone")
	for _, call := range []string{"DBSIZE", "RANDOMKEY", "FLUSHALL", "KEYS k*", "SCAN 5"} {
		if got := do(call); got != "-ERR gone\r\n" {
			t.Errorf("%s: %q", call, got)
		}
	}
}
