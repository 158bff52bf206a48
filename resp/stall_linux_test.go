package resp

import (
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"celld/cell"
	"celld/store"
)

// Sizes at which no command may keep an event loop.
const (
	stallKeys     = 1_000_000
	stallLeases   = cell.MaxLeases
	stallClients  = 10_000
	stallPolicies = 65_536
)

// stallWorld is a server on the real clock with as much of everything as the docs allow.
type stallWorld struct {
	*world
	p *peer
}

func newStallWorld(t *testing.T) *stallWorld {
	cfg := NewConfig()
	for name, value := range map[string]string{"max-keys": "10000000", "maxclients": "20000", "enable-debug-command": "yes", "max-waiters": "20000", "maxmemory": "8gb", "dir": t.TempDir()} {
		if err := cfg.row(name).Value.Set(value); err != nil {
			t.Fatal(name, err)
		}
	}
	clock := NewClock()
	keys := store.New(store.Options{MaxKeys: cfg.MaxKeys(), MaxBytes: cfg.MaxMemory(), MaxWaiters: 20000, Now: clock.NowNS})
	w := &world{t: t}
	w.Server = NewServer(Options{Config: cfg, Store: keys, Clock: clock.NowNS, ReadClocks: clock.Read, Log: slog.New(slog.DiscardHandler), Version: "test"})
	return &stallWorld{w, w.connect()}
}

// fill sends a call n times, with its number in place of %d.
func (w *stallWorld) fill(n int, words ...string) {
	const some = 1000
	for from := 0; from < n; from += some {
		var b strings.Builder
		for i := from; i < min(from+some, n); i++ {
			own := make([]string, len(words))
			for j, word := range words {
				own[j] = strings.ReplaceAll(word, "#", fmt.Sprint(i))
			}
			b.WriteString(frame(own...))
		}
		serveAll(w.p.Session, []byte(b.String()))
		if reply := w.p.tr.take(); strings.Contains(reply, "-ERR") || strings.Contains(reply, "-OOM") {
			w.t.Fatalf("%v: %.200s", words, reply[strings.Index(reply, "-"):])
		}
	}
}

func threadNS() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}

// longest serves data and returns the longest that one turn has kept its thread, in CPU time.
func longest(p *peer, data []byte) (most time.Duration, turns int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for more := true; more; {
		before := threadNS()
		more = p.Serve(data)
		most = max(most, time.Duration(threadNS()-before))
		data = nil
		turns++
		for p.waits != nil && !more {
			runtime.Gosched()
			if p.waits.ready() {
				more = true
			}
		}
	}
	return most, turns
}

func TestStalls(t *testing.T) {
	w := newStallWorld(t)
	start := time.Now()
	step := func(what string) { fmt.Println(what, time.Since(start)); start = time.Now() }
	w.fill(stallKeys, "CL.THROTTLE", "key:#", "15", "30", "3600")
	step("keys")
	w.fill(stallLeases, "CL.TAKE", "conc", "65536/1h,algo=conc", "ID", "name#")
	step("conc")
	w.fill(stallLeases, "CL.TAKE", "held", "1000000/1h", "LEASE", "3600000", "ID", "name#")
	step("held")
	w.fill(stallPolicies, "CL.POLICY", "SET", "policy#", "10/1m")
	step("policies")
	w.fill(stallPolicies, "CL.RULE", "ADD", "DENY", "rule#")
	step("rules")
	w.fill(2000, "ACL", "SETUSER", "user#", "on", ">secret", "~k:*", "+@all", "-flushall", "+client|id")
	step("users")
	for range stallClients {
		w.connect()
	}
	step("clients")
	ids := func(key string) (id string) {
		v := w.p.do("CL.TAKE", key, map[string]string{"conc": "65536/1h,algo=conc", "held": "1000000/1h"}[key], "PEEK", "FULL")
		return v
	}
	_ = ids
	many := func(name string) string {
		words := []string{name}
		for i := range 100_000 {
			words = append(words, fmt.Sprintf("key:%d", i))
		}
		return frame(words...)
	}
	f := func(line string) string { return frame(strings.Fields(line)...) }
	rep := func(n int, line string) string { return strings.Repeat(f(line), n) }
	for _, c := range []string{
		rep(3000, "CL.THROTTLE key:1 15 30 60"), rep(3000, "GCRA key:1 15 30 60"),
		rep(3000, "CL.TAKE conc 65536/1h,algo=conc ID name7"), rep(3000, "CL.TAKE conc 65536/1h,algo=conc PEEK"), rep(3000, "CL.TAKE conc 65536/1h,algo=conc COST 65536"),
		rep(3000, "CL.TAKE held 1000000/1h LEASE 60000 ID name9"), rep(3000, "CL.TAKE held 1000000/1h PEEK"),
		rep(3000, "CL.MTAKE 2 conc 65536/1h,algo=conc held 1000000/1h LEASE 60000 ID name9"),
		rep(3000, "CL.RENEW conc 1 100000"), rep(3000, "CL.SETTLE held 1 3"), rep(3000, "CL.RELEASE held 1"), rep(3000, "CL.GIVE conc 65536/1h,algo=conc 1"),
		rep(1, "COPY conc tmp") + rep(1, "CL.GIVE tmp 65536/1h,algo=conc 60000"), rep(100, "COPY conc tmp REPLACE"), rep(1, "COPY held tmp REPLACE") + rep(1, "DEL tmp"), many("EXISTS"), many("TOUCH"), many("DEL"), many("UNLINK"), many("CL.RESET"), many("WATCH") + f("UNWATCH"),
		rep(10, "HGETALL conc"), rep(10, "HGETALL held"), rep(10, "HGET conc conc,1h"), rep(100, "HGET held 1h"), rep(10, "HSCAN conc 0"), rep(300, "HLEN conc"), rep(300, "TTL conc"), rep(300, "PTTL held"),
		rep(300, "EXPIRE conc 3000"), rep(300, "PERSIST conc"), rep(300, "OBJECT ENCODING conc"), rep(300, "OBJECT IDLETIME conc"), rep(300, "OBJECT REFCOUNT conc"), rep(300, "TYPE conc"), rep(300, "MEMORY USAGE conc"), rep(300, "MEMORY USAGE held"),
		rep(30, "RENAME conc tmp") + rep(30, "RENAME tmp conc"), rep(30, "GETEX key:3"), rep(300, "DBSIZE"), rep(300, "RANDOMKEY"), rep(10, "KEYS nomatch*"), rep(100, "SCAN 0 COUNT 10000"), rep(1, "KEYS *"),
		rep(10, "INFO"), rep(10, "INFO all"), rep(10, "INFO everything"), rep(10, "COMMAND"), rep(10, "COMMAND DOCS"), rep(10, "COMMAND COUNT"), rep(10, "COMMAND LIST"), rep(10, "COMMAND LIST FILTERBY PATTERN *"), rep(10, "COMMAND INFO"),
		rep(10, "CONFIG GET *"), rep(10, "CONFIG RESETSTAT"), rep(1, "CL.STATS"), rep(10, "CL.TOP 100"), rep(2, "CL.POLICY LIST"), rep(2, "CL.RULE LIST"), rep(1000, "CL.POLICY SET policy1 20/1m"), rep(1000, "CL.POLICY GET policy1"), rep(100, "CL.POLICY DEL policy2"), rep(300, "CL.RULE ADD DENY rule7"), rep(100, "CL.RULE DEL DENY rule8"),
		rep(10, "ACL LIST"), rep(10, "ACL USERS"), rep(10, "ACL GETUSER user1"), rep(100, "ACL SETUSER user1 +get"), rep(10, "ACL CAT"), rep(10, "ACL LOG"), rep(10, "ACL DELUSER user3"), rep(10, "ACL WHOAMI"), rep(10, "ACL DRYRUN user1 get k:1"), rep(10, "ACL GENPASS"),
		rep(1, "CLIENT LIST"), rep(10, "CLIENT LIST TYPE normal"), rep(10, "CLIENT INFO"), rep(10, "CLIENT KILL TYPE normal SKIPME yes"), rep(10, "CLIENT PAUSE 0"), rep(10, "MEMORY STATS"), rep(10, "MEMORY DOCTOR"), rep(1, "MEMORY PURGE"), rep(10, "SLOWLOG GET -1"), rep(10, "SLOWLOG LEN"), rep(10, "LATENCY DOCTOR"), rep(10, "LATENCY HISTOGRAM"), rep(10, "LATENCY LATEST"), rep(10, "LOLWUT"),
		rep(1, "BGSAVE"), rep(1, "CONFIG SET max-keys 1000"), rep(1, "FLUSHALL"),
	} {
		most, turns := longest(w.p, []byte(c))
		reply := w.p.tr.take()
		name := strings.ReplaceAll(c[:min(len(c), 70)], "\r\n", " ")
		flag := ""
		if most > 6*time.Millisecond {
			flag = "   <<<<<<<"
		}
		fmt.Printf("%-75s %10v %5d turns %q%s\n", name, most, turns, reply[:min(len(reply), 40)], flag)
		if w.p.end != open {
			w.p = w.connect()
		}
	}
}
