package persistence

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// TestPersistenceOfOthers reads files of a redis-server that held other things too.
func TestPersistenceOfOthers(t *testing.T) {
	t.Parallel()
	hence := time.Now().Add(time.Hour)
	tat, later := fmt.Sprint(hence.UnixNano()), fmt.Sprint(hence.UnixMilli()+1)
	limits := "SET limit " + tat + " PXAT " + later + "\nSET 12345 " + tat + "\nSET " + strings.Repeat("k", 5000) + " " + tat +
		" PXAT " + later
	for _, line := range []string{
		"SET int8 100", "SET int16 30000", "SET int32 2000000000", "SET int64 " + fmt.Sprint(int64(time.Second)), "SET negative -5",
	} {
		limits += "\n" + line // counts
	}
	others := []struct{ kind, commands string }{
		{"string", "SET text text\nSET long " + strings.Repeat("long", 4000) + "\nSET float 3.14\nSETBIT bits 10000 1\nPFADD log a b c\nSET empty ''"},
		{"list", "RPUSH list a 1 -70000 5000000000 " + strings.Repeat("x", 100) +
			"\nRPUSH list:long" + strings.Repeat(" element", 5000) + "\nRPUSH list:large " + strings.Repeat("y", 20000)},
		{"set", "SADD set a b c\nSADD set:ints 1 2 300000 -4000000000\nSADD set:large " + numbers(600, "m%d")},
		{"zset", "ZADD zset 1 a 2.5 b inf c -inf d\nZADD zset:large " + numbers(600, "%[1]d.25 m%[1]d") + "\nGEOADD geo 13.36 38.11 Palermo"},
		{"hash", "HSET hash a 1 b 2\nHSET hash:large " + numbers(600, "f%[1]d v%[1]d") + "\nHSET hash:long f " + strings.Repeat("v", 100)},
		{"stream", "XADD stream 1-1 a 1\nXADD stream 2-1 a 1 b 2\nXADD stream 3-1 c 3\nXDEL stream 2-1" +
			"\nXGROUP CREATE stream g 0\nXREADGROUP GROUP g reader COUNT 1 STREAMS stream >\nXADD stream:empty 1-1 a 1\nXDEL stream:empty 1-1"},
		{"database 1", "SELECT 1\nSET limit:1 " + tat + "\nSET other:1 5 PXAT " + later + "\nSELECT 0"},
	}
	library := "FUNCTION LOAD \"#!lua name=lib\\nredis.register_function('f', function() return 1 end)\""
	for name, flags := range map[string]string{
		"rdb": "", "rdb lfu": "--maxmemory 1gb --maxmemory-policy allkeys-lfu", "rdb lru": "--maxmemory 1gb --maxmemory-policy allkeys-lru",
		"rdb plain":    "--rdbcompression no --rdbchecksum no",
		"rdb unpacked": "--hash-max-listpack-entries 0 --zset-max-listpack-entries 0 --set-max-intset-entries 0",
		"aof":          "--appendonly yes --appendfsync always", // else redis-server puts off writes while it syncs
		"aof commands": "--appendonly yes --appendfsync always --aof-use-rdb-preamble no --aof-timestamp-enabled yes",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			redis := harness.Dial(t, celldtest.StartRedis(t, append([]string{"--dir", dir}, strings.Fields(flags)...)...))
			want := map[string]int{}
			text := limits + "\n" + library
			for _, other := range others {
				text += "\n" + other.commands
			}
			for line := range strings.SplitSeq(text, "\n") {
				if got := redis.Do(celldtest.SplitQuoted(t, line)...); got[0] == '-' {
					t.Fatalf("%.40s: %s", line, got)
				}
			}
			for _, other := range others[:6] {
				want[other.kind] = strings.Count(other.commands, "\n") + 1
			}
			want["stream"], want["database 1"] = 2, 2
			celldFlags := []string{"--save", "3600 1"}
			if strings.HasPrefix(name, "aof") {
				persisters["redis-cell"].write(redis, "aof")
				redis.Do("SET", "late", tat)
				redis.Do("RPUSH", "list", "late")
				celldFlags = []string{"--appendonly", "yes"}
			} else {
				redis.Do("SAVE")
			}
			srv := harness.StartOn(t, copied(t, dir), celldFlags...)
			c := harness.Dial(t, srv.Addr)
			wantKeys := map[string]keyState{}
			for _, key := range []string{"limit", "12345", strings.Repeat("k", 5000), "late",
				"int8", "int16", "int32", "int64", "negative"} {
				if st := stateOf(redis, key); st.tat != "" {
					wantKeys[key] = st
				}
			}
			same(t, name, statesOf(c), wantKeys)
			if got := infoField(c, "rdb_last_load_keys_expired"); got != "0" {
				t.Errorf("%s keys are said to be of the past, want none", got)
			}
			log := srv.Log.String()
			_, found, _ := strings.Cut(log, "left out what is not a limit")
			for kind, n := range want {
				part := fmt.Sprintf("%d %s", n, kind)
				if name == "aof commands" { // the kinds are the names of commands there
					named := map[string]string{"list": "RPUSH", "set": "SADD", "zset": "ZADD", "stream": "XADD", "string": kind,
						"database 1": kind}
					part = " " + named[kind]
				}
				if !strings.Contains(found, part) {
					t.Errorf("the log does not name %s:\n%s", part, log)
				}
			}
		})
	}
}

func numbers(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format+" ", i)
	}
	return b.String()
}

// TestPersistenceOfCalls reads an append-only file of redis-cell 0.3 or later. It holds calls rather than states. As in redis-server,
// the calls count from the instant at which the file is read.
func TestPersistenceOfCalls(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "appendonlydir"), 0o755); err != nil {
		t.Fatal(err)
	}
	tat := time.Now().Add(time.Hour)
	celldtest.WriteFile(t, "file appendonly.aof.1.base.aof seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i\n", dir,
		"appendonlydir", "appendonly.aof.manifest")
	celldtest.WriteFile(t, commands(t, "SELECT 0\nSET base %d PXAT %d", tat.UnixNano(), tat.UnixMilli()+1), dir, "appendonlydir",
		"appendonly.aof.1.base.aof")
	celldtest.WriteFile(t, commands(t, "SELECT 0\nMULTI\nCL.THROTTLE called 9 1 86400\nEXEC\nMULTI\nCL.THROTTLE called 9 1 86400 3\nEXEC\n"+
		"CL.THROTTLE base 9 1 86400\nCL.THROTTLE gone 9 1 86400\nDEL gone"),
		dir, "appendonlydir", "appendonly.aof.1.incr.aof")
	celld, redis := persisters["celld"].start(t, copied(t, dir), "aof"), persisters["redis-cell"].start(t, dir, "aof")
	for _, key := range []string{"called", "base", "gone"} {
		got, want := celld.Throttle(key, "9", "1", "86400"), redis.Throttle(key, "9", "1", "86400")
		if got[0] != want[0] || got[2] != want[2] {
			t.Errorf("CL.THROTTLE %s: %v, redis-cell %v", key, got, want)
		}
	}
}
