package integration_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// persister is one of the two servers whose files serve each other.
type persister struct {
	files map[string]string // of each format
	start func(t *testing.T, dir, format string) *conn
	write func(c *conn, format string) // has all keys in the files
}

var persisters = map[string]persister{
	"celld": {
		files: map[string]string{"rdb": "dump.rdb", "aof": "appendonly.aof"},
		start: func(t *testing.T, dir, format string) *conn {
			flags := map[string][]string{"rdb": {"--save", "3600 1"}, "aof": {"--appendonly", "yes", "--appendfsync", "always"}}
			return dial(t, startOn(t, dir, flags[format]...).addr)
		},
		write: func(c *conn, format string) {
			if format == "rdb" {
				c.do("SAVE")
			}
		},
	},
	// redis-cell 0.2.2 changes keys behind Redis's back: no CL.THROTTLE is in the append-only file, and it counts as no change
	// for a save point. Its limits come into the file with the next BGREWRITEAOF, in an RDB file, the base; what follows has
	// what other commands did. From 0.3 on the file has the calls as well: see TestPersistenceOfCalls.
	"redis-cell": {
		files: map[string]string{"rdb": "dump.rdb", "aof": "appendonlydir"},
		start: func(t *testing.T, dir, format string) *conn {
			flags := map[string][]string{"aof": {"--appendonly", "yes", "--appendfsync", "always"}}
			c := dial(t, startRedis(t, append([]string{"--loadmodule", modulePath(t), "--dir", dir}, flags[format]...)...))
			loaded(c)
			return c
		},
		write: func(c *conn, format string) {
			if format == "rdb" {
				c.do("SAVE")
				return
			}
			c.do("BGREWRITEAOF")
			eventually(c.t, "redis-server rewrites", func() bool {
				return c.persistence("aof_rewrite_in_progress") == "0" && c.persistence("aof_rewrite_scheduled") == "0"
			})
		},
	},
}

// limitsToMove are limits of all kinds. The rates are so slow that nothing changes while the test runs.
func limitsToMove(c *conn) {
	c.t.Helper()
	at := time.Now().Add(time.Hour)
	for _, line := range []string{
		"CL.THROTTLE spent 1 1 86400", "CL.THROTTLE spent 1 1 86400",
		"CL.THROTTLE half 9 1 86400 5",
		"CL.THROTTLE 12345 15 30 600000",
		"CL.THROTTLE " + strings.Repeat("a", 5000) + " 15 30 600000", // Redis compresses it
		`CL.THROTTLE "\x01 ключ" 15 30 600000`,
		`CL.THROTTLE "" 15 30 600000`,
		"CL.THROTTLE forever 9 1 86400", "PERSIST forever",
		"CL.THROTTLE sooner 9 1 86400", "PEXPIREAT sooner " + itoa(at.UnixMilli()),
		"SET set " + itoa(at.UnixNano()) + " PXAT " + itoa(at.UnixMilli()+1),
		"CL.THROTTLE gone 9 1 86400", "DEL gone",
		"SET soon " + itoa(time.Now().Add(time.Millisecond).UnixNano()) + " PX 1",
	} {
		if got := c.do(splitQuoted(c.t, line)...); got[0] == '-' {
			c.t.Fatalf("%.40s: %s", line, got)
		}
	}
	eventually(c.t, "a key expires", func() bool { return c.do("EXISTS", "soon") == ":0\r\n" })
}

// TestPersistenceMoves hands limits from server to server by their files. None may lose or gain a nanosecond.
func TestPersistenceMoves(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"redis-cell to celld to redis-cell", "celld to redis-cell to celld", "celld to celld"} {
		for _, format := range []string{"rdb", "aof"} {
			t.Run(format+" "+way, func(t *testing.T) {
				t.Parallel()
				servers := strings.Split(way, " to ")
				dir := t.TempDir()
				c := persisters[servers[0]].start(t, dir, format)
				limitsToMove(c)
				want := c.states()
				for i, name := range servers[1:] {
					persisters[servers[i]].write(c, format)
					checkFiles(t, dir)
					dir = copied(t, dir, persisters[servers[i]].files[format])
					c = persisters[name].start(t, dir, format)
					same(t, fmt.Sprintf("%s, server %d", name, i+2), c.states(), want)
					if got := c.throttle("spent", "1", "1", "86400"); got[0] != 1 || got[2] != 0 {
						t.Errorf("%s: %v of what was spent", name, got)
					}
					if got := c.throttle("half", "9", "1", "86400"); got[0] != 0 || got[2] != int64(4-i) {
						t.Errorf("%s: %v of what was half spent", name, got)
					}
					want = c.states()
				}
			})
		}
	}
}

// TestPersistenceFilesAreRedis has Redis's tools read our files after every way to write them.
func TestPersistenceFilesAreRedis(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := dial(t, startOn(t, dir, "--appendonly", "yes", "--save", "3600 1").addr)
	written := func() string { return c.persistence("aof_current_size") }
	limitsToMove(c)
	eventually(t, "changes are written", func() bool { return written() != "0" && c.persistence("aof_buffer_length") == "0" })
	for _, step := range []func(){
		func() { c.do("SAVE") },
		func() { c.throttle("appended", "9", "1", "86400") },
		func() { c.do("BGREWRITEAOF") },
		func() { c.do("DEL", "appended") },
		func() { c.do("FLUSHALL") },
		func() { c.do("SAVE") },
		func() { c.do("BGREWRITEAOF") },
	} {
		before, rewrites := written(), c.persistence("aof_rewrites")
		saves := c.persistence("rdb_saves")
		step()
		eventually(t, "a file changes", func() bool {
			return c.persistence("aof_rewrites") != rewrites || c.persistence("rdb_saves") != saves || written() != before
		})
		checkFiles(t, dir)
	}
}

// TestPersistencePipe adds the limits of a file to a server that runs, ours and theirs.
func TestPersistencePipe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from := dial(t, startOn(t, dir, "--appendonly", "yes", "--appendfsync", "always").addr)
	limitsToMove(from)
	file := readFile(t, dir, "appendonly.aof")
	for name, addr := range map[string]string{"celld": start(t).addr, "redis-server": startRedis(t)} {
		args := []string{"-s", strings.TrimPrefix(addr, "unix:"), "--pipe"}
		if host, port := hostPort(addr); name == "celld" {
			args = []string{"-h", host, "-p", port, "--pipe"}
		}
		out, err := tryTool(t, file, "redis-cli", args...)
		if want := fmt.Sprintf("errors: 0, replies: %d", strings.Count(file, "*")); err != nil || !strings.Contains(out, want) {
			t.Errorf("redis-cli --pipe to %s: %v, %s, want %s", name, err, out, want)
		}
		same(t, name, dial(t, addr).states(), from.states())
	}
}
