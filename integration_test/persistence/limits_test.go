package persistence

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// Keys with limits, policies and rules on disk: what the other files do for CL.THROTTLE's.

// keptLimits are all algorithms, with periods in which nothing changes while the test runs.
var keptLimits = []string{
	"100/1d", "5/1d,burst=2", "100/2d,algo=window", "100/1d,algo=window,align=clock,tz=+05:45", "100/year", "100/1d,algo=slide",
	"100/1d,algo=slide,buckets=7", "100/1d,algo=log", "4/30d,algo=log,block=300d",
}

// limitsToKeep makes keys with limits, beside those of CL.THROTTLE, policies and rules.
func limitsToKeep(c *harness.Conn) {
	c.T.Helper()
	c.Play(step{"CL.POLICY SET api 100/1d", ":1"}, step{"CL.POLICY SET api:gold 100/30d,algo=log,block=1h", ":1"},
		step{"CL.POLICY SET gone 5/1s", ":1"}, step{"CL.POLICY DEL gone", ":1"},
		step{"CL.RULE ADD DENY evil", ":1"}, step{"CL.RULE ADD DENY 'with space:*' EX 86400", ":1"},
		step{"CL.RULE ADD ALLOW ip: CIDR 10.0.0.0/8", ":1"}, step{"CL.RULE ADD ALLOW ip: CIDR 2001:db8::/32", ":1"},
		step{"CL.RULE ADD DENY gone", ":1"}, step{"CL.RULE DEL DENY gone", ":1"})
	all := []string{"CL.TAKE", "all"}
	for _, limit := range keptLimits {
		c.Take("key:"+limit, limit)
		c.Take("key:"+limit, limit)
		if limit != "5/1d,burst=2" { // which shares its state with the first
			all = append(all, limit)
		}
	}
	for range 3 {
		c.Do(all...)
	}
	for range 200 {
		c.Take("calls", "1000/3d,algo=log")
	}
	for range 5 {
		c.Take("blocked", "3/1d,block=30d") // and blocked from the fourth on
	}
	many := []string{"CL.TAKE", "many"}
	for i := range 128 {
		many = append(many, "100/"+fmt.Sprint(int64(10_000+i))+"m")
	}
	c.Do(many...)
	c.Throttle("tat", "5", "1", "86400")
	at := fmt.Sprint(time.Now().Add(time.Hour).UnixMilli())
	c.Play(
		step{"CL.TAKE policy @api COST 7", "0 100 93 …"}, step{"CL.TAKE policy @api:gold COST 7", "0 100 93 …"},
		step{"CL.TAKE policy 50/1d COST 7", "0 50 43 …"}, step{"CL.TAKE '' 100/1d FORCE COST 150", "0 100 0 …"},
		step{"CL.TAKE '\\x00\\xff \\r\\n' 100/1d", "0 100 99 …"},
		step{"CL.TAKE " + strings.Repeat("a", 5000) + " 100/1d", "0 100 99 …"},
		step{"CL.TAKE reset 100/1d", "0 100 99 …"}, step{"CL.RESET reset", ":1"}, step{"CL.TAKE given 100/1d", "0 100 99 …"},
		step{"CL.GIVE given 100/1d 1", ":1"}, step{"CL.TAKE old 100/1d,algo=log COST 9", "0 100 91 …"}, step{"RENAME old renamed", "+OK"},
		step{"CL.TAKE sooner 100/1d COST 50", "0 100 50 …"}, step{"PEXPIREAT sooner " + at, ":1"},
		step{"COPY all copied:all", ":1"}, step{"COPY policy moving", ":1"}, step{"RENAMENX moving policy", ":0"},
		step{"RENAMENX moving copied:policy", ":1"}, step{"CL.TAKE copied:policy @api COST 3", "0 100 90 …"},
		step{"CL.TAKE policy @api COST 0", "0 100 93 …"}, step{"COPY sooner copied:sooner", ":1"},
		step{"CL.THROTTLE turned 5 1 86400", "0 6 5 …"}, step{"DEL turned", ":1"}, step{"CL.TAKE turned 100/1d", "0 100 99 …"},
		step{"CL.MTAKE 2 pair:1 100/1d pair:2 100/1d,algo=slide", "*3\r\n*5\r\n:0\r\n…"}, step{"CL.TAKE soon 1000/1s", "0 1000 999 …"},
	)
	celldtest.Eventually(c.T, "a key expires", func() bool { return c.Do("EXISTS", "soon") == ":0\r\n" })
}

// kept is all that a server holds, as text by name: fields of hashes, TATs, policies, rules, and when keys expire, in Unix s.
func kept(c *harness.Conn) map[string]string {
	c.T.Helper()
	all := map[string]string{"policies": fmt.Sprint(harness.Pairs(c.T, c.Do("CL.POLICY", "LIST")))}
	for _, rule := range strings.Split(c.Do("CL.RULE", "LIST"), "*4\r\n$") {
		at := strings.LastIndexByte(rule, ':')
		if at < 0 {
			continue // how many there are
		}
		left := rule[at:]
		if left != ":-1\r\n" {
			left = "some time"
		}
		all["rule "+rule[:at]] = left
	}
	maps.Copy(all, keptKeys(c))
	return all
}

func keptKeys(c *harness.Conn) map[string]string {
	c.T.Helper()
	all := map[string]string{}
	for _, key := range harness.KeyList(c.Do("KEYS", "*")) {
		expires := (celldtest.IntReply(c.Do("PEXPIRETIME", key)) + 500) / 1000
		if c.Do("TYPE", key) == "+hash\r\n" {
			fields := joinParts(c.T, harness.Pairs(c.T, c.Do("HGETALL", key)))
			for _, name := range slices.Sorted(maps.Keys(fields)) {
				all[key] += name + " " + fields[name] + "\n"
			}
			all[key] += fmt.Sprint(len(fields), " fields")
		} else {
			all[key], _ = harness.Bulk(c.Do("GET", key))
		}
		all["expires "+key] = fmt.Sprint(expires)
	}
	return all
}

// joinParts makes wholes of the parts of logs, as the append-only file and so redis-server has them.
func joinParts(t testing.TB, fields map[string]string) map[string]string {
	t.Helper()
	type part struct {
		after  int64
		limit  string
		calls  [][2]int64
		behind string
	}
	read := func(text string) (p part) {
		for i, field := range strings.Fields(text) {
			name, value, _ := strings.Cut(field, "=")
			switch {
			case i == 0:
				p.limit = field
			case name == "after":
				p.after = number(t, value)
			case name == "calls" && value != "":
				at := int64(0)
				for call := range strings.SplitSeq(value, ",") {
					when, cost, _ := strings.Cut(call, ":")
					at += number(t, strings.TrimPrefix(when, "+"))
					p.calls = append(p.calls, [2]int64{at, number(t, cost)})
				}
			case name != "calls":
				p.behind = " " + field
			}
		}
		return p
	}
	parts := map[string][]part{}
	joined := map[string]string{}
	for name, text := range fields {
		if log, _, isPart := strings.Cut(name, " "); isPart {
			parts[log] = append(parts[log], read(text))
		} else {
			joined[name] = text
		}
	}
	for name, list := range parts {
		slices.SortFunc(list, func(a, b part) int { return cmp.Compare(a.after, b.after) })
		all := read(joined[name])
		for _, p := range list {
			kept := slices.DeleteFunc(all.calls, func(call [2]int64) bool { return call[0] > p.after })
			all = part{0, p.limit, append(kept, p.calls...), p.behind}
		}
		text, before := all.limit+" calls=", int64(0)
		for i, call := range all.calls {
			if i > 0 {
				text += ",+"
			}
			text += fmt.Sprint(call[0]-before) + ":" + fmt.Sprint(call[1])
			before = call[0]
		}
		joined[name] = text + all.behind
	}
	return joined
}

func number(t testing.TB, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func sameText(t testing.TB, what string, got, want map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] &&
			!(strings.HasPrefix(name, "expires ") && celldtest.BothSoon("TTL", ":"+got[name]+"\r\n", ":"+want[name]+"\r\n")) {
			t.Errorf("%s: %.40q is %.500q, want %.500q", what, name, got[name], want[name])
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s: %.40q is new: %.500q", what, name, got[name])
		}
	}
}

// goesOn sees that limits are asked about where they were left.
func goesOn(c *harness.Conn, what string) {
	c.T.Helper()
	for _, s := range []step{
		{"CL.TAKE blocked 3/1d,block=30d", "1 3 0 …"}, {"CL.TAKE calls 1000/3d,algo=log COST 801", "1 1000 800 …"},
		{"CL.TAKE calls 1000/3d,algo=log COST 800", "0 1000 0 …"},
		{"CL.TAKE key:100/1d,algo=slide 100/1d,algo=slide COST 0", "0 100 98 …"},
		{"CL.TAKE key:100/1d,algo=slide,buckets=7 100/1d,algo=slide,buckets=7 COST 99", "1 100 98 …"},
		{"CL.TAKE key:100/year 100/year COST 99", "1 100 98 …"}, {"CL.TAKE '' 100/1d", "1 100 0 …"},
		{"CL.THROTTLE tat 5 1 86400 6", "1 6 5 …"},
	} {
		c.Play(s)
	}
	if c.T.Failed() {
		c.T.Fatalf("that was after %s", what)
	}
}

// TestLimitsSurvive restarts celld after each way to have things on disk.
func TestLimitsSurvive(t *testing.T) {
	t.Parallel()
	for name, way := range map[string]struct {
		flags string
		do    func(c *harness.Conn, srv *harness.Server)
	}{
		"SAVE":         {"", func(c *harness.Conn, srv *harness.Server) { c.Do("SAVE"); srv.Cmd.Process.Kill() }},
		"BGSAVE":       {"--save '3600 1'", func(c *harness.Conn, srv *harness.Server) { c.Do("BGSAVE"); saved(c); srv.Cmd.Process.Kill() }},
		"end":          {"--save '3600 1'", func(c *harness.Conn, srv *harness.Server) { srv.Cmd.Process.Signal(syscall.SIGTERM) }},
		"SHUTDOWN":     {"", func(c *harness.Conn, srv *harness.Server) { c.Send(harness.Frame("SHUTDOWN", "SAVE")) }},
		"everysec":     {"--appendonly yes", func(c *harness.Conn, srv *harness.Server) { srv.Cmd.Process.Signal(syscall.SIGTERM) }},
		"always, kill": {"--appendonly yes --appendfsync always", func(c *harness.Conn, srv *harness.Server) { srv.Cmd.Process.Kill() }},
		"BGREWRITEAOF": {"--appendonly yes --appendfsync always", func(c *harness.Conn, srv *harness.Server) { c.Do("BGREWRITEAOF"); saved(c); srv.Cmd.Process.Kill() }},
		"more after BGREWRITEAOF": {"--appendonly yes --appendfsync always", func(c *harness.Conn, srv *harness.Server) {
			c.Do("BGREWRITEAOF")
			saved(c)
			for _, limit := range keptLimits {
				c.Take("key:"+limit, limit, "FORCE", "COST", "0")
				c.Take("later:"+limit, limit)
			}
			c.Play(step{"CL.POLICY SET later 5/1d", ":1"}, step{"CL.RULE ADD DENY later", ":1"}, step{"CL.TAKE later:@ @later", "0 5 4 …"})
			srv.Cmd.Process.Kill()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, flags := t.TempDir(), celldtest.SplitQuoted(t, way.flags)
			srv := harness.Spec{Flags: append([]string{"--dir", dir}, flags...), Dies: true}.Start(t)
			c := harness.Dial(t, srv.Addr)
			limitsToKeep(c)
			want := kept(c)
			if len(want) < 40 {
				t.Fatalf("only %d things to keep", len(want))
			}
			way.do(c, srv)
			if strings.HasPrefix(name, "more") {
				<-srv.Exited
			}
			<-srv.Exited
			checkFiles(t, dir)
			if !strings.Contains(way.flags, "appendonly") {
				flags = []string{"--save", "3600 1"}
			}
			again := harness.StartOn(t, dir, flags...)
			c = harness.Dial(t, again.Addr)
			got := kept(c)
			if strings.HasPrefix(name, "more") {
				for _, limit := range keptLimits {
					if c.Take("later:"+limit, limit, "COST", "0").Remaining == c.Take("new:"+limit, limit, "COST", "0").Remaining {
						t.Errorf("later:%s is forgotten", limit)
					}
				}
				c.Play(step{"CL.TAKE later:@ @later COST 0", "0 5 4 …"}, step{"CL.TAKE later 5/1d", "1 0 0 -1 0 0 0"})
			} else {
				sameText(t, name, got, want)
			}
			goesOn(c, name)
			again.Stop()
			c = harness.Dial(t, harness.StartOn(t, dir, flags...).Addr) // and once more, from the files of that start
			c.Play(step{"CL.TAKE calls 1000/3d,algo=log", "1 1000 0 …"})
			if log := again.Log.String(); strings.Contains(log, "WARN") || strings.Contains(log, "ERROR") {
				t.Error(log)
			}
		})
	}
}

// saved waits until nothing is written in the background.
func saved(c *harness.Conn) {
	c.T.Helper()
	celldtest.Eventually(c.T, "files are written", func() bool {
		info := harness.InfoSections(c.Do("INFO", "persistence"))["Persistence"]
		return info["rdb_bgsave_in_progress"]+info["aof_rewrite_in_progress"]+info["aof_rewrite_scheduled"] == "000"
	})
}

// TestLimitsPipe adds the limits, policies and rules of a file to another celld, and the keys to redis-server.
func TestLimitsPipe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from := harness.Dial(t, harness.StartOn(t, dir, "--appendonly", "yes", "--appendfsync", "always").Addr)
	limitsToKeep(from)
	for _, when := range []string{"as it was appended", "rewritten"} {
		if when == "rewritten" {
			from.Do("BGREWRITEAOF")
			saved(from)
		}
		file := celldtest.ReadFile(t, dir, "appendonly.aof")
		want := keptKeys(from)
		for name, addr := range map[string]string{"celld": harness.Start(t).Addr, "redis-server": celldtest.StartRedis(t)} {
			to := harness.Dial(t, addr)
			args := []string{"-s", strings.TrimPrefix(addr, "unix:"), "--pipe"}
			if name == "celld" {
				host, port := harness.HostPort(addr)
				args = []string{"-h", host, "-p", port, "--pipe"}
				for name, limit := range harness.Pairs(t, from.Do("CL.POLICY", "LIST")) { // ECHO says them, and does nothing
					to.Do("CL.POLICY", "SET", name, limit)
				}
			}
			out, err := harness.TryTool(t, file, "redis-cli", args...)
			if err != nil || !strings.Contains(out, "errors: 0, ") {
				t.Errorf("redis-cli --pipe to %s: %v, %s", name, err, out)
			}
			sameText(t, name+", "+when, keptKeys(to), want)
			if name == "celld" && when == "rewritten" {
				goesOn(to, "redis-cli --pipe")
			}
		}
	}
}

// TestLimitsMove hands files to redis-server, and what that then saves back to celld.
func TestLimitsMove(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ celld, redis, file, back string }{
		"rdb":                 {"--save '3600 1'", "", "dump.rdb", "dump.rdb"},
		"rdb, hash tables":    {"--save '3600 1'", "--hash-max-listpack-entries 0 --rdbcompression no", "dump.rdb", "dump.rdb"},
		"rdb, long listpacks": {"--save '3600 1'", "--hash-max-listpack-value 100000", "dump.rdb", "dump.rdb"},
		"aof":                 {"--appendonly yes --appendfsync always", "--appendonly yes", "appendonly.aof", "appendonlydir"},
		"aof of commands":     {"--appendonly yes --appendfsync always", "--appendonly yes --aof-use-rdb-preamble no", "appendonly.aof", "appendonlydir"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, flags := t.TempDir(), celldtest.SplitQuoted(t, test.celld)
			c := harness.Dial(t, harness.StartOn(t, dir, flags...).Addr)
			limitsToKeep(c)
			c.Do("SAVE")
			want, wantKeys := kept(c), keptKeys(c)
			dir = copied(t, dir, test.file)
			redis := harness.Dial(t, celldtest.StartRedis(t, append([]string{"--dir", dir}, strings.Fields(test.redis)...)...))
			loaded(redis)
			sameText(t, "redis-server", keptKeys(redis), wantKeys)
			if parts := celldtest.IntReply(redis.Do("HLEN", "calls")); (parts > 1) != (test.file == "appendonly.aof") {
				t.Errorf("the log of 200 calls is in %d fields", parts)
			}
			if test.back == "dump.rdb" {
				redis.Do("SAVE")
			} else {
				redis.Do("BGREWRITEAOF")
				saved(redis)
			}
			dir = copied(t, dir, test.back)
			policies := dir + "/policies"
			celldtest.WriteFile(t, "api 100/1d\napi:gold 100/30d,algo=log,block=1h\n", policies)
			back := harness.StartOn(t, dir, append(flags, "--policies", policies)...)
			c = harness.Dial(t, back.Addr)
			got := kept(c)
			for name := range want { // rules do not travel through redis-server
				if strings.HasPrefix(name, "rule ") {
					delete(want, name)
					delete(got, name)
				}
			}
			sameText(t, "celld again", got, want)
			goesOn(c, "redis-server")
			if log := back.Log.String(); strings.Contains(log, "no limit") {
				t.Error(log)
			}
		})
	}
}

// TestLimitsOfOthers reads hashes of a redis-server that are limits in part.
func TestLimitsOfOthers(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string]string{
		"rdb": "", "aof": "--appendonly yes", "aof of commands": "--appendonly yes --aof-use-rdb-preamble no",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			tat := fmt.Sprint(time.Now().Add(40 * time.Minute).UnixNano())
			redis := harness.Dial(t, celldtest.StartRedis(t, append([]string{"--dir", dir}, strings.Fields(flags)...)...))
			redis.Play(
				step{"HSET limit gcra/1h 'limit=9/1h tat=" + tat + "'", ":1"},
				step{"HSET part gcra/1h 'limit=9/1h tat=" + tat + "' @api 'limit=9/1h tat=" + tat + "'", ":2"},
				step{"HSET none @api 'limit=9/1h tat=" + tat + "'", ":1"},
				step{"HSET hash gcra/1h 'limit=9/1h tat=" + tat + "' name value", ":2"},
				step{"HSET other 1 2 3 4", ":2"},
				step{"HSET past gcra/1h 'limit=9/1h tat=5'", ":1"},
				step{"SAVE", "+OK"},
			)
			celldFlags := []string{"--save", "3600 1"}
			if flags != "" {
				celldFlags = []string{"--appendonly", "yes"}
				redis.Do("BGREWRITEAOF")
				saved(redis)
			}
			srv := harness.StartOn(t, copied(t, dir), celldFlags...)
			c := harness.Dial(t, srv.Addr)
			c.Play(step{"DBSIZE", ":2"}, step{"HLEN limit", ":1"}, step{"HLEN part", ":1"}, step{"CL.TAKE limit 9/1h COST 0", "0 9 3 …"},
				step{"CL.TAKE part 9/1h COST 0", "0 9 3 …"})
			log := srv.Log.String()
			if !strings.Contains(log, "2 hash") && !strings.Contains(log, "2 HSET") && !strings.Contains(log, "2 HMSET") ||
				!strings.Contains(log, "2 limit of an unknown policy") {
				t.Error(log)
			}
		})
	}
}
