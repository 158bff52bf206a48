package redis

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// startRedisPair returns a connection to celld and one to redis-server.
func startRedisPair(t *testing.T) (celld, redis *harness.Conn) {
	return harness.Dial(t, harness.Start(t).Addr), harness.Dial(t, celldtest.StartRedis(t))
}

// TestRedisShapes compares replies whose values must differ (times, ids, counters) by what kind of thing is where.
func TestRedisShapes(t *testing.T) {
	t.Parallel()
	// both name the module
	celld, redis := harness.Dial(t, harness.Start(t).Addr), harness.Dial(t, celldtest.StartRedis(t, "--loadmodule", harness.ModulePath(t)))
	// Every command, as else a stalled one is in redis-server's log and in celld's is not.
	for _, c := range []*harness.Conn{celld, redis} {
		c.Do("CONFIG", "SET", "slowlog-log-slower-than", "0")
	}
	for _, hello := range []string{"2", "3"} {
		for _, args := range [][]string{
			{"HELLO", hello}, {"HELLO"}, {"HELLO", hello, "SETNAME", "app"},
			{"TIME"}, {"DBSIZE"}, {"MODULE", "LIST"}, {"CLIENT", "ID"}, {"CLIENT", "LIST"}, {"CLIENT", "INFO"}, {"CLIENT", "GETNAME"},
			{"COMMAND", "COUNT"}, {"COMMAND", "INFO", "nosuch", "neither"}, {"INFO"}, {"INFO", "server"}, {"INFO", "server", "clients"},
			{"INFO", "all"}, {"INFO", "everything"}, {"INFO", "default"}, {"CONFIG", "GET", "maxclients"}, {"CONFIG", "GET", "port"},
			{"CONFIG", "GET", "bind"}, {"CONFIG", "GET", "unixsocket"}, {"CONFIG", "GET", "proto-max-bulk-len"},
			{"CONFIG", "GET", "client-query-buffer-limit"}, {"CONFIG", "GET", "client-output-buffer-limit"},
			{"CONFIG", "GET", "io-threads"}, {"SLOWLOG", "LEN"}, {"SLOWLOG", "GET"}, {"SLOWLOG", "HELP"}, {"CLIENT", "HELP"},
			{"CONFIG", "HELP"}, {"COMMAND", "HELP"}, {"MODULE", "HELP"}, {"MEMORY", "STATS"},
			{"MEMORY", "HELP"}, {"CLIENT", "LIST", "TYPE", "normal"}, {"CLIENT", "LIST", "ID", "1"},
		} {
			got, want := shape(t, celld.Do(args...)), shape(t, redis.Do(args...))
			if got != want && args[len(args)-1] != "HELP" { // the help differs as what can be done differs
				t.Errorf("HELLO %s, %q\ncelld %s\nredis %s", hello, args, got, want)
			} else if got[0] != want[0] {
				t.Errorf("HELLO %s, %q\ncelld %s\nredis %s", hello, args, got, want)
			}
		}
	}
}

// shape draws a reply: types, lengths of aggregates, the keys of maps, errors in full.
func shape(t testing.TB, raw string) string {
	var b strings.Builder
	draw(t, &b, bufio.NewReader(strings.NewReader(raw)), false)
	return b.String()
}

func draw(t testing.TB, b *strings.Builder, r *bufio.Reader, isKey bool) {
	line, err := r.ReadString('\n')
	if err != nil {
		t.Fatalf("a cut reply: %q", line)
	}
	n, _ := strconv.Atoi(strings.TrimRight(line[1:], "\r\n"))
	b.WriteByte(line[0])
	switch line[0] {
	case '-', '_', '+':
		b.WriteString(strings.TrimRight(line[1:], "\r\n"))
	case '$', '=', '!', '*', '~', '>', '%':
		if n < 0 {
			b.WriteString("-1") // RESP2's null, without a body
			return
		}
	}
	switch line[0] {
	case '$', '=', '!':
		text := make([]byte, n+2)
		if _, err := io.ReadFull(r, text); err != nil {
			t.Fatalf("a cut reply: %q, %v", line, err)
		}
		if isKey {
			b.Write(text[:n])
		}
	case '*', '~', '>', '%':
		children, keyed := n, false
		if line[0] == '%' {
			children, keyed = 2*n, true
		}
		b.WriteByte('(')
		for i := range children {
			if i > 0 {
				b.WriteByte(' ')
			}
			draw(t, b, r, keyed && i%2 == 0)
		}
		b.WriteByte(')')
	}
}

// TestRedisHelloValues compares those values of HELLO's reply by which clients decide what they may do.
func TestRedisHelloValues(t *testing.T) {
	t.Parallel()
	celld, redis := startRedisPair(t)
	for _, proto := range []string{"2", "3"} {
		got, want := harness.Pairs(t, celld.Do("HELLO", proto)), harness.Pairs(t, redis.Do("HELLO", proto))
		for _, key := range []string{"server", "proto", "mode", "role"} {
			if got[key] != want[key] {
				t.Errorf("HELLO %s: %s is %q, in Redis %q", proto, key, got[key], want[key])
			}
		}
		if major, _, _ := strings.Cut(got["version"], "."); major != "7" {
			t.Errorf("HELLO %s: version %q, while the commands are those of Redis 7", proto, got["version"])
		}
	}
}

// TestRedisInfoFields holds celld's INFO to Redis's names: what a dashboard reads, under the same heading.
func TestRedisInfoFields(t *testing.T) {
	t.Parallel()
	celld, redis := startRedisPair(t)
	for _, c := range []*harness.Conn{celld, redis} {
		c.Do("SET", "k", "9000000000000000000", "EX", "100000")
		c.Do("GET", "k")
	}
	got, want := harness.InfoSections(celld.Do("INFO", "everything")), harness.InfoSections(redis.Do("INFO", "everything"))
	for section, fields := range map[string][]string{
		"Server":       {"redis_version", "redis_mode", "os", "arch_bits", "process_id", "run_id", "tcp_port", "server_time_usec", "uptime_in_seconds", "uptime_in_days"},
		"Clients":      {"connected_clients", "maxclients", "blocked_clients"},
		"Memory":       {"used_memory", "used_memory_human", "used_memory_rss", "used_memory_peak", "maxmemory", "maxmemory_human", "maxmemory_policy"},
		"Persistence":  {"loading"},
		"Stats":        {"total_connections_received", "total_commands_processed", "instantaneous_ops_per_sec", "total_net_input_bytes", "total_net_output_bytes", "rejected_connections", "expired_keys", "evicted_keys", "keyspace_hits", "keyspace_misses", "total_error_replies"},
		"Replication":  {"role"},
		"Commandstats": {"cmdstat_set", "cmdstat_get"},
		"Keyspace":     {"db0"},
	} {
		for _, field := range fields {
			if _, ok := want[section][field]; !ok {
				t.Errorf("redis-server itself has no %s in # %s", field, section)
			}
			if _, ok := got[section][field]; !ok {
				t.Errorf("no %s in # %s; celld has %q", field, section, slices.Sorted(maps.Keys(got[section])))
			}
		}
	}
	for _, same := range [][2]string{
		{"Persistence", "loading"}, {"Server", "redis_mode"}, {"Server", "arch_bits"}, {"Replication", "role"},
		{"Clients", "blocked_clients"},
	} {
		if a, b := got[same[0]][same[1]], want[same[0]][same[1]]; a != b {
			t.Errorf("%s:%s, in Redis %s", same[1], a, b)
		}
	}
	for section, fields := range got {
		for field := range fields {
			for theirs, theirFields := range want {
				if _, there := theirFields[field]; there && theirs != section {
					t.Errorf("%s is in # %s, in Redis in # %s", field, section, theirs)
				}
			}
		}
	}
	if celldVersion := got["Server"]["celld_version"]; celldVersion == "" {
		t.Error("no celld_version in # Server")
	}
	var keys, expires, avg int
	_, err := fmt.Sscanf(got["Keyspace"]["db0"], "keys=%d,expires=%d,avg_ttl=%d", &keys, &expires, &avg)
	if err != nil || keys != 1 || expires != 1 {
		t.Errorf("db0:%s", got["Keyspace"]["db0"])
	}
	var calls int
	if _, err := fmt.Sscanf(got["Commandstats"]["cmdstat_set"], "calls=%d,usec=", &calls); err != nil || calls != 1 {
		t.Errorf("cmdstat_set:%s", got["Commandstats"]["cmdstat_set"])
	}
}

// TestRedisClientFields holds CLIENT INFO's fields to Redis's names and order.
func TestRedisClientFields(t *testing.T) {
	t.Parallel()
	celld, redis := startRedisPair(t)
	names := func(c *harness.Conn) (list []string) {
		text, _ := harness.Bulk(c.Do("CLIENT", "INFO"))
		for _, field := range strings.Fields(text) {
			name, _, _ := strings.Cut(field, "=")
			list = append(list, name)
		}
		return list
	}
	got, want := names(celld), names(redis)
	i := 0
	for _, name := range want {
		if i < len(got) && got[i] == name {
			i++
		}
	}
	must := []string{"id", "addr", "laddr", "fd", "name", "age", "idle", "flags", "db", "sub", "psub", "multi", "cmd", "user", "resp"}
	if !containsAll(got, must) {
		t.Errorf("CLIENT INFO has %q, and lacks some of %q", got, must)
	}
	for _, extra := range []string{"lib-name", "lib-ver"} { // Redis 7.2's
		got = slices.DeleteFunc(got, func(name string) bool { return name == extra })
	}
	if i < len(got) {
		t.Errorf("CLIENT INFO has %q; redis-server %q: not the same order from %q on", got, want, got[i])
	}
}

func containsAll(list, wanted []string) bool {
	for _, w := range wanted {
		if !slices.Contains(list, w) {
			return false
		}
	}
	return true
}

// TestRedisCommandInfo holds what routers and clients read of COMMAND INFO (name, arity, where the keys are, whether it
// writes) to Redis's, for every command that both have.
func TestRedisCommandInfo(t *testing.T) {
	t.Parallel()
	celld, redis := startRedisPair(t)
	names := harness.KeyList(celld.Do("COMMAND", "LIST", "FILTERBY", "PATTERN", "*"))
	if len(names) < 45 {
		t.Fatalf("COMMAND LIST: %q", names)
	}
	compared := 0
	for _, name := range names {
		got, want := harness.CommandRow(t, celld.Do("COMMAND", "INFO", name)), harness.CommandRow(t, redis.Do("COMMAND", "INFO", name))
		if got == "" {
			t.Errorf("COMMAND INFO %s: nothing, though listed", name)
		}
		gotTypes, wantTypes := argumentTypes(celld.Do("COMMAND", "DOCS", name)), argumentTypes(redis.Do("COMMAND", "DOCS", name))
		for arg, want := range wantTypes {
			if got := gotTypes[arg]; got != want && got != "" {
				t.Errorf("COMMAND DOCS %s: %s is a %s, in Redis a %s", name, arg, got, want)
			}
		}
		if want == "" {
			continue // celld's own, and CL.THROTTLE
		}
		compared++
		if got != want {
			t.Errorf("COMMAND INFO %s\ncelld %s\nredis %s", name, got, want)
		}
	}
	if compared < 40 {
		t.Errorf("only %d of %q are commands of Redis", compared, names)
	}
	// the arity that a module's command has
	if got, want := harness.CommandRow(t, celld.Do("COMMAND", "INFO", "CL.THROTTLE")), "cl.throttle -1 [denyoom write] 1 1 1"; got != want {
		t.Errorf("COMMAND INFO CL.THROTTLE: %s, want %s", got, want)
	}
	all, one := celldtest.IntReply(celld.Do("COMMAND", "COUNT")), celld.Do("COMMAND")
	if head := fmt.Sprintf("*%d\r\n", all); !strings.HasPrefix(one, head) {
		t.Errorf("COMMAND starts %.20q, COMMAND COUNT is %d", one, all)
	}
}

var typedArgument = regexp.MustCompile(`\$4\r\nname\r\n\$\d+\r\n(.*)\r\n\$4\r\ntype\r\n\$\d+\r\n(.*)\r\n`)

// argumentTypes returns the types of arguments by their names, from a reply of COMMAND DOCS. Those with parts have names of no meaning.
func argumentTypes(docs string) map[string]string {
	types := map[string]string{}
	docs, _, _ = strings.Cut(docs, "\r\nsubcommands\r\n")
	for _, arg := range typedArgument.FindAllStringSubmatch(docs, -1) {
		if arg[2] != "block" && arg[2] != "oneof" {
			types[arg[1]] = arg[2]
		}
	}
	return types
}
