package persistence

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// TestPersistenceSecondServer starts a second server on a directory, as a rolling update does: it waits, and then has all that
// the first one has answered, however that ended.
func TestPersistenceSecondServer(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]syscall.Signal{"told to end": syscall.SIGTERM, "killed": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			flags := []string{"--dir", dir, "--appendonly", "yes", "--appendfsync", "always", "--dir-lock-wait", "600"}
			first := harness.Spec{Flags: flags, Dies: true}.Start(t)
			a := harness.Dial(t, first.Addr)
			a.Throttle("k", "9", "1", "86400")
			second := harness.Spec{Flags: flags, Early: true}.Start(t)
			celldtest.Eventually(t, "it waits", func() bool { return strings.Contains(second.Log.String(), "waiting for another process") })
			b := harness.Dial(t, second.Addr)
			if got := b.Do("CL.THROTTLE", "k", "9", "1", "86400"); got != loadingReply || infoField(b, "loading") != "1" {
				t.Errorf("while it waits: %q", got)
			}
			_, port := harness.HostPort(second.Addr)
			if _, _, code := harness.RunToEnd(t, nil, "ping", "--port", port); code != 0 {
				t.Errorf("celld ping: %d", code)
			}
			if _, _, code := harness.RunToEnd(t, nil, "ready", "--port", port); code != 1 {
				t.Errorf("celld ready: %d", code)
			}
			a.Throttle("k", "9", "1", "86400")
			first.Cmd.Process.Signal(signal)
			loaded(b)
			if got := b.Throttle("k", "9", "1", "86400", "0"); got[2] != 8 {
				t.Errorf("after the change: %v", got)
			}
			if n := strings.Count(second.Log.String(), "waiting for another process"); n != 1 {
				t.Errorf("it tells %d times that it waits", n)
			}
		})
	}
}

// TestPersistenceSecondServerGivesUp starts second servers that do not wait long enough, and one that is stopped.
func TestPersistenceSecondServerGivesUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	harness.StartOn(t, dir, "--save", "3600 1")
	for wait, says := range map[string]string{"0": "(--dir)", "1": "waited 1s (--dir-lock-wait)"} {
		got := refuses(t, harness.Spec{Flags: []string{"--dir", dir, "--appendonly", "yes", "--dir-lock-wait", wait}})
		if !strings.HasPrefix(got, "another process uses the directory "+dir) || !strings.HasSuffix(got, says) {
			t.Errorf("--dir-lock-wait %s: %q", wait, got)
		}
	}
	waiting := harness.Spec{Flags: []string{"--dir", dir, "--appendonly", "yes", "--dir-lock-wait", "600"}, Early: true}.Start(t)
	celldtest.Eventually(t, "it waits", func() bool { return strings.Contains(waiting.Log.String(), "waiting for another process") })
	waiting.Stop()
	if paths := glob(t, dir, "*"); len(paths) != 1 {
		t.Errorf("there are %q", paths)
	}
}

// TestPersistenceByChance asks a server without files to write some, first beside the files of another server, and then alone.
func TestPersistenceByChance(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	owner := harness.StartOn(t, dir, "--appendonly", "yes")
	srv := harness.StartOn(t, dir)
	c := harness.Dial(t, srv.Addr)
	c.Throttle("k", "9", "1", "86400")
	want := "another process uses the directory " + dir + " (--dir)\r\n"
	for _, line := range []string{"SAVE", "BGSAVE", "BGSAVE SCHEDULE", "BGREWRITEAOF"} {
		if got := c.Do(strings.Fields(line)...); got != "-ERR "+want {
			t.Errorf("%s: %q", line, got)
		}
	}
	if got := c.Do("CONFIG", "SET", "save", "3600 1"); got != "-ERR CONFIG SET failed (possibly related to argument 'save') - "+want {
		t.Errorf("CONFIG SET save: %q", got)
	}
	if got := harness.Pairs(t, c.Do("CONFIG", "GET", "save"))["save"]; got != "" {
		t.Errorf("save is %q", got)
	}
	if got := c.Do("SHUTDOWN", "SAVE"); got != "-ERR Errors trying to SHUTDOWN. Check logs.\r\n" {
		t.Errorf("SHUTDOWN SAVE: %q", got)
	}
	srv.Logs(strings.TrimSuffix(want, "\r\n"))
	c.Do("MULTI")
	c.Do("BGSAVE")
	if got := c.Do("EXEC"); got != "*1\r\n-ERR "+want {
		t.Errorf("BGSAVE in a transaction: %q", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "dump.rdb")); err == nil {
		t.Error("there is a snapshot")
	}
	owner.Stop()
	if got := c.Do("CONFIG", "SET", "save", "3600 1"); got != "+OK\r\n" {
		t.Errorf("CONFIG SET save where nobody else is: %q", got)
	}
	got := refuses(t, harness.Spec{Flags: []string{"--dir", dir, "--appendonly", "yes", "--dir-lock-wait", "0"}})
	if !strings.HasPrefix(got, "another process uses") {
		t.Errorf("beside a server that takes snapshots: %q", got)
	}
}

// TestPersistenceFilesRemoved takes the files away from a server. Each policy of forcing notices, tells, and mends.
func TestPersistenceFilesRemoved(t *testing.T) {
	t.Parallel()
	for _, fsync := range []string{"always", "everysec", "no"} {
		t.Run(fsync, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "data")
			os.Mkdir(dir, 0o755)
			flags := []string{"--dir", dir, "--appendonly", "yes", "--appendfsync", fsync}
			srv := harness.Spec{Flags: flags, Dies: true}.Start(t)
			c := harness.Dial(t, srv.Addr)
			calls := int64(0)
			call := func() bool {
				got := c.Do("CL.THROTTLE", "k", "99999", "1", "86400")
				if !strings.HasPrefix(got, misconf) {
					calls++
					return true
				}
				return false
			}
			inPlace := func() bool { return infoField(c, "aof_last_write_status") == "ok" }
			call()
			os.Remove(filepath.Join(dir, "appendonly.aof"))
			call()
			celldtest.Eventually(t, "it is mended", func() bool {
				return strings.Contains(srv.Log.String(), "in order again") && inPlace()
			})
			call()
			// unless the file is mended meanwhile
			celldtest.Eventually(t, "the directory is gone", func() bool { return os.RemoveAll(dir) == nil })
			celldtest.Eventually(t, "it is noticed", func() bool { return !inPlace() })
			if call() == (fsync == "always") {
				t.Error("refused or not")
			}
			os.Mkdir(dir, 0o755)
			celldtest.Eventually(t, "it is mended again", inPlace)
			call()
			srv.Cmd.Process.Signal(syscall.SIGTERM)
			srv.Wait(0)
			got := harness.Dial(t, harness.StartOn(t, dir, flags...).Addr).Throttle("k", "99999", "1", "86400", "0")
			if got[1]-got[2] != calls {
				t.Errorf("after a restart %d calls have counted, %d have passed", got[1]-got[2], calls)
			}
		})
	}
}

// TestPersistenceSnapshotRemoved ends a server whose snapshot somebody has just removed.
func TestPersistenceSnapshotRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	srv := harness.StartOn(t, dir, "--save", "3600 1")
	c := harness.Dial(t, srv.Addr)
	c.Throttle("k", "9", "1", "86400")
	c.Do("SAVE")
	os.Remove(filepath.Join(dir, "dump.rdb"))
	srv.Stop()
	if got := harness.Dial(t, harness.StartOn(t, dir, "--save", "3600 1").Addr).Throttle("k", "9", "1", "86400", "0"); got[2] != 9 {
		t.Errorf("after a restart: %v", got)
	}
}

// TestPersistenceLockOfAnotherUser starts a server that may only read its lock file.
func TestPersistenceLockOfAnotherUser(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t)
	dir := t.TempDir()
	celldtest.WriteFile(t, "", dir, "celld.lock")
	if err := os.Chmod(filepath.Join(dir, "celld.lock"), 0o444); err != nil {
		t.Fatal(err)
	}
	user := harness.Spec{Wrap: []string{celldtest.Need(t, "setpriv"), "--bounding-set=-dac_override"},
		Flags: []string{"--dir", dir, "--appendonly", "yes", "--dir-lock-wait", "0"}}
	user.Start(t).Logs("ready")
	if got := refuses(t, user); !strings.HasPrefix(got, "another process uses") {
		t.Errorf("a second one: %q", got)
	}
}

// SHUTDOWN's connection ends when all files are whole and the directory is free, as in Redis. So redis-cli SHUTDOWN && cp copies whole
// files, and another celld can start at once.
func TestShutdownEndsWithTheFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	flags := []string{"--dir", dir, "--save", "3600 1", "--appendonly", "yes", "--dir-lock-wait", "0"}
	const keys = 100_000
	var before *harness.Server
	for n := range 5 {
		srv := harness.Start(t, flags...)
		if before != nil {
			<-before.Exited
		}
		before = srv
		c := harness.Dial(t, srv.Addr)
		if n == 0 {
			for i := range keys / 1000 {
				var sets []byte
				for n := range 1000 {
					sets = append(sets, harness.Frame("SET", fmt.Sprint("k", i, ":", n), "1")...)
				}
				c.Send(sets)
				c.Expect(strings.Repeat("+OK\r\n", 1000))
			}
		}
		if got := c.Do("DBSIZE"); got != fmt.Sprintf(":%d\r\n", keys+n) {
			t.Errorf("start %d: %s", n, got)
		}
		c.Do("SET", fmt.Sprint("more", n), "1")
		c.Send(harness.Frame("SHUTDOWN"))
		c.Closed()
	}
	<-before.Exited
}
