package integration_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestPersistenceFilesLeft kills servers that had not finished files. The next start removes these, and no other's.
func TestPersistenceFilesLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	srv := spec{flags: []string{"--dir", dir, "--appendonly", "yes"}, dies: true}.start(t)
	srv.cmd.Process.Signal(syscall.SIGKILL)
	<-srv.exited
	dead, living := srv.cmd.Process.Pid, os.Getpid()
	var goes, stays []string
	for _, kind := range []string{"rdb", "aof"} {
		goes = append(goes, fmt.Sprintf("temp-%d.%s", dead, kind))
		stays = append(stays, fmt.Sprintf("temp-%d.%s", living, kind), fmt.Sprintf("temp-rewriteaof-%d.%s", dead, kind))
	}
	for _, name := range slices.Concat(goes, stays) {
		writeFile(t, "x", dir, name)
	}
	left := func() (names []string) {
		for _, path := range glob(t, dir, "temp-*") {
			names = append(names, filepath.Base(path))
		}
		return names
	}
	all, want := left(), slices.Sorted(slices.Values(stays))
	startOn(t, dir).end()
	if got := left(); !slices.Equal(got, all) {
		t.Errorf("without persistence: %q are left of %q", got, all)
	}
	next := startOn(t, dir, "--save", "3600 1")
	if got := left(); !slices.Equal(got, want) {
		t.Errorf("%q are left, want %q", got, want)
	}
	next.logs("removed what killed processes had not finished", goes[0], goes[1])
}

// TestPersistenceFilesNotRead has the files of redis-server beside ours: those that are read and those that are not are told.
func TestPersistenceFilesNotRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	redis := dial(t, startRedis(t, "--dir", dir, "--appendonly", "yes", "--appendfsync", "always"))
	redis.do("SET", "theirs", itoa(time.Now().Add(time.Hour).UnixNano()))
	redis.do("SAVE")
	dir = copied(t, dir)
	const base, incr, manifest = "appendonlydir/appendonly.aof.1.base.rdb", "appendonlydir/appendonly.aof.1.incr.aof", "appendonlydir/appendonly.aof.manifest"
	list := func(names ...string) string {
		for i, name := range names {
			names[i] = `"` + filepath.Join(dir, name) + `"`
		}
		return "[" + strings.Join(names, ",") + "]"
	}
	for _, test := range []struct{ flags, files, notRead string }{
		{"--save '3600 1'", list("dump.rdb"), list(manifest)},
		{"--appendonly yes", list(base, incr), list("dump.rdb")},
		{"--appendonly yes", list("appendonly.aof"), list(manifest, "dump.rdb")}, // which the last has written
		{"--save '3600 1'", list("dump.rdb"), list("appendonly.aof", manifest)},
	} {
		srv := startOn(t, dir, splitQuoted(t, test.flags)...)
		srv.logs(`"files":`+test.files, `"not_read":`+test.notRead)
		if got := intReply(dial(t, srv.addr).do("EXISTS", "theirs")); got != 1 {
			t.Errorf("%s: what redis-server had is not there", test.flags)
		}
		srv.end()
	}
	os.RemoveAll(filepath.Join(dir, "appendonlydir"))
	os.Remove(filepath.Join(dir, "dump.rdb"))
	srv := startOn(t, dir, "--appendonly", "yes")
	if srv.logs(`"files":` + list("appendonly.aof")); strings.Contains(srv.log.String(), "not_read") {
		t.Errorf("there is nothing else:\n%s", srv.log)
	}
}
