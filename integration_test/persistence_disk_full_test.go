package integration_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// smallDisk is a celld whose --dir is a file system of a megabyte, in a mount namespace of its own.
type smallDisk struct {
	*server
	dir string // as this process sees it
}

func startOnSmallDisk(t *testing.T, dies bool, flags ...string) *smallDisk {
	t.Helper()
	needRoot(t)
	need(t, "unshare")
	dir := t.TempDir()
	const mount = `mount -t tmpfs -o size=1m none "$D" && `
	probe := exec.Command("unshare", "-m", "sh", "-c", mount+"true")
	if probe.Env = append(os.Environ(), "D="+dir); probe.Run() != nil {
		missing(t, "no mounts here")
	}
	srv := spec{
		binary: stressBinary, dies: dies, wrap: []string{"unshare", "-m", "sh", "-c", mount + `exec "$0" "$@"`}, env: []string{"D=" + dir},
		flags: append([]string{"--dir", dir, "--appendonly", "yes", "--auto-aof-rewrite-percentage", "0"}, flags...),
	}.start(t)
	return &smallDisk{srv, filepath.Join("/proc", itoa(int64(srv.cmd.Process.Pid)), "root", dir)}
}

// fill takes all space that is left.
func (d *smallDisk) fill() {
	d.t.Helper()
	f, err := os.Create(filepath.Join(d.dir, "filler"))
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	for page := make([]byte, 4096); err == nil; {
		_, err = f.Write(page)
	}
}

func (d *smallDisk) free() {
	d.t.Helper()
	if err := os.Remove(filepath.Join(d.dir, "filler")); err != nil {
		d.t.Fatal(err)
	}
}

// restarted is a connection to another celld on a copy of the files.
func (d *smallDisk) restarted() *conn {
	d.t.Helper()
	dir := copied(d.t, d.dir)
	checkFiles(d.t, dir)
	return dial(d.t, startOn(d.t, dir, "--appendonly", "yes").addr)
}

const misconf = "-MISCONF Errors writing to the AOF file: "

// TestPersistenceDiskFullAlways fills the disk under clients that call. What they are not told to have passed is not
// counted, neither in memory nor in the file.
func TestPersistenceDiskFullAlways(t *testing.T) {
	t.Parallel()
	d := startOnSmallDisk(t, false, "--appendfsync", "always", "--io-threads", "2")
	c := dial(t, d.addr)
	c.throttle("first", "9", "1", "86400")
	const clients, burst = 8, 1_000_000
	passed := make([]map[string]int, clients)
	refused := make([]int, clients)
	const log = "10000/300d,algo=log"
	call := func(key string) []byte {
		if key == "log" {
			return frame("CL.TAKE", key, log)
		}
		return frame("CL.THROTTLE", key, itoa(burst-1), "1", "3600")
	}
	run := func(rounds int) {
		var running sync.WaitGroup
		for i := range clients {
			conn := dial(t, d.addr)
			running.Go(func() {
				for r := range rounds {
					keys := []string{"shared", fmt.Sprint("own:", i), fmt.Sprintf("new:%d:%d", i, r), "log", "shared"}
					var batch []byte
					for _, key := range keys {
						batch = append(batch, call(key)...)
					}
					conn.Write(batch)
					for _, key := range keys {
						raw, err := conn.tryReply(replyTimeout)
						if limited, _, ok := crashReply(raw); ok && !limited {
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
			"CL.THROTTLE k 9 1 86400", "CL.THROTTLE first 9 1 86400 0", "SET k 1", "DEL first", "EXPIRE first 10", "PERSIST first", "RENAME first second", "RENAMENX first second",
			"COPY first second", "COPY first k REPLACE", "SETNX second 9000000000000000000", "GETSET first 9000000000000000000", "GETDEL first", "GETEX first EX 5", "GCRA first 9 1 86400", "FLUSHALL",
		} {
			if got := c.do(strings.Fields(line)...); !strings.HasPrefix(got, misconf) || strings.Count(got, "\r\n") != 1 {
				t.Errorf("%s: %q", line, got)
			}
		}
		c.do("MULTI")
		c.send(slices.Concat(call("shared"), frame("GET", "first"), call("shared"), frame("EXEC")))
		for range 3 {
			c.reply()
		}
		if got := c.reply(); strings.Count(got, misconf) != 2 && !strings.HasPrefix(got, "-EXECABORT") {
			t.Errorf("EXEC: %q", got)
		}
		if got := c.do("GET", "first"); !strings.HasPrefix(got, "$19\r\n") {
			t.Errorf("GET: %q", got)
		}
		if got := c.persistence("aof_last_write_status"); got != "err" {
			t.Errorf("aof_last_write_status:%s", got)
		}
		d.free()
		eventually(t, "it recovers", func() bool { return c.persistence("aof_last_write_status") == "ok" })
	}
	run(20)
	want := map[string]int{"first": 0}
	for _, keys := range passed {
		for key, n := range keys {
			want[key] += n
		}
	}
	for name, conn := range map[string]*conn{"in memory": c, "after a restart": d.restarted()} {
		for key, n := range want {
			if key == "log" {
				if got := conn.take(key, log, "COST", "0"); got.limit-got.remaining != int64(n) {
					t.Errorf("%s: the log has counted %d calls, %d have passed", name, got.limit-got.remaining, n)
				}
				continue
			}
			limit := []string{key, itoa(burst - 1), "1", "3600", "0"}
			if key == "first" {
				limit, n = []string{key, "9", "1", "86400", "0"}, 1
			}
			if got := conn.throttle(limit...); got[1]-got[2] != int64(n) {
				t.Errorf("%s: %s has counted %d calls, %d have passed", name, key, got[1]-got[2], n)
			}
		}
		if got := intReply(conn.do("DBSIZE")); got != int64(len(want)) {
			t.Errorf("%s: %d keys, want %d", name, got, len(want))
		}
	}
	d.logs("the append-only file cannot be written", "no space left on device", "the append-only file can be written again")
}

// TestPersistenceDiskFullFlush removes all keys where that is the first that cannot be written: it is refused, as what
// is removed could not be taken back.
func TestPersistenceDiskFullFlush(t *testing.T) {
	t.Parallel()
	d := startOnSmallDisk(t, false, "--appendfsync", "always")
	c := dial(t, d.addr)
	c.throttle("first", "9", "1", "86400", "4")
	for size := c.persistence("aof_current_size"); intReply(size)%4096 < 4096-64; size = c.persistence("aof_current_size") {
		c.throttle("second", "1000000", "1", "3600") // so that no page of the file has room for more
	}
	d.fill()
	for _, line := range []string{"FLUSHALL", "FLUSHDB ASYNC"} {
		if got := c.do(strings.Fields(line)...); !strings.HasPrefix(got, misconf) || strings.Count(got, "\r\n") != 1 {
			t.Errorf("%s: %q", line, got)
		}
		if got := c.do("DBSIZE") + c.do("GET", "first"); !strings.HasPrefix(got, ":2\r\n$19\r\n") {
			t.Errorf("after %s: %q", line, got)
		}
	}
	d.free()
	eventually(t, "it recovers", func() bool { return c.persistence("aof_last_write_status") == "ok" })
	if got := d.restarted().throttle("first", "9", "1", "86400", "0"); got[2] != 6 {
		t.Errorf("after a restart: %v", got)
	}
	if got := c.do("FLUSHALL"); got != "+OK\r\n" {
		t.Errorf("FLUSHALL: %q", got)
	}
	if got := intReply(d.restarted().do("DBSIZE")); got != 0 {
		t.Errorf("after FLUSHALL and a restart: %d keys", got)
	}
}

// TestPersistenceDiskFullEverySecond goes on deciding, and writes it all when there is space again.
func TestPersistenceDiskFullEverySecond(t *testing.T) {
	t.Parallel()
	d := startOnSmallDisk(t, false, "--save", "3600 1000000")
	c := dial(t, d.addr)
	d.fill()
	calls := int64(0)
	more := func() {
		for range 200 {
			calls++
			if got := c.throttle(fmt.Sprint("new:", calls), "9", "1", "86400"); got[0] != 0 || got[2] != 9 {
				t.Fatalf("CL.THROTTLE: %v", got)
			}
		}
	}
	eventually(t, "INFO says that the file cannot be written", func() bool {
		more()
		return c.persistence("aof_last_write_status") == "err"
	})
	more()
	status := map[string]string{"BGSAVE": "rdb_last_bgsave_status", "BGREWRITEAOF": "aof_last_bgrewrite_status"}
	for _, command := range []string{"BGSAVE", "BGREWRITEAOF"} { // these fail, and leave nothing behind
		c.do(command)
		eventually(t, command+" fails", func() bool { return c.persistence(status[command]) == "err" })
	}
	if got := c.do("SAVE"); !strings.HasPrefix(got, "-ERR") {
		t.Errorf("SAVE: %q", got)
	}
	if files := glob(t, d.dir, "*"); len(files) != 3 { // with those of the lock and of the test
		t.Errorf("files: %q", files)
	}
	d.free()
	eventually(t, "INFO says that it can be written", func() bool { return c.persistence("aof_last_write_status") == "ok" })
	for _, command := range []string{"BGSAVE", "BGREWRITEAOF"} {
		c.do(command)
		eventually(t, command+" succeeds", func() bool { return c.persistence(status[command]) == "ok" })
	}
	last := c.state(fmt.Sprint("new:", calls))
	eventually(t, "all is in the file", func() bool { return bytes.Contains([]byte(readFile(t, d.dir, "appendonly.aof")), []byte(last.tat)) })
	r := d.restarted()
	if got := intReply(r.do("DBSIZE")); got != calls {
		t.Errorf("after a restart: %d keys, want %d", got, calls)
	}
	same(t, "after a restart", map[string]keyState{"last": r.state(fmt.Sprint("new:", calls))}, map[string]keyState{"last": last})
	d.logs("the append-only file cannot be written", "no space left on device", "the append-only file can be written again",
		"the snapshot failed", "rewriting the append-only file failed")
}

// TestPersistenceDiskFullAtTheEnd ends celld while it cannot write what it has decided: it says so, by its exit code too.
func TestPersistenceDiskFullAtTheEnd(t *testing.T) {
	t.Parallel()
	for _, fsync := range []string{"always", "everysec"} {
		d := startOnSmallDisk(t, true, "--appendfsync", fsync)
		c := dial(t, d.addr)
		d.fill()
		eventually(t, "INFO says that the file cannot be written", func() bool {
			for i := range 200 {
				c.do("CL.THROTTLE", fmt.Sprint("key:", i), "9", "1", "86400")
			}
			return c.persistence("aof_last_write_status") == "err"
		})
		d.cmd.Process.Signal(syscall.SIGTERM)
		d.wait(1)
		d.logs("celld: write the append-only file: ", "no space left on device")
	}
}

func (s *server) logs(wants ...string) {
	s.t.Helper()
	for _, want := range wants { // which comes by a pipe, and so perhaps after the reply
		eventually(s.t, fmt.Sprintf("the log has %q", want), func() bool { return strings.Contains(s.log.String(), want) })
	}
}
