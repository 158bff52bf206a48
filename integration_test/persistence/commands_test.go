package persistence

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

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// TestPersistenceReplies compares replies with redis-server's. The commands of a line arrive together, so that no snapshot
// or rewrite that one begins ends before the next.
func TestPersistenceReplies(t *testing.T) {
	t.Parallel()
	for _, flags := range []string{"", "--appendonly yes", "--save '3600 1'"} {
		t.Run(flags, func(t *testing.T) {
			t.Parallel()
			comparePersistenceReplies(t, celldtest.SplitQuoted(t, flags))
		})
	}
}

func comparePersistenceReplies(t *testing.T, flags []string) {
	t.Helper()
	celldAt := harness.StartOn(t, t.TempDir(), append([]string{"--io-threads", "1"}, flags...)...).Addr
	redisAt := celldtest.StartRedis(t, flags...)
	both := map[string]*harness.Conn{"celld": harness.Dial(t, celldAt), "redis": harness.Dial(t, redisAt)}
	for _, line := range []string{
		"SAVE", "SET k 9000000000000000000; SAVE; INFO", "BGSAVE", "BGSAVE SCHEDULE", "bgsave schedule", "BGREWRITEAOF",
		"BGSAVE; BGSAVE; BGSAVE SCHEDULE; SAVE; BGREWRITEAOF; BGREWRITEAOF",
		"BGREWRITEAOF; BGREWRITEAOF; BGSAVE; BGSAVE SCHEDULE; SAVE",
		"MULTI; SAVE; EXEC", "MULTI; SHUTDOWN; EXEC", "MULTI; LASTSAVE; EXEC", "MULTI; BGREWRITEAOF; SAVE; EXEC",
		"MULTI; BGSAVE; BGSAVE; BGREWRITEAOF; BGSAVE SCHEDULE; EXEC",
		"MULTI; BGREWRITEAOF; BGREWRITEAOF; BGSAVE; BGSAVE x; UNWATCH; BGSAVE; EXEC",
		"BGSAVE; MULTI; BGSAVE; BGSAVE SCHEDULE; BGREWRITEAOF; EXEC", "BGREWRITEAOF; MULTI; BGSAVE; BGREWRITEAOF; EXEC; BGSAVE",
		"MULTI; BGSAVE; EXEC; BGSAVE", "MULTI; BGREWRITEAOF; EXEC; BGREWRITEAOF",
		"SAVE x", "BGSAVE x", "BGSAVE SCHEDULE x", "BGREWRITEAOF x", "LASTSAVE x",
		"SHUTDOWN x", "SHUTDOWN SAVE NOSAVE", "SHUTDOWN ABORT", "SHUTDOWN ABORT SAVE", "LASTSAVE",
		"CONFIG SET save x", "CONFIG SET save '1'", "CONFIG SET save '0 1'", "CONFIG SET save '-1 1'", "CONFIG SET save '1 -1'",
		"CONFIG SET save '1 x'",
		"CONFIG SET save '99999999999 1'; CONFIG GET save; CONFIG SET save '1 99999999999'; CONFIG SET save '1 1x'; CONFIG SET save ''",
		"CONFIG SET save '3600 1 300 100'; CONFIG GET save; CONFIG SET save ''; CONFIG GET save",
		"CONFIG GET dbfilename", "CONFIG GET appendfilename",
		"CONFIG SET appendfilename x", "CONFIG GET appendonly", "CONFIG GET appendfsync",
		"CONFIG GET auto-aof-rewrite-percentage", "CONFIG GET auto-aof-rewrite-min-size", "CONFIG GET aof-load-truncated",
	} {
		celldtest.Again(t, func(string) string { // a loaded machine may stop celld between two commands until a snapshot is done
			replies := map[string][]string{}
			for name, c := range both {
				var batch []byte
				for command := range strings.SplitSeq(line, "; ") {
					batch = append(batch, harness.Frame(celldtest.SplitQuoted(t, command)...)...)
				}
				c.Send(batch)
				for range strings.Split(line, "; ") {
					reply := c.Reply()
					switch {
					case strings.Contains(reply, "# Persistence"):
						reply = "changes:" + harness.InfoSections(reply)["Persistence"]["rdb_changes_since_last_save"]
					case time.Now().Unix()-celldtest.IntReply(strings.TrimPrefix(reply, "*1\r\n")) < 60:
						reply = "LASTSAVE"
					}
					replies[name] = append(replies[name], reply)
				}
				celldtest.Eventually(t, name+" has nothing to do", func() bool {
					info := harness.InfoSections(c.Do("INFO", "persistence"))["Persistence"]
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
	c := harness.Dial(t, harness.StartOn(t, dir, "--appendonly", "yes", "--appendfsync", "always", "--save", "3600 1000").Addr)
	redis := harness.Dial(t, celldtest.StartRedis(t, "--appendonly", "yes"))
	names := harness.InfoSections(redis.Do("INFO", "persistence"))["Persistence"]
	for name := range harness.InfoSections(c.Do("INFO", "persistence"))["Persistence"] {
		if _, ok := names[name]; !ok && name != "aof_write_errors" {
			t.Errorf("Redis has no %s", name)
		}
	}
	const someSeconds = "0 to 9" // on a loaded machine
	began := time.Now().Unix()
	expect := func(when string, want map[string]string) {
		t.Helper()
		info := harness.InfoSections(c.Do("INFO", "persistence"))["Persistence"]
		for name, value := range want {
			if is := info[name]; is != value && !(value == someSeconds && len(is) == 1) {
				t.Errorf("%s: %s:%s, want %s", when, name, is, value)
			}
		}
		at, _ := strconv.ParseInt(info["rdb_last_save_time"], 10, 64)
		if at < began-startTimeoutSeconds || at > time.Now().Unix() || celldtest.IntReply(c.Do("LASTSAVE")) != at {
			t.Errorf("%s: rdb_last_save_time:%s", when, info["rdb_last_save_time"])
		}
	}
	size := func(file string) string {
		info, err := os.Stat(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(info.Size())
	}
	expect("at first", map[string]string{
		"loading": "0", "rdb_changes_since_last_save": "0", "rdb_bgsave_in_progress": "0", "rdb_last_bgsave_status": "ok",
		"rdb_last_bgsave_time_sec": "-1", "rdb_current_bgsave_time_sec": "-1", "rdb_saves": "0", "aof_enabled": "1",
		"aof_rewrite_in_progress": "0", "aof_last_rewrite_time_sec": "-1", "aof_last_bgrewrite_status": "ok", "aof_last_write_status": "ok",
		"aof_rewrites": "0", "aof_current_size": size("appendonly.aof"), "aof_base_size": size("appendonly.aof"),
	})
	for range 3 {
		c.Throttle("k", "9", "1", "86400")
	}
	c.Throttle("k", "9", "1", "86400", "0") // changes nothing
	c.Do("DEL", "nosuch")
	expect("after 3 changes", map[string]string{"rdb_changes_since_last_save": "3", "aof_current_size": size("appendonly.aof")})
	c.Do("SAVE")
	expect("after SAVE", map[string]string{"rdb_changes_since_last_save": "0", "rdb_saves": "1", "rdb_last_bgsave_status": "ok"})
	c.Do("BGREWRITEAOF")
	celldtest.Eventually(t, "it rewrites", func() bool { return infoField(c, "aof_rewrites") == "1" })
	expect("after BGREWRITEAOF", map[string]string{
		"aof_last_bgrewrite_status": "ok", "aof_rewrite_in_progress": "0", "aof_last_rewrite_time_sec": someSeconds,
		"aof_current_size": size("appendonly.aof"), "aof_base_size": size("appendonly.aof"),
	})
	if err := os.Remove(filepath.Join(dir, "dump.rdb")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "dump.rdb", "in the way"), 0o755); err != nil {
		t.Fatal(err)
	}
	c.Do("BGSAVE")
	celldtest.Eventually(t, "BGSAVE fails", func() bool { return infoField(c, "rdb_last_bgsave_status") == "err" })
	if err := os.RemoveAll(filepath.Join(dir, "dump.rdb")); err != nil {
		t.Fatal(err)
	}
	c.Do("BGSAVE")
	celldtest.Eventually(t, "BGSAVE succeeds", func() bool { return infoField(c, "rdb_last_bgsave_status") == "ok" })
	expect("after BGSAVE", map[string]string{"rdb_saves": "2", "rdb_last_bgsave_time_sec": someSeconds})
}

const startTimeoutSeconds = int64(harness.StartTimeout / time.Second)

// TestPersistenceAtTheEnd ends servers in every way, and looks at what the next one knows.
func TestPersistenceAtTheEnd(t *testing.T) {
	t.Parallel()
	command := func(words ...string) func(srv *harness.Server) {
		return func(srv *harness.Server) {
			c := harness.Dial(srv.T, srv.Addr)
			c.Send(harness.Frame(words...))
			c.Closed()
		}
	}
	signal := func(srv *harness.Server) { srv.Cmd.Process.Signal(syscall.SIGTERM) }
	for _, test := range []struct {
		name, flags string
		end         func(srv *harness.Server)
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
			flags := celldtest.SplitQuoted(t, test.flags)
			srv := harness.StartOn(t, dir, flags...)
			harness.Dial(t, srv.Addr).Throttle("k", "9", "1", "86400", "4")
			test.end(srv)
			srv.Wait(0)
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
			if got := harness.Dial(t, harness.StartOn(t, dir, flags...).Addr).Throttle("k", "9", "1", "86400"); got[2] != want {
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
			srv := harness.Spec{Flags: []string{"--dir", dir, "--save", "3600 1"}, Dies: true}.Start(t)
			t.Cleanup(func() { <-srv.Exited })
			return srv.Addr
		},
		"redis": func(dir string) string {
			addr := celldtest.StartRedis(t, "--dir", dir)
			loaded(harness.Dial(t, addr))
			return addr
		},
	}
	replies := map[string]string{}
	for name, at := range servers {
		dir := t.TempDir()
		c := harness.Dial(t, at(dir))
		if err := os.MkdirAll(filepath.Join(dir, "dump.rdb", "in the way"), 0o755); err != nil {
			t.Fatal(err)
		}
		c.Do("SET", "k", "9000000000000000000")
		replies[name] = c.Do("SAVE") + c.Do("SHUTDOWN", "SAVE") + c.Do("PING")
		c.Send(harness.Frame("SHUTDOWN", "SAVE", "FORCE"))
		c.Closed()
	}
	if replies["celld"] != replies["redis"] {
		t.Errorf("celld %q, redis %q", replies["celld"], replies["redis"])
	}
}

// TestPersistenceConfigSet changes the settings that may change, and gets errors for the others.
func TestPersistenceConfigSet(t *testing.T) {
	t.Parallel()
	redis := harness.Dial(t, celldtest.StartRedis(t))
	const restart = "-ERR CONFIG SET failed (possibly related to argument '%s') - this needs a restart with --%s %s\r\n"
	for _, flags := range []string{"", "--appendonly yes", "--appendonly yes --appendfsync no", "--appendonly yes --appendfsync always"} {
		dir := t.TempDir()
		srv := harness.StartOn(t, dir, celldtest.SplitQuoted(t, flags)...)
		c := harness.Dial(t, srv.Addr)
		on, always := strings.Contains(flags, "yes"), strings.Contains(flags, "always")
		for _, value := range []string{"yes", "no", "maybe"} {
			want := "+OK\r\n"
			switch {
			case value == "maybe":
				want = redis.Do("CONFIG", "SET", "appendonly", value)
			case (value == "yes") != on:
				want = fmt.Sprintf(restart, "appendonly", "appendonly", value)
			}
			if got := c.Do("CONFIG", "SET", "appendonly", value); got != want {
				t.Errorf("%s: CONFIG SET appendonly %s: %q, want %q", flags, value, got, want)
			}
		}
		if got, want := infoField(c, "aof_enabled"), map[bool]string{true: "1", false: "0"}[on]; got != want {
			t.Errorf("%s: aof_enabled:%s", flags, got)
		}
		for _, value := range []string{"everysec", "no", "Everysec", "always", "never"} {
			want := "+OK\r\n"
			switch {
			case value == "never":
				want = redis.Do("CONFIG", "SET", "appendfsync", value)
			case on && always != (value == "always"):
				want = fmt.Sprintf(restart, "appendfsync", "appendfsync", value)
			}
			if got := c.Do("CONFIG", "SET", "appendfsync", value); got != want {
				t.Errorf("%s: CONFIG SET appendfsync %s: %q, want %q", flags, value, got, want)
			}
		}
		// All or nothing.
		got := c.Do("CONFIG", "SET", "save", "3600 7", "appendfsync", "never")
		if !strings.HasPrefix(got, "-ERR CONFIG SET failed (possibly related to argument 'appendfsync')") {
			t.Errorf("%s: %q", flags, got)
		}
		if got := harness.Pairs(t, c.Do("CONFIG", "GET", "save"))["save"]; got != "" {
			t.Errorf("%s: save is %q", flags, got)
		}
		c.Throttle("k", "9", "1", "86400", "4")
		srv.Stop()
		if on {
			got := harness.Dial(t, harness.StartOn(t, dir, "--appendonly", "yes").Addr).Throttle("k", "9", "1", "86400", "0")
			if got[2] != 6 {
				t.Errorf("%s: after a restart: %v", flags, got)
			}
		}
	}
}

// TestPersistenceTurnedOn checks that the limits of a server without files outlive the restart that turns on the append-only file.
func TestPersistenceTurnedOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	srv := harness.StartOn(t, dir)
	c := harness.Dial(t, srv.Addr)
	c.Throttle("k", "9", "1", "86400", "4")
	c.Send(harness.Frame("SHUTDOWN", "SAVE"))
	srv.Wait(0)
	for range 2 {
		srv = harness.StartOn(t, dir, "--appendonly", "yes")
		if got := harness.Dial(t, srv.Addr).Throttle("k", "9", "1", "86400", "0"); got[2] != 6 {
			t.Errorf("after a restart: %v", got)
		}
		srv.Stop()
	}
}

// TestPersistenceSavePoints waits for a snapshot that nobody asks for.
func TestPersistenceSavePoints(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := harness.Dial(t, harness.StartOn(t, dir, "--save", "3600 1").Addr)
	c.Throttle("k", "9", "1", "86400")
	if got := c.Do("CONFIG", "SET", "save", "1 1"); got != "+OK\r\n" {
		t.Fatal(got)
	}
	celldtest.Eventually(t, "a snapshot is taken", func() bool { return infoField(c, "rdb_saves") == "1" })
	checkFiles(t, dir)
	if got := infoField(c, "rdb_changes_since_last_save"); got != "0" {
		t.Errorf("rdb_changes_since_last_save:%s", got)
	}
}

// TestPersistenceRewritesByItself lets the append-only file grow.
func TestPersistenceRewritesByItself(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := harness.Dial(t,
		harness.StartOn(t, dir, "--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-min-size", "64kb").Addr)
	calls := 0
	celldtest.Eventually(t, "it rewrites", func() bool {
		for range 100 {
			c.Throttle(fmt.Sprint("k", calls%10), "100000", "1", "3600")
			calls++
		}
		return infoField(c, "aof_rewrites") != "0"
	})
	if size := celldtest.IntReply(infoField(c, "aof_current_size")); size > 128<<10 {
		t.Errorf("it has %d bytes, for 10 keys", size)
	}
	checkFiles(t, dir)
}
