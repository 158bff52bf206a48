package persistence

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// persister is one of the two servers whose files serve each other.
type persister struct {
	files map[string]string // of each format
	start func(t *testing.T, dir, format string) *harness.Conn
	write func(c *harness.Conn, format string) // has all keys in the files
}

var persisters = map[string]persister{
	"celld": {
		files: map[string]string{"rdb": "dump.rdb", "aof": "appendonly.aof"},
		start: func(t *testing.T, dir, format string) *harness.Conn {
			flags := map[string][]string{"rdb": {"--save", "3600 1"}, "aof": {"--appendonly", "yes", "--appendfsync", "always"}}
			return harness.Dial(t, harness.StartOn(t, dir, flags[format]...).Addr)
		},
		write: func(c *harness.Conn, format string) {
			if format == "rdb" {
				c.Do("SAVE")
			}
		},
	},
	// redis-cell 0.2.2 changes keys behind Redis's back: no CL.THROTTLE is in the append-only file, and it counts as no change
	// for a save point. Its limits come into the file with the next BGREWRITEAOF, in an RDB file, the base; what follows has
	// what other commands did. From 0.3 on the file has the calls as well: see TestPersistenceOfCalls.
	"redis-cell": {
		files: map[string]string{"rdb": "dump.rdb", "aof": "appendonlydir"},
		start: func(t *testing.T, dir, format string) *harness.Conn {
			flags := map[string][]string{"aof": {"--appendonly", "yes", "--appendfsync", "always"}}
			c := harness.Dial(t,
				celldtest.StartRedis(t, append([]string{"--loadmodule", harness.ModulePath(t), "--dir", dir}, flags[format]...)...))
			loaded(c)
			return c
		},
		write: func(c *harness.Conn, format string) {
			if format == "rdb" {
				c.Do("SAVE")
				return
			}
			c.Do("BGREWRITEAOF")
			celldtest.Eventually(c.T, "redis-server rewrites", func() bool {
				return infoField(c, "aof_rewrite_in_progress") == "0" && infoField(c, "aof_rewrite_scheduled") == "0"
			})
		},
	},
}

// limitsToMove are limits of all kinds. The rates are so slow that nothing changes while the test runs.
func limitsToMove(c *harness.Conn) {
	c.T.Helper()
	at := time.Now().Add(time.Hour)
	for _, line := range []string{
		"CL.THROTTLE spent 1 1 86400", "CL.THROTTLE spent 1 1 86400",
		"CL.THROTTLE half 9 1 86400 5",
		"CL.THROTTLE 12345 15 30 600000",
		"CL.THROTTLE " + strings.Repeat("a", 5000) + " 15 30 600000", // Redis compresses it
		`CL.THROTTLE "\x01 ключ" 15 30 600000`,
		`CL.THROTTLE "" 15 30 600000`,
		"CL.THROTTLE forever 9 1 86400", "PERSIST forever",
		"CL.THROTTLE sooner 9 1 86400", "PEXPIREAT sooner " + fmt.Sprint(at.UnixMilli()),
		"SET set " + fmt.Sprint(at.UnixNano()) + " PXAT " + fmt.Sprint(at.UnixMilli()+1),
		"CL.THROTTLE gone 9 1 86400", "DEL gone",
		"SET soon " + fmt.Sprint(time.Now().Add(time.Millisecond).UnixNano()) + " PX 1",
	} {
		if got := c.Do(celldtest.SplitQuoted(c.T, line)...); got[0] == '-' {
			c.T.Fatalf("%.40s: %s", line, got)
		}
	}
	celldtest.Eventually(c.T, "a key expires", func() bool { return c.Do("EXISTS", "soon") == ":0\r\n" })
}

// forever sets what becomes of the key without an expiry: in celld's files it expires shortly after its TAT, and celld reads that as none.
func forever(states map[string]keyState, inCelld bool) map[string]keyState {
	st := states["forever"]
	if st.expires = -1; !inCelld {
		tat, _ := strconv.ParseInt(st.tat, 10, 64)
		st.expires = tat/1e6 + 3
	}
	states["forever"] = st
	return states
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
				want := statesOf(c)
				for i, name := range servers[1:] {
					persisters[servers[i]].write(c, format)
					checkFiles(t, dir)
					dir = copied(t, dir, persisters[servers[i]].files[format])
					c = persisters[name].start(t, dir, format)
					same(t, fmt.Sprintf("%s, server %d", name, i+2), statesOf(c), forever(want, name == "celld"))
					if got := c.Throttle("spent", "1", "1", "86400"); got[0] != 1 || got[2] != 0 {
						t.Errorf("%s: %v of what was taken", name, got)
					}
					if got := c.Throttle("half", "9", "1", "86400"); got[0] != 0 || got[2] != int64(4-i) {
						t.Errorf("%s: %v of what was half spent", name, got)
					}
					want = statesOf(c)
				}
			})
		}
	}
}

// TestPersistenceFilesAreRedis reads our files with Redis's tools after every way to write them.
func TestPersistenceFilesAreRedis(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := harness.Dial(t, harness.StartOn(t, dir, "--appendonly", "yes", "--save", "3600 1").Addr)
	written := func() string { return infoField(c, "aof_current_size") }
	limitsToMove(c)
	celldtest.Eventually(t, "changes are written", func() bool { return written() != "0" && infoField(c, "aof_buffer_length") == "0" })
	for _, step := range []func(){
		func() { c.Do("SAVE") },
		func() { c.Throttle("appended", "9", "1", "86400") },
		func() { c.Do("BGREWRITEAOF") },
		func() { c.Do("DEL", "appended") },
		func() { c.Do("FLUSHALL") },
		func() { c.Do("SAVE") },
		func() { c.Do("BGREWRITEAOF") },
	} {
		before, rewrites := written(), infoField(c, "aof_rewrites")
		saves := infoField(c, "rdb_saves")
		step()
		celldtest.Eventually(t, "a file changes", func() bool {
			return infoField(c, "aof_rewrites") != rewrites || infoField(c, "rdb_saves") != saves || written() != before
		})
		checkFiles(t, dir)
	}
}

// TestPersistencePipe adds the limits of a file to a server that runs, ours and theirs.
func TestPersistencePipe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from := harness.Dial(t, harness.StartOn(t, dir, "--appendonly", "yes", "--appendfsync", "always").Addr)
	limitsToMove(from)
	file := celldtest.ReadFile(t, dir, "appendonly.aof")
	for name, addr := range map[string]string{"celld": harness.Start(t).Addr, "redis-server": celldtest.StartRedis(t)} {
		args := []string{"-s", strings.TrimPrefix(addr, "unix:"), "--pipe"}
		if host, port := harness.HostPort(addr); name == "celld" {
			args = []string{"-h", host, "-p", port, "--pipe"}
		}
		out, err := harness.TryTool(t, file, "redis-cli", args...)
		if want := fmt.Sprintf("errors: 0, replies: %d", strings.Count(file, "*")); err != nil || !strings.Contains(out, want) {
			t.Errorf("redis-cli --pipe to %s: %v, %s, want %s", name, err, out, want)
		}
		same(t, name, statesOf(harness.Dial(t, addr)), forever(statesOf(from), false))
	}
}
