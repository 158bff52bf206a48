package resp

import (
	"strings"
	"testing"
	"testing/synctest"

	"celld/resp/command/admin"
	"celld/resp/session/sessiontest"
)

// TestSaveAndRewrite tests a disk that takes its time: what is asked for meanwhile is refused or follows, and INFO says what goes on.
func TestSaveAndRewrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &sessiontest.Disk{}
		w := newWorldOn(t, disk, t.TempDir())
		if err := w.loadAll(func(step func() bool) {
			for step() {
			}
		}); err != nil {
			t.Fatal(err)
		}
		defer func() {
			w.sessions.Persist.Stop()
			_ = w.sessions.Persist.Close(false) // the disk is full
		}()
		p := w.connect()
		info := func(fields ...string) {
			t.Helper()
			got := p.do("INFO", "persistence")
			for _, field := range fields {
				if !strings.Contains(got, "\r\n"+field+"\r\n") {
					t.Errorf("no %s in %q", field, got)
				}
			}
		}
		held := func(command, reply string, meanwhile func()) {
			t.Helper()
			gate := make(chan error)
			disk.Gate.Store(&gate)
			p.want(command, reply)
			synctest.Wait()
			w.sleepMS(3_500)
			meanwhile()
			disk.Gate.Store(nil)
			close(gate)
			synctest.Wait()
		}
		const (
			saving, rewriting = "-" + admin.ErrSaving + "\r\n", "-" + admin.ErrRewriting + "\r\n"
			later             = "+Background append only file rewriting scheduled\r\n"
		)
		none := []string{"loading:0", "rdb_bgsave_in_progress:0", "rdb_current_bgsave_time_sec:-1", "aof_enabled:1",
			"aof_rewrite_in_progress:0", "aof_rewrite_scheduled:0", "aof_current_rewrite_time_sec:-1"}
		info(append(none, "rdb_changes_since_last_save:0", "rdb_last_save_time:1790000000", "rdb_last_bgsave_time_sec:-1", "rdb_saves:0",
			"aof_last_rewrite_time_sec:-1", "aof_rewrites:0", "aof_current_size:0", "aof_base_size:0", "aof_buffer_length:0")...)
		w.sessions.Persist.Begin()
		p.want("SET k 1800000000000000000", "+OK\r\n")
		info("rdb_changes_since_last_save:1")
		if err := w.sessions.Persist.Commit(); err != nil {
			t.Fatal(err)
		}
		w.sleepMS(2_000)
		p.want("SAVE", "+OK\r\n")
		p.want("LASTSAVE", ":1790000002\r\n")
		info(append(none, "rdb_changes_since_last_save:0", "rdb_last_save_time:1790000002", "rdb_last_bgsave_status:ok",
			"rdb_last_bgsave_time_sec:0", "rdb_saves:1")...)

		held("BGSAVE", "+Background saving started\r\n", func() {
			p.want("BGSAVE", saving)
			p.want("BGSAVE SCHEDULE", saving)
			p.want("SAVE", saving)
			p.want("MULTI", "+OK\r\n")
			p.want("BGSAVE", "+QUEUED\r\n")
			p.want("EXEC", "*1\r\n"+saving)
			info("rdb_bgsave_in_progress:1", "rdb_current_bgsave_time_sec:3", "aof_rewrite_scheduled:0")
			p.want("BGREWRITEAOF", later)
			info("aof_rewrite_scheduled:1", "aof_rewrite_in_progress:0")
		})
		info("rdb_bgsave_in_progress:0", "rdb_last_bgsave_time_sec:3", "rdb_saves:2", "rdb_last_save_time:1790000005")

		w.sessions.Persist.Tick() // begins what was scheduled
		synctest.Wait()
		info(append(none, "aof_rewrites:1", "aof_last_rewrite_time_sec:0", "aof_last_bgrewrite_status:ok")...)
		held("BGREWRITEAOF", "+Background append only file rewriting started\r\n", func() {
			p.want("BGREWRITEAOF", rewriting)
			p.want("BGSAVE", "-"+admin.ErrBgsaveRewriting+"\r\n")
			p.want("MULTI", "+OK\r\n")
			p.want("BGREWRITEAOF", "+QUEUED\r\n")
			p.want("EXEC", "*1\r\n"+rewriting)
			info("aof_rewrite_in_progress:1", "aof_current_rewrite_time_sec:3", "rdb_bgsave_in_progress:0")
			p.want("BGSAVE SCHEDULE", "+Background saving scheduled\r\n")
		})
		info("aof_rewrite_in_progress:0", "aof_last_rewrite_time_sec:3", "aof_rewrites:2")
		w.sessions.Persist.Tick()
		synctest.Wait()
		info("rdb_saves:3")

		p.want("MULTI", "+OK\r\n")
		p.want("BGSAVE", "+QUEUED\r\n")
		p.want("BGREWRITEAOF", "+QUEUED\r\n")
		p.want("EXEC", "*2\r\n+Background saving scheduled\r\n"+later)
		for range 2 {
			w.sessions.Persist.Tick()
			synctest.Wait()
		}
		info("rdb_saves:4", "aof_rewrites:3")

		disk.Full.Store(true)
		p.want("SAVE", "-ERR\r\n")
		p.want("BGREWRITEAOF", "+Background append only file rewriting started\r\n")
		synctest.Wait()
		info("rdb_last_bgsave_status:err", "aof_last_bgrewrite_status:err", "rdb_saves:4", "aof_rewrites:3", "aof_last_write_status:ok",
			"aof_write_errors:0")
		w.sessions.Persist.Begin()
		p.want("SET k 5", "+OK\r\n")
		if err := w.sessions.Persist.Commit(); err == nil {
			t.Error("written to a full disk")
		}
		info("aof_last_write_status:err", "aof_write_errors:1")
	})
}

// What cannot lock the directory says so.
func TestSaveWhereAnotherProcessIs(t *testing.T) {
	dir := t.TempDir()
	first, p := newWorldIn(t, dir), newWorldIn(t, dir, "dir-lock-wait", "0").connect()
	first.connect().want("SAVE", "+OK\r\n")
	defer func() { _ = first.sessions.Persist.Close(false) }()
	for _, command := range []string{"SAVE", "BGSAVE"} {
		if got := p.do(command); !strings.HasPrefix(got, "-ERR ") || !strings.Contains(got, "another process uses the directory") {
			t.Errorf("%s: %q", command, got)
		}
	}
	if got := p.do("CONFIG", "SET", "save", "60 1"); !strings.HasPrefix(got, "-ERR CONFIG SET failed") {
		t.Errorf("CONFIG SET save: %q", got)
	}
}
