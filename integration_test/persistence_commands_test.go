package integration_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestPersistenceReplies compares replies with redis-server's. The commands of a line arrive together, so that no snapshot
// or rewrite that one begins ends before the next.
func TestPersistenceReplies(t *testing.T) {
	t.Parallel()
	for _, flags := range []string{"", "--appendonly yes", "--save '3600 1'"} {
		t.Run(flags, func(t *testing.T) {
			t.Parallel()
			comparePersistenceReplies(t, splitQuoted(t, flags))
		})
	}
}

func comparePersistenceReplies(t *testing.T, flags []string) {
	t.Helper()
	celldAt := startOn(t, t.TempDir(), append([]string{"--io-threads", "1"}, flags...)...).addr
	redisAt := startRedis(t, flags...)
	both := map[string]*conn{"celld": dial(t, celldAt), "redis": dial(t, redisAt)}
	for _, line := range []string{
		"SAVE", "SET k 9000000000000000000; SAVE; INFO", "BGSAVE", "BGSAVE SCHEDULE", "bgsave schedule", "BGREWRITEAOF",
		"BGSAVE; BGSAVE; BGSAVE SCHEDULE; SAVE; BGREWRITEAOF; BGREWRITEAOF",
		"BGREWRITEAOF; BGREWRITEAOF; BGSAVE; BGSAVE SCHEDULE; SAVE",
		"MULTI; SAVE; EXEC", "MULTI; SHUTDOWN; EXEC", "MULTI; LASTSAVE; EXEC", "MULTI; BGREWRITEAOF; SAVE; EXEC",
		"MULTI; BGSAVE; BGSAVE; BGREWRITEAOF; BGSAVE SCHEDULE; EXEC", "MULTI; BGREWRITEAOF; BGREWRITEAOF; BGSAVE; BGSAVE x; UNWATCH; BGSAVE; EXEC",
		"BGSAVE; MULTI; BGSAVE; BGSAVE SCHEDULE; BGREWRITEAOF; EXEC", "BGREWRITEAOF; MULTI; BGSAVE; BGREWRITEAOF; EXEC; BGSAVE",
		"MULTI; BGSAVE; EXEC; BGSAVE", "MULTI; BGREWRITEAOF; EXEC; BGREWRITEAOF",
		"SAVE x", "BGSAVE x", "BGSAVE SCHEDULE x", "BGREWRITEAOF x", "LASTSAVE x",
		"SHUTDOWN x", "SHUTDOWN SAVE NOSAVE", "SHUTDOWN ABORT", "SHUTDOWN ABORT SAVE", "LASTSAVE",
		"CONFIG SET save x", "CONFIG SET save '1'", "CONFIG SET save '0 1'", "CONFIG SET save '-1 1'", "CONFIG SET save '1 -1'", "CONFIG SET save '1 x'",
		"CONFIG SET save '99999999999 1'; CONFIG GET save; CONFIG SET save '1 99999999999'; CONFIG SET save '1 1x'; CONFIG SET save ''",
		"CONFIG SET save '3600 1 300 100'; CONFIG GET save; CONFIG SET save ''; CONFIG GET save",
		"CONFIG GET dbfilename", "CONFIG GET appendfilename",
		"CONFIG SET appendfilename x", "CONFIG GET appendonly", "CONFIG GET appendfsync",
		"CONFIG GET auto-aof-rewrite-percentage", "CONFIG GET auto-aof-rewrite-min-size", "CONFIG GET aof-load-truncated",
	} {
		again(t, func(string) string { // a loaded machine may stop celld between two commands until a snapshot is done
			replies := map[string][]string{}
			for name, c := range both {
				var batch []byte
				for command := range strings.SplitSeq(line, "; ") {
					batch = append(batch, frame(splitQuoted(t, command)...)...)
				}
				c.send(batch)
				for range strings.Split(line, "; ") {
					reply := c.reply()
					switch {
					case strings.Contains(reply, "# Persistence"):
						reply = "changes:" + infoSections(reply)["Persistence"]["rdb_changes_since_last_save"]
					case time.Now().Unix()-intReply(strings.TrimPrefix(reply, "*1\r\n")) < 60:
						reply = "LASTSAVE"
					}
					replies[name] = append(replies[name], reply)
				}
				eventually(t, name+" has nothing to do", func() bool {
					info := infoSections(c.do("INFO", "persistence"))["Persistence"]
					return info["rdb_bgsave_in_progress"]+info["aof_rewrite_in_progress"]+info["aof_rewrite_scheduled"] == "000"
				})
			}
			if !slices.Equal(replies["celld"], replies["redis"]) {
				return fmt.Sprintf("%s\ncelld %q\nredis %q", line, replies["celld"], replies["redis"])
			}
			return ""
		})
	}
}

// TestPersistenceInfo holds the fields of INFO to Redis's names, and to what is on the disk.
func TestPersistenceInfo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := dial(t, startOn(t, dir, "--appendonly", "yes", "--appendfsync", "always", "--save", "3600 1000").addr)
	redis := dial(t, startRedis(t, "--appendonly", "yes"))
	names := infoSections(redis.do("INFO", "persistence"))["Persistence"]
	for name := range infoSections(c.do("INFO", "persistence"))["Persistence"] {
		if _, ok := names[name]; !ok && name != "aof_write_errors" {
			t.Errorf("Redis has no %s", name)
		}
	}
	began := time.Now().Unix()
	expect := func(when string, want map[string]string) {
		t.Helper()
		info := infoSections(c.do("INFO", "persistence"))["Persistence"]
		for name, value := range want {
			if info[name] != value {
				t.Errorf("%s: %s:%s, want %s", when, name, info[name], value)
			}
		}
		if at, _ := strconv.ParseInt(info["rdb_last_save_time"], 10, 64); at < began-startTimeoutSeconds || at > time.Now().Unix() || intReply(c.do("LASTSAVE")) != at {
			t.Errorf("%s: rdb_last_save_time:%s", when, info["rdb_last_save_time"])
		}
	}
	size := func(file string) string {
		info, err := os.Stat(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		return itoa(info.Size())
	}
	expect("at first", map[string]string{
		"loading": "0", "rdb_changes_since_last_save": "0", "rdb_bgsave_in_progress": "0", "rdb_last_bgsave_status": "ok", "rdb_last_bgsave_time_sec": "-1",
		"rdb_current_bgsave_time_sec": "-1", "rdb_saves": "0", "aof_enabled": "1", "aof_rewrite_in_progress": "0", "aof_last_rewrite_time_sec": "-1",
		"aof_last_bgrewrite_status": "ok", "aof_last_write_status": "ok", "aof_rewrites": "0",
		"aof_current_size": size("appendonly.aof"), "aof_base_size": size("appendonly.aof"),
	})
	for range 3 {
		c.throttle("k", "9", "1", "86400")
	}
	c.throttle("k", "9", "1", "86400", "0") // changes nothing
	c.do("DEL", "nosuch")
	expect("after 3 changes", map[string]string{"rdb_changes_since_last_save": "3", "aof_current_size": size("appendonly.aof")})
	c.do("SAVE")
	expect("after SAVE", map[string]string{"rdb_changes_since_last_save": "0", "rdb_saves": "1", "rdb_last_bgsave_status": "ok"})
	c.do("BGREWRITEAOF")
	eventually(t, "it rewrites", func() bool { return c.persistence("aof_rewrites") == "1" })
	expect("after BGREWRITEAOF", map[string]string{
		"aof_last_bgrewrite_status": "ok", "aof_rewrite_in_progress": "0", "aof_last_rewrite_time_sec": "0",
		"aof_current_size": size("appendonly.aof"), "aof_base_size": size("appendonly.aof"),
	})
	if err := os.Remove(filepath.Join(dir, "dump.rdb")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "dump.rdb", "in the way"), 0o755); err != nil {
		t.Fatal(err)
	}
	c.do("BGSAVE")
	eventually(t, "BGSAVE fails", func() bool { return c.persistence("rdb_last_bgsave_status") == "err" })
	if err := os.RemoveAll(filepath.Join(dir, "dump.rdb")); err != nil {
		t.Fatal(err)
	}
	c.do("BGSAVE")
	eventually(t, "BGSAVE succeeds", func() bool { return c.persistence("rdb_last_bgsave_status") == "ok" })
	expect("after BGSAVE", map[string]string{"rdb_saves": "2", "rdb_last_bgsave_time_sec": "0"})
}

const startTimeoutSeconds = int64(startTimeout / time.Second)

// TestPersistenceAtTheEnd ends servers in every way, and looks at what the next one knows.
func TestPersistenceAtTheEnd(t *testing.T) {
	t.Parallel()
	command := func(words ...string) func(srv *server) {
		return func(srv *server) { c := dial(srv.t, srv.addr); c.send(frame(words...)); c.closed() }
	}
	signal := func(srv *server) { srv.cmd.Process.Signal(syscall.SIGTERM) }
	for _, test := range []struct {
		name, flags string
		end         func(srv *server)
		saves       bool // a snapshot
		knows       bool // what was decided
	}{
		{"SIGTERM", "--save '3600 1'", signal, true, true},
		{"SIGTERM", "--save '3600 1000'", signal, true, true},
		{"SIGTERM", "--save ''", signal, false, false},
		{"SIGTERM", "--appendonly yes", signal, false, true},
		{"SIGTERM", "--appendonly yes --appendfsync no", signal, false, true},
		{"SIGTERM", "--appendonly yes --save '3600 1'", signal, true, true},
		{"SHUTDOWN", "--save '3600 1'", command("SHUTDOWN"), true, true},
		{"SHUTDOWN", "--save ''", command("SHUTDOWN"), false, false},
		{"SHUTDOWN", "--appendonly yes", command("SHUTDOWN"), false, true},
		{"SHUTDOWN SAVE", "--save '3600 1'", command("SHUTDOWN", "SAVE"), true, true},
		{"SHUTDOWN SAVE", "--save ''", command("SHUTDOWN", "SAVE"), true, true},
		{"SHUTDOWN NOSAVE", "--save '3600 1'", command("SHUTDOWN", "NOSAVE"), false, false},
		{"SHUTDOWN NOSAVE", "--appendonly yes", command("SHUTDOWN", "NOSAVE"), false, true},
	} {
		t.Run(test.name+" "+test.flags, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			flags := splitQuoted(t, test.flags)
			srv := startOn(t, dir, flags...)
			dial(t, srv.addr).throttle("k", "9", "1", "86400", "4")
			test.end(srv)
			srv.wait(0)
			_, err := os.Stat(filepath.Join(dir, "dump.rdb"))
			if (err == nil) != test.saves {
				t.Errorf("the snapshot: %v", err)
			}
			checkFiles(t, dir)
			if test.flags == "--save ''" {
				flags = []string{"--save", "3600 1"}
			}
			want := int64(9)
			if test.knows {
				want = 5
			}
			if got := dial(t, startOn(t, dir, flags...).addr).throttle("k", "9", "1", "86400"); got[2] != want {
				t.Errorf("the next server: %v, want %d left", got, want)
			}
			if left := glob(t, dir, "temp-*"); left != nil {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

// TestPersistenceShutdownFails asks for a snapshot that cannot be written: the server stays, unless told to go anyway.
func TestPersistenceShutdownFails(t *testing.T) {
	t.Parallel()
	servers := map[string]func(dir string) string{
		"celld": func(dir string) string {
			srv := spec{flags: []string{"--dir", dir, "--save", "3600 1"}, dies: true}.start(t)
			t.Cleanup(func() { <-srv.exited })
			return srv.addr
		},
		"redis": func(dir string) string {
			addr := startRedis(t, "--dir", dir)
			loaded(dial(t, addr))
			return addr
		},
	}
	replies := map[string]string{}
	for name, at := range servers {
		dir := t.TempDir()
		c := dial(t, at(dir))
		if err := os.MkdirAll(filepath.Join(dir, "dump.rdb", "in the way"), 0o755); err != nil {
			t.Fatal(err)
		}
		c.do("SET", "k", "9000000000000000000")
		replies[name] = c.do("SAVE") + c.do("SHUTDOWN", "SAVE") + c.do("PING")
		c.send(frame("SHUTDOWN", "SAVE", "FORCE"))
		c.closed()
	}
	if replies["celld"] != replies["redis"] {
		t.Errorf("celld %q, redis %q", replies["celld"], replies["redis"])
	}
}

// TestPersistenceConfigSet changes what can be changed, and is told what cannot.
func TestPersistenceConfigSet(t *testing.T) {
	t.Parallel()
	redis := dial(t, startRedis(t))
	const restart = "-ERR CONFIG SET failed (possibly related to argument '%s') - this needs a restart with --%s %s\r\n"
	for _, flags := range []string{"", "--appendonly yes", "--appendonly yes --appendfsync no", "--appendonly yes --appendfsync always"} {
		dir := t.TempDir()
		srv := startOn(t, dir, splitQuoted(t, flags)...)
		c := dial(t, srv.addr)
		on, always := strings.Contains(flags, "yes"), strings.Contains(flags, "always")
		for _, value := range []string{"yes", "no", "maybe"} {
			want := "+OK\r\n"
			switch {
			case value == "maybe":
				want = redis.do("CONFIG", "SET", "appendonly", value)
			case (value == "yes") != on:
				want = fmt.Sprintf(restart, "appendonly", "appendonly", value)
			}
			if got := c.do("CONFIG", "SET", "appendonly", value); got != want {
				t.Errorf("%s: CONFIG SET appendonly %s: %q, want %q", flags, value, got, want)
			}
		}
		if got, want := c.persistence("aof_enabled"), map[bool]string{true: "1", false: "0"}[on]; got != want {
			t.Errorf("%s: aof_enabled:%s", flags, got)
		}
		for _, value := range []string{"everysec", "no", "Everysec", "always", "never"} {
			want := "+OK\r\n"
			switch {
			case value == "never":
				want = redis.do("CONFIG", "SET", "appendfsync", value)
			case on && always != (value == "always"):
				want = fmt.Sprintf(restart, "appendfsync", "appendfsync", value)
			}
			if got := c.do("CONFIG", "SET", "appendfsync", value); got != want {
				t.Errorf("%s: CONFIG SET appendfsync %s: %q, want %q", flags, value, got, want)
			}
		}
		// All or nothing.
		if got := c.do("CONFIG", "SET", "save", "3600 7", "appendfsync", "never"); !strings.HasPrefix(got, "-ERR CONFIG SET failed (possibly related to argument 'appendfsync')") {
			t.Errorf("%s: %q", flags, got)
		}
		if got := pairs(t, c.do("CONFIG", "GET", "save"))["save"]; got != "" {
			t.Errorf("%s: save is %q", flags, got)
		}
		c.throttle("k", "9", "1", "86400", "4")
		srv.end()
		if on {
			if got := dial(t, startOn(t, dir, "--appendonly", "yes").addr).throttle("k", "9", "1", "86400", "0"); got[2] != 6 {
				t.Errorf("%s: after a restart: %v", flags, got)
			}
		}
	}
}

// TestPersistenceTurnedOn has the limits of a server without files outlive the restart that turns on the append-only file.
func TestPersistenceTurnedOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	srv := startOn(t, dir)
	c := dial(t, srv.addr)
	c.throttle("k", "9", "1", "86400", "4")
	c.send(frame("SHUTDOWN", "SAVE"))
	srv.wait(0)
	for range 2 {
		srv = startOn(t, dir, "--appendonly", "yes")
		if got := dial(t, srv.addr).throttle("k", "9", "1", "86400", "0"); got[2] != 6 {
			t.Errorf("after a restart: %v", got)
		}
		srv.end()
	}
}

// TestPersistenceSavePoints waits for a snapshot that nobody asks for.
func TestPersistenceSavePoints(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := dial(t, startOn(t, dir, "--save", "3600 1").addr)
	c.throttle("k", "9", "1", "86400")
	if got := c.do("CONFIG", "SET", "save", "1 1"); got != "+OK\r\n" {
		t.Fatal(got)
	}
	eventually(t, "a snapshot is taken", func() bool { return c.persistence("rdb_saves") == "1" })
	checkFiles(t, dir)
	if got := c.persistence("rdb_changes_since_last_save"); got != "0" {
		t.Errorf("rdb_changes_since_last_save:%s", got)
	}
}

// TestPersistenceRewritesByItself lets the append-only file grow.
func TestPersistenceRewritesByItself(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := dial(t, startOn(t, dir, "--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-min-size", "64kb").addr)
	calls := 0
	eventually(t, "it rewrites", func() bool {
		for range 100 {
			c.throttle(fmt.Sprint("k", calls%10), "100000", "1", "3600")
			calls++
		}
		return c.persistence("aof_rewrites") != "0"
	})
	if size := intReply(c.persistence("aof_current_size")); size > 128<<10 {
		t.Errorf("it has %d bytes, for 10 keys", size)
	}
	checkFiles(t, dir)
}
