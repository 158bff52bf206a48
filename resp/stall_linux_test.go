//go:build all

package resp

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"celld/cell/lease"
	"celld/internal/celldtest"
	"celld/resp/acl"
	"celld/resp/clock"
	"celld/resp/command"
	"celld/resp/command/spec"
	"celld/resp/glob"
	"celld/resp/script"
	"celld/resp/session/sessiontest"
	"celld/resp/transport"
	"celld/store/memory"
)

// Nothing that a client asks keeps an event loop for more than its slice and one step. The tests of that count the CPU time of the thread
// that serves, so what others do on the machine does not count.

// stallMost is a slice, a step, and 2 ms for a slow machine. The collector of garbage may have its share of this thread, too, so the best
// of some attempts counts. With six of them, one run of ten failed on a machine whose other guests kept it busy: their time counts, too.
const (
	stallMost     = 8 * time.Millisecond
	mixMost       = 5*time.Millisecond + stallMost // a slice, and then a call that takes as long as one alone may
	stallAttempts = 30
)

const (
	stallKeys    = 300_000
	stallLeases  = lease.Max - 10
	stallClients = 10_000
)

// stallWorld is a server on the real clock that has as much of everything as there may be, though fewer keys.
type stallWorld struct {
	*world
	p *peer
	// Of what CL.TAKE has answered: a lease in the middle of each key.
	conc, held string
	faulty     int // scripts
}

func newStallWorld(t *testing.T) *stallWorld {
	cfg, dir := sessiontest.Settings(t), t.TempDir()
	celldtest.WriteFile(t, "policy1 10/1m # with a comment\n", dir, "policies")
	for name, value := range map[string]string{
		"max-keys": "10000000", "maxclients": "20000", "maxmemory": "8gb", "proto-max-bulk-len": "64mb", "dir": dir,
		"policies": dir + "/policies",
	} {
		if err := cfg.Setting(name).Value.Set(value); err != nil {
			t.Fatal(name, err)
		}
	}
	clock := clock.New()
	keys := memory.New(memory.Options{MaxKeys: cfg.MaxKeys.Get(), MaxBytes: cfg.MaxMemory.Get(), Now: clock.NowNS})
	w := &stallWorld{world: &world{t: t}}
	w.Server = NewServer(Options{Config: cfg, Store: keys, Clock: clock.NowNS, ReadClocks: clock.Read, Log: slog.New(slog.DiscardHandler),
		Version: "test", Scripts: sessiontest.Scripts})
	t.Cleanup(w.sessions.Persist.Stop) // a snapshot may still be under way in the folder, which is removed
	tr, err := transport.New(w.sessions.Carried(), transport.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.Stop)
	w.carries.Store(tr)
	w.p = w.connect()
	w.fill(stallKeys, "CL.THROTTLE key:# 15 30 3600")
	w.conc = w.fill(stallLeases, "CL.TAKE conc 65536/1h,algo=conc ID name#")
	w.held = w.fill(stallLeases, "CL.TAKE held 1000000/1h LEASE 3600000 ID name#")
	w.fill(65_536, "CL.POLICY SET policy# 10/1m")
	w.fill(65_536, "CL.RULE ADD DENY rule#")
	w.fill(2_000, "ACL SETUSER user# on >secret ~k:* +@all -flushall")
	w.user("many", acl.MostOfAKind-2, "~other%d:*", "~key:*", "~4711")
	w.user("wild", 100, "~*"+strings.Repeat("?", 1000)+"b%d*", "~key:*")
	for range stallClients {
		w.connect()
	}
	return w
}

// user makes one who may use the keys of n patterns, and of some more.
func (w *stallWorld) user(name string, n int, pattern string, more ...string) {
	words := []string{"ACL", "SETUSER", name, "on", ">secret", "+@all"}
	for i := range n {
		words = append(words, fmt.Sprintf(pattern, i))
	}
	w.p.do(append(words, more...)...)
}

// fill sends a call n times, with its number in place of #. It returns the lease of the call in the middle.
func (w *stallWorld) fill(n int, call string) (lease string) {
	w.t.Helper()
	for i := range n {
		raw := sessiontest.Frame(strings.Fields(strings.ReplaceAll(call, "#", fmt.Sprint(i)))...)
		for part := []byte(raw); w.p.Serve(part); part = nil { //nolint:revive // it does all
		}
		reply := w.p.tr.Take()
		if reply[0] == '-' {
			w.t.Fatalf("%s: %s", call, reply)
		}
		if i == n/2 {
			words := strings.Split(strings.TrimSuffix(reply, "\r\n"), "\r\n:")
			lease = words[len(words)-1]
		}
	}
	return lease
}

// slowCode is a script that takes as long to compile as any: 100 to 250 ms. The compiler searches all constants for each.
var slowCode = func() string {
	var code strings.Builder
	for i := range 1900 {
		fmt.Fprintf(&code, "x=%d;", 1000+i)
	}
	return code.String() + strings.Repeat("x=2899;", (script.MaxScript-code.Len())/7)
}()

func threadNS() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}

// longest serves data, as much at a time as a loop reads. It returns the longest time for which a turn has kept its thread, and what the
// last turn that replied has replied: all of it may be more than a GB.
func (p *peer) longest(data string) (most time.Duration, last string) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for part := range slices.Chunk([]byte(data), 64<<10) {
		for more := true; more; part = nil {
			before := threadNS()
			more = p.serve(part)
			most = max(most, time.Duration(threadNS()-before))
			last = cmp.Or(p.tr.Take(), last)
			if !more && p.tr.HasMore() {
				runtime.Gosched() // a goroutine wakes it
				more = true
			}
		}
	}
	return most, last
}

// stalls are calls of each command at the sizes of a stallWorld, which are repeated until there are some 300 in a pipeline. A call in
// brackets comes once before them and is not timed. A command that does not stand here is one that keeps its loop by what it is.
var stalls = map[string][]string{
	"cl.throttle":    {"CL.THROTTLE key:1 15 30 60", "[AUTH wild secret] CL.THROTTLE LONGKEY 15 30 60"},
	"cl.take":        {"CL.TAKE conc 65536/1h,algo=conc ID name7", "CL.TAKE conc 65536/1h,algo=conc COST 65536", "CL.TAKE held 1000000/1h LEASE 60000 ID name7", "CL.TAKE held 1000000/1h", "CL.TAKE conc 65536/1h,algo=conc PEEK"},
	"cl.mtake":       {"CL.MTAKE 2 held 1000000/1h key 5/1h LEASE 60000 ID name7"},
	"cl.explain":     {"CL.EXPLAIN conc 65536/1h,algo=conc COST 65536", "CL.EXPLAIN held 1000000/1h"},
	"cl.give":        {"CL.GIVE conc 65536/1h,algo=conc 1", "[HSET tmp conc/1h CONCTEXT] CL.GIVE tmp 65536/1h,algo=conc 65000"},
	"cl.renew":       {"CL.RENEW conc CONC 3600000", "CL.RENEW held HELD 3600000", "CL.RENEW conc 7 100"},
	"cl.release":     {"CL.RELEASE held 7", "CL.RELEASE conc CONC"},
	"cl.settle":      {"CL.SETTLE held 7 3", "CL.SETTLE held HELD 3"},
	"cl.reset":       {"CL.RESET MANY", "[HSET tmp conc/1h CONCTEXT] CL.RESET tmp"},
	"cl.show":        {"CL.SHOW conc", "CL.SHOW held", "CL.SHOW key:1"},
	"cl.top":         {"CL.TOP 100"},
	"cl.stats":       {"CL.STATS"},
	"cl.policy|set":  {"CL.POLICY SET policy1 20/1m"},
	"cl.policy|get":  {"CL.POLICY GET policy1"},
	"cl.policy|del":  {"CL.POLICY DEL policy3"},
	"cl.policy|list": {"CL.POLICY LIST", "CL.POLICY LIST LONG", "CL.POLICY LIST WILD"},
	"cl.policy|ttl":  {"CL.POLICY TTL policy1"},
	"cl.policy|save": {"CL.POLICY SAVE"},
	"cl.rule|add":    {"CL.RULE ADD DENY rule7"},
	"cl.rule|del":    {"CL.RULE DEL DENY rule8"},
	"cl.rule|list":   {"CL.RULE LIST", "CL.RULE LIST LONG"},

	"ping":                {"PING", "PING ARGS"},
	"echo":                {"ECHO BIG"},
	"quit":                {"QUIT"},
	"reset":               {"RESET"},
	"select":              {"SELECT 0"},
	"auth":                {"AUTH user2 secret"},
	"hello":               {"HELLO 2"},
	"client|id":           {"CLIENT ID"},
	"client|info":         {"CLIENT INFO"},
	"client|list":         {"CLIENT LIST", "CLIENT LIST ID ARGS"},
	"client|kill":         {"CLIENT KILL ID 4711", "CLIENT KILL USER user9"},
	"client|getname":      {"CLIENT GETNAME"},
	"client|setname":      {"CLIENT SETNAME me"},
	"client|setinfo":      {"CLIENT SETINFO lib-name me"},
	"client|unblock":      {"CLIENT UNBLOCK 7"},
	"client|no-evict":     {"CLIENT NO-EVICT off"},
	"client|no-touch":     {"CLIENT NO-TOUCH off"},
	"client|reply":        {"CLIENT REPLY ON"},
	"client|tracking":     {"CLIENT TRACKING off"},
	"client|caching":      {"CLIENT CACHING yes"},
	"client|getredir":     {"CLIENT GETREDIR"},
	"client|trackinginfo": {"CLIENT TRACKINGINFO"},

	"acl|cat":           {"ACL CAT"},
	"acl|deluser":       {"ACL DELUSER user3"},
	"acl|dryrun":        {"ACL DRYRUN user1 get k:1", "ACL DRYRUN default del ARGS", "ACL DRYRUN many del MANY"},
	"acl|genpass":       {"ACL GENPASS"},
	"acl|getuser":       {"ACL GETUSER user1"},
	"acl|list":          {"ACL LIST"},
	"acl|load":          {"ACL LOAD"},
	"acl|log":           {"ACL LOG"},
	"acl|save":          {"ACL SAVE"},
	"acl|setuser":       {"ACL SETUSER user1 +get"},
	"acl|users":         {"ACL USERS"},
	"acl|whoami":        {"ACL WHOAMI"},
	"command":           {"COMMAND"},
	"command|count":     {"COMMAND COUNT"},
	"command|docs":      {"COMMAND DOCS", "COMMAND DOCS NAMES"},
	"command|getkeys":   {"COMMAND GETKEYS DEL a b", "COMMAND GETKEYS DEL ARGS"},
	"command|info":      {"COMMAND INFO", "COMMAND INFO NAMES"},
	"command|list":      {"COMMAND LIST", "COMMAND LIST FILTERBY PATTERN LONG"},
	"info":              {"INFO everything"},
	"config|get":        {"CONFIG GET *", "CONFIG GET LONG", "CONFIG GET WILDS"},
	"config|resetstat":  {"CONFIG RESETSTAT"},
	"config|rewrite":    {"CONFIG REWRITE"},
	"config|set":        {"CONFIG SET timeout 0"},
	"time":              {"TIME"},
	"dbsize":            {"DBSIZE"},
	"memory|purge":      {"MEMORY PURGE"},
	"memory|stats":      {"MEMORY STATS"},
	"memory|usage":      {"MEMORY USAGE conc", "MEMORY USAGE held"},
	"module|list":       {"MODULE LIST"},
	"monitor":           {"MONITOR"},
	"latency|histogram": {"LATENCY HISTOGRAM", "LATENCY HISTOGRAM NAMES"},
	"latency|history":   {"LATENCY HISTORY command"},
	"latency|latest":    {"LATENCY LATEST"},
	"latency|reset":     {"LATENCY RESET"},
	"slowlog|get":       {"SLOWLOG GET -1"},
	"slowlog|len":       {"SLOWLOG LEN"},
	"slowlog|reset":     {"SLOWLOG RESET"},
	"role":              {"ROLE"},
	"bgsave":            {"BGSAVE"},
	"bgrewriteaof":      {"BGREWRITEAOF"},
	"lastsave":          {"LASTSAVE"},

	"get":             {"GET key:1", "[AUTH wild secret] GET LONGKEY"},
	"strlen":          {"STRLEN key:1"},
	"getrange":        {"GETRANGE key:1 0 9"},
	"set":             {"SET key:1 1999999999999999999", "[HSET tmp2 conc/1h CONCTEXT] SET tmp2 1999999999999999999 ALSO DEL tmp2"},
	"setnx":           {"SETNX key:1 1999999999999999999"},
	"getset":          {"GETSET key:1 1999999999999999999"},
	"getdel":          {"GETDEL key:2"},
	"getex":           {"GETEX key:1 EX 100"},
	"setex":           {"SETEX key:1 100 1999999999999999999"},
	"psetex":          {"PSETEX key:1 100000 1999999999999999999"},
	"incr":            {"[SET count 5] INCR count", "INCR conc"},
	"decr":            {"[SET count 5] DECR count"},
	"incrby":          {"[SET count 5] INCRBY count 7"},
	"decrby":          {"[SET count 5] DECRBY count 7"},
	"increx":          {"INCREX count UBOUND 5 SATURATE EX 100", "INCREX conc"},
	"hgetall":         {"HGETALL conc", "HGETALL held"},
	"hget":            {"HGET conc conc/1h", "HGET held nothing"},
	"hscan":           {"HSCAN conc 0", "HSCAN conc 0 MATCH LONG"},
	"hset":            {"HSET tmp conc/1h CONCTEXT"},
	"hlen":            {"HLEN conc", "HLEN held"},
	"exists":          {"EXISTS MANY", "EXISTS ARGS", "[AUTH many secret] EXISTS MANY", "[AUTH many secret] MULTI ALSO EXISTS MANY ALSO DISCARD"},
	"type":            {"TYPE conc"},
	"del":             {"DEL MANY", "[HSET tmp conc/1h CONCTEXT] DEL tmp"},
	"unlink":          {"UNLINK MANY"},
	"touch":           {"TOUCH MANY"},
	"watch":           {"WATCH MANY"},
	"unwatch":         {"UNWATCH"},
	"rename":          {"RENAME conc tmp ALSO RENAME tmp conc"},
	"renamenx":        {"RENAMENX conc none ALSO RENAMENX none conc"},
	"copy":            {"COPY conc tmp REPLACE"},
	"randomkey":       {"RANDOMKEY"},
	"keys":            {"KEYS nomatch*", "KEYS *", "KEYS LONG", "KEYS WILD"},
	"scan":            {"SCAN 0 COUNT 1000000", "SCAN 0 COUNT 1000000 MATCH LONG", "SCAN 0 COUNT 1000000 MATCH WILD"},
	"object|encoding": {"OBJECT ENCODING conc"},
	"object|freq":     {"OBJECT FREQ conc"},
	"object|idletime": {"OBJECT IDLETIME conc"},
	"object|refcount": {"OBJECT REFCOUNT conc"},
	"ttl":             {"TTL conc"},
	"pttl":            {"PTTL held"},
	"expiretime":      {"EXPIRETIME conc"},
	"pexpiretime":     {"PEXPIRETIME held"},
	"expire":          {"EXPIRE conc 3000"},
	"pexpire":         {"PEXPIRE held 3000000"},
	"expireat":        {"EXPIREAT conc 9999999999"},
	"pexpireat":       {"PEXPIREAT held 9999999999000"},
	"persist":         {"PERSIST conc"},
	"eval":            {"EVAL return{KEYS[1],ARGV[1]} 1 k a", "[SCRIPT FLUSH] EVAL CODE 0", "EVAL FAULTY 0"},
	"eval_ro":         {"EVAL_RO return{KEYS[1],ARGV[1]} 1 k a"},
	"evalsha":         {"EVALSHA ffffffffffffffffffffffffffffffffffffffff 0"},
	"evalsha_ro":      {"EVALSHA_RO ffffffffffffffffffffffffffffffffffffffff 0"},
	"script|exists":   {"SCRIPT EXISTS a b"},
	"script|flush":    {"SCRIPT FLUSH"},
	"script|kill":     {"SCRIPT KILL"},
	"script|load":     {"SCRIPT LOAD return"},
	"multi":           {"MULTI ALSO CL.RENEW conc CONC 3600000 ALSO HLEN conc ALSO EXEC", "[SCRIPT FLUSH] MULTI ALSO EVAL CODE 0 ALSO EXEC", "MULTI ALSO EVAL FAULTY 0 ALSO EXEC"},
	"exec":            {"EXEC"},
	"discard":         {"MULTI ALSO PING ALSO DISCARD"},
	"flushall":        {"FLUSHALL SOON"},
	"flushdb":         {"FLUSHDB SOON"}, // and see below
}

// stallByNature are the commands that stop all others, or end the server.
var stallByNature = []string{"save", "shutdown"}

// frames are a call, and what comes before it.
func (w *stallWorld) frames(call string) (before, frames string) {
	if rest, found := strings.CutPrefix(call, "["); found {
		first, then, _ := strings.Cut(rest, "] ")
		_, before = w.frames(first)
		call = then
	}
	for part := range strings.SplitSeq(call, " ALSO ") {
		var words []string
		for _, word := range strings.Fields(part) {
			switch word {
			case "MANY":
				for i := range 50_000 {
					words = append(words, fmt.Sprintf("key:%d", stallKeys-i))
				}
			case "LONG":
				words = append(words, strings.Repeat("*aa", 20_000))
			case "WILD":
				words = append(words, strings.Repeat("*a?", glob.MaxWild/3))
			case "WILDS":
				words = append(words, slices.Repeat([]string{strings.Repeat("*a?", glob.MaxWild/3)}, spec.ShortList)...)
			case "NAMES":
				words = append(words, slices.Repeat([]string{"get"}, spec.ShortList)...)
			case "ARGS":
				words = append(words, slices.Repeat([]string{"4711"}, 1<<20-10)...)
			case "LONGKEY":
				words = append(words, strings.Repeat("a", 64<<10))
			case "CODE":
				words = append(words, slowCode)
			case "FAULTY":
				w.faulty++
				words = append(words, fmt.Sprint("x=", w.faulty, slowCode[10:len(slowCode)-4], " end"))
			case "BIG":
				words = append(words, strings.Repeat("x", 100_000))
			case "CONC":
				words = append(words, w.conc)
			case "HELD":
				words = append(words, w.held)
			case "CONCTEXT":
				p := w.connect()
				_, text := p.longest(sessiontest.Frame("HGET", "conc", "conc/1h"))
				words = append(words, strings.TrimSuffix(text[strings.Index(text, "\n")+1:], "\r\n"))
				p.Closed()
			default:
				words = append(words, word)
			}
		}
		frames += sessiontest.Frame(words...)
	}
	return before, frames
}

// try sends a call once, and then as often as takes some 50 ms. It fails the test if a turn takes too long in each of the attempts.
func (w *stallWorld) try(t *testing.T, call string) {
	before, frames := w.frames(call)
	var most time.Duration
	for range stallAttempts {
		p := w.connect()
		if _, got := p.longest(before); strings.HasPrefix(got, "-") {
			t.Errorf("before %s: %s", call, got)
		}
		start := time.Now()
		first, reply := p.longest(frames)
		n := min(300, int(20*time.Millisecond/(1+time.Since(start))))
		most, _ = p.longest(strings.Repeat(frames, n))
		most = max(most, first)
		if reply == "" {
			t.Errorf("%s: no reply", call)
		}
		p.Closed()
		if most <= stallMost {
			return
		}
	}
	t.Errorf("%s: %v in one turn", call, most)
}

func TestNoCommandKeepsItsLoop(t *testing.T) {
	w := newStallWorld(t)
	undriven := slices.Collect(maps.Keys(stalls))
	w.sessions.Commands.Each(func(row *command.Row) {
		name := row.FullName()
		if len(row.Sub) > 0 && row.Run == nil || row.Name == "help" || slices.Contains(stallByNature, name) {
			return
		}
		if len(stalls[name]) == 0 {
			t.Errorf("nobody looks how long %s keeps its loop: add it to stalls", name)
		}
		undriven = slices.DeleteFunc(undriven, func(of string) bool { return of == name })
		for _, call := range stalls[name] {
			w.try(t, call)
		}
	})
	if len(undriven) > 0 {
		t.Errorf("there is no command %v", undriven)
	}
	w.mix(t)
	w.fill(stallKeys, "CL.THROTTLE key:# 15 30 3600")
	w.try(t, "CONFIG SET max-keys 1000")
	w.try(t, "FLUSHALL")
}

// mix sends pipelines of everything, one call after the other and in transactions of a hundred.
func (w *stallWorld) mix(t *testing.T) {
	var calls []string
	for name, some := range stalls {
		if slices.Contains([]string{"quit", "reset", "monitor", "multi", "discard", "exec", "client|kill", "auth", "keys", "cl.stats"},
			name) || strings.HasPrefix(name, "flush") {
			continue
		}
		for _, call := range some {
			if !strings.Contains(call, "[") && !strings.Contains(call, "MANY") && !strings.Contains(call, "TEXT") &&
				!strings.Contains(call, "LONG") && !strings.Contains(call, "WILD") && !strings.Contains(call, "NAMES") &&
				!strings.Contains(call, "ARGS") && !strings.Contains(call, "FAULTY") && !strings.HasPrefix(call, "H") {
				_, frames := w.frames(call)
				calls = append(calls, frames)
			}
		}
	}
	slices.Sort(calls)
	// Files are written meanwhile, and lists sorted, so steps take longer than alone: SCAN 2 to 8 ms. With stallMost as the bound, 30
	// attempts were too few at times: 8.1 to 15 ms.
	var most time.Duration
	for seed := range uint64(stallAttempts) {
		random := rand.New(rand.NewPCG(seed, 7))
		var mix strings.Builder
		for range 1000 {
			mix.WriteString(calls[random.IntN(len(calls))])
		}
		p := w.connect()
		if most, _ = p.longest(mix.String()); most <= mixMost {
			return
		}
	}
	t.Errorf("a mix: %v in one turn", most)
}
