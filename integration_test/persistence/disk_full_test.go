package persistence

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// smallDisk is a celld whose --dir is a file system of a megabyte, in a mount namespace of its own.
type smallDisk struct {
	*harness.Server
	dir string // as this process sees it
}

func startOnSmallDisk(t *testing.T, dies bool, flags ...string) *smallDisk {
	t.Helper()
	harness.NeedRoot(t)
	celldtest.Need(t, "unshare")
	dir := t.TempDir()
	const mount = `mount -t tmpfs -o size=1m none "$D" && `
	probe := harness.Command(t, "unshare", "-m", "sh", "-c", mount+"true")
	if probe.Env = append(os.Environ(), "D="+dir); probe.Run() != nil {
		celldtest.Missing(t, "no mounts here")
	}
	srv := harness.Spec{
		Binary: harness.StressBinary(t), Dies: dies, Wrap: []string{"unshare", "-m", "sh", "-c", mount + `exec "$0" "$@"`},
		Env:   []string{"D=" + dir},
		Flags: append([]string{"--dir", dir, "--appendonly", "yes", "--auto-aof-rewrite-percentage", "0"}, flags...),
	}.Start(t)
	return &smallDisk{srv, filepath.Join("/proc", fmt.Sprint(int64(srv.Cmd.Process.Pid)), "root", dir)}
}

// fill takes all space that is left.
func (d *smallDisk) fill() {
	d.T.Helper()
	f, err := os.Create(filepath.Join(d.dir, "filler"))
	if err != nil {
		d.T.Fatal(err)
	}
	defer f.Close()
	for page := make([]byte, 4096); err == nil; {
		_, err = f.Write(page)
	}
}

func (d *smallDisk) free() {
	d.T.Helper()
	if err := os.Remove(filepath.Join(d.dir, "filler")); err != nil {
		d.T.Fatal(err)
	}
}

// restarted is a connection to another celld on a copy of the files.
func (d *smallDisk) restarted() *harness.Conn {
	d.T.Helper()
	dir := copied(d.T, d.dir)
	checkFiles(d.T, dir)
	return harness.Dial(d.T, harness.StartOn(d.T, dir, "--appendonly", "yes").Addr)
}

const misconf = "-MISCONF Errors writing to the AOF file: "

// TestPersistenceDiskFullAlways fills the disk under clients that call. What they are told to have passed is counted in memory and in
// the file; of what is answered -MISCONF what found the disk full may be, which memory and file agree upon.
func TestPersistenceDiskFullAlways(t *testing.T) {
	t.Parallel()
	d := startOnSmallDisk(t, false, "--appendfsync", "always", "--io-threads", "2")
	c := harness.Dial(t, d.Addr)
	c.Throttle("first", "9", "1", "86400")
	const clients, burst = 8, 1_000_000
	passed := make([]map[string]int, clients)
	refused := make([]int, clients)
	const log = "10000/300d,algo=log"
	call := func(key string) []byte {
		if key == "log" {
			return harness.Frame("CL.TAKE", key, log)
		}
		return harness.Frame("CL.THROTTLE", key, fmt.Sprint(burst-1), "1", "3600")
	}
	run := func(rounds int) {
		var running sync.WaitGroup
		for i := range clients {
			conn := harness.Dial(t, d.Addr)
			running.Go(func() {
				for r := range rounds {
					keys := []string{"shared", fmt.Sprint("own:", i), fmt.Sprintf("new:%d:%d", i, r), "log", "shared"}
					var batch []byte
					for _, key := range keys {
						batch = append(batch, call(key)...)
					}
					conn.Write(batch)
					for _, key := range keys {
						raw, err := conn.TryReply(harness.ReplyTimeout)
						if limited, _, ok := crashReply(0, raw); ok && !limited {
							passed[i][key]++
						} else if strings.HasPrefix(raw, misconf) {
							refused[i]++
						} else {
							t.Errorf("%s: %q, %v", key, raw, err)
							return
						}
					}
				}
			})
		}
		running.Wait()
	}
	for i := range passed {
		passed[i] = map[string]int{}
	}
	for range 3 {
		clear(refused)
		run(20)
		if slices.Max(refused) > 0 {
			t.Errorf("refused while there was space: %v", refused)
		}
		d.fill()
		run(100)
		if slices.Min(refused) == 0 {
			t.Errorf("not refused while there was none: %v", refused)
		}
		for _, line := range []string{
			"CL.THROTTLE k 9 1 86400", "CL.THROTTLE first 9 1 86400 0", "SET k 1", "DEL first", "EXPIRE first 10", "PERSIST first",
			"RENAME first second", "RENAMENX first second", "COPY first second", "COPY first k REPLACE", "SETNX second 9000000000000000000",
			"GETSET first 9000000000000000000", "GETDEL first", "GETEX first EX 5", "FLUSHALL",
		} {
			if got := c.Do(strings.Fields(line)...); !strings.HasPrefix(got, misconf) || strings.Count(got, "\r\n") != 1 {
				t.Errorf("%s: %q", line, got)
			}
		}
		c.Do("MULTI")
		c.Send(slices.Concat(call("shared"), harness.Frame("GET", "first"), call("shared"), harness.Frame("EXEC")))
		for range 3 {
			c.Reply()
		}
		if got := c.Reply(); strings.Count(got, misconf) != 2 && !strings.HasPrefix(got, "-EXECABORT") {
			t.Errorf("EXEC: %q", got)
		}
		if got := c.Do("GET", "first"); !strings.HasPrefix(got, "$19\r\n") {
			t.Errorf("GET: %q", got)
		}
		if got := infoField(c, "aof_last_write_status"); got != "err" {
			t.Errorf("aof_last_write_status:%s", got)
		}
		d.free()
		celldtest.Eventually(t, "it recovers", func() bool { return infoField(c, "aof_last_write_status") == "ok" })
	}
	run(20)
	want, asked := map[string]int{"first": 1}, clients*(3*120+20)
	for _, keys := range passed {
		for key, n := range keys {
			want[key] += n
		}
	}
	counted := map[string]int64{}
	for i, conn := range []*harness.Conn{c, d.restarted()} { // in memory, and after a restart
		for key, n := range want {
			limit := []string{key, fmt.Sprint(burst - 1), "1", "3600", "0"}
			if key == "first" {
				limit = []string{key, "9", "1", "86400", "0"}
			}
			count := int64(0)
			if key == "log" {
				got := conn.Take(key, log, "COST", "0")
				count = got.Limit - got.Remaining
			} else {
				got := conn.Throttle(limit...)
				count = got[1] - got[2]
			}
			if i == 1 && count != counted[key] {
				t.Errorf("%s has counted %d calls, and after a restart %d", key, counted[key], count)
			}
			if counted[key] = count; count < int64(n) || count > int64(2*asked) {
				t.Errorf("%s has counted %d calls, %d have passed", key, count, n)
			}
		}
		if got, before := celldtest.IntReply(conn.Do("DBSIZE")), counted["keys"]; got < int64(len(want)) || i == 1 && got != before {
			t.Errorf("%d keys, %d are known; there were %d", got, len(want), before)
		} else {
			counted["keys"] = got
		}
	}
	d.Logs("the append-only file cannot be written", "no space left on device", "the append-only file can be written again")
}

// TestPersistenceDiskFullFlush removes all keys where that is the first that cannot be written: the file has them until there is
// room again, and none when there is.
func TestPersistenceDiskFullFlush(t *testing.T) {
	t.Parallel()
	d := startOnSmallDisk(t, false, "--appendfsync", "always")
	c := harness.Dial(t, d.Addr)
	c.Throttle("first", "9", "1", "86400", "4")
	for size := infoField(c, "aof_current_size"); celldtest.IntReply(size)%4096 < 4096-64; size = infoField(c, "aof_current_size") {
		c.Throttle("second", "1000000", "1", "3600") // so that no page of the file has room for more
	}
	d.fill()
	for _, line := range []string{"FLUSHALL", "FLUSHDB ASYNC"} {
		if got := c.Do(strings.Fields(line)...); !strings.HasPrefix(got, misconf) || strings.Count(got, "\r\n") != 1 {
			t.Errorf("%s: %q", line, got)
		}
	}
	if got := d.restarted().Throttle("first", "9", "1", "86400", "0"); got[2] != 6 {
		t.Errorf("after a restart on the full disk's file: %v", got)
	}
	d.free()
	celldtest.Eventually(t, "it recovers", func() bool { return infoField(c, "aof_last_write_status") == "ok" })
	for name, conn := range map[string]*harness.Conn{"in memory": c, "after a restart": d.restarted()} {
		if got := celldtest.IntReply(conn.Do("DBSIZE")); got != 0 {
			t.Errorf("%s: %d keys", name, got)
		}
	}
	c.Throttle("first", "9", "1", "86400", "4")
	if got := c.Do("FLUSHALL"); got != "+OK\r\n" {
		t.Errorf("FLUSHALL: %q", got)
	}
	if got := celldtest.IntReply(d.restarted().Do("DBSIZE")); got != 0 {
		t.Errorf("after FLUSHALL and a restart: %d keys", got)
	}
}

// TestPersistenceDiskFullEverySecond goes on deciding, and writes it all when there is space again.
func TestPersistenceDiskFullEverySecond(t *testing.T) {
	t.Parallel()
	d := startOnSmallDisk(t, false, "--save", "3600 1000000")
	c := harness.Dial(t, d.Addr)
	d.fill()
	calls := int64(0)
	more := func() {
		for range 200 {
			calls++
			if got := c.Throttle(fmt.Sprint("new:", calls), "9", "1", "86400"); got[0] != 0 || got[2] != 9 {
				t.Fatalf("CL.THROTTLE: %v", got)
			}
		}
	}
	celldtest.Eventually(t, "INFO says that the file cannot be written", func() bool {
		more()
		return infoField(c, "aof_last_write_status") == "err"
	})
	more()
	status := map[string]string{"BGSAVE": "rdb_last_bgsave_status", "BGREWRITEAOF": "aof_last_bgrewrite_status"}
	for _, command := range []string{"BGSAVE", "BGREWRITEAOF"} { // these fail, and leave nothing behind
		c.Do(command)
		celldtest.Eventually(t, command+" fails", func() bool { return infoField(c, status[command]) == "err" })
	}
	if got := c.Do("SAVE"); !strings.HasPrefix(got, "-ERR") {
		t.Errorf("SAVE: %q", got)
	}
	celldtest.Eventually(t, "there are three files, with those of the lock and of the test", func() bool {
		return len(glob(t, d.dir, "*")) == 3
	})
	d.free()
	celldtest.Eventually(t, "INFO says that it can be written", func() bool { return infoField(c, "aof_last_write_status") == "ok" })
	for _, command := range []string{"BGSAVE", "BGREWRITEAOF"} {
		c.Do(command)
		celldtest.Eventually(t, command+" succeeds", func() bool { return infoField(c, status[command]) == "ok" })
	}
	last := stateOf(c, fmt.Sprint("new:", calls))
	celldtest.Eventually(t, "all is in the file", func() bool {
		return bytes.Contains([]byte(celldtest.ReadFile(t, d.dir, "appendonly.aof")), []byte(last.tat))
	})
	r := d.restarted()
	if got := celldtest.IntReply(r.Do("DBSIZE")); got != calls {
		t.Errorf("after a restart: %d keys, want %d", got, calls)
	}
	same(t, "after a restart", map[string]keyState{"last": stateOf(r, fmt.Sprint("new:", calls))}, map[string]keyState{"last": last})
	d.Logs("the append-only file cannot be written", "no space left on device", "the append-only file can be written again",
		"the snapshot failed", "rewriting the append-only file failed")
}

// TestPersistenceDiskFullAtTheEnd ends celld while it cannot write what it has decided: it says so, by its exit code too.
func TestPersistenceDiskFullAtTheEnd(t *testing.T) {
	t.Parallel()
	for _, fsync := range []string{"always", "everysec"} {
		d := startOnSmallDisk(t, true, "--appendfsync", fsync)
		c := harness.Dial(t, d.Addr)
		d.fill()
		celldtest.Eventually(t, "INFO says that the file cannot be written", func() bool {
			for i := range 200 {
				c.Do("CL.THROTTLE", fmt.Sprint("key:", i), "9", "1", "86400")
			}
			return infoField(c, "aof_last_write_status") == "err"
		})
		d.Cmd.Process.Signal(syscall.SIGTERM)
		d.Wait(1)
		d.Logs("celld: write the append-only file: ", "no space left on device")
	}
}
