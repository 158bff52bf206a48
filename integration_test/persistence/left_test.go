package persistence

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// TestPersistenceFilesLeft kills servers that had not finished files. The next start removes these, and no other's.
func TestPersistenceFilesLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	srv := harness.Spec{Flags: []string{"--dir", dir, "--appendonly", "yes"}, Dies: true}.Start(t)
	srv.Cmd.Process.Signal(syscall.SIGKILL)
	<-srv.Exited
	dead, living := srv.Cmd.Process.Pid, os.Getpid()
	var goes, stays []string
	for _, kind := range []string{"rdb", "aof"} {
		goes = append(goes, fmt.Sprintf("temp-%d.%s", dead, kind))
		stays = append(stays, fmt.Sprintf("temp-%d.%s", living, kind), fmt.Sprintf("temp-rewriteaof-%d.%s", dead, kind))
	}
	for _, name := range slices.Concat(goes, stays) {
		celldtest.WriteFile(t, "x", dir, name)
	}
	left := func() (names []string) {
		for _, path := range glob(t, dir, "temp-*") {
			names = append(names, filepath.Base(path))
		}
		return names
	}
	all, want := left(), slices.Sorted(slices.Values(stays))
	harness.StartOn(t, dir).Stop()
	if got := left(); !slices.Equal(got, all) {
		t.Errorf("without persistence: %q are left of %q", got, all)
	}
	next := harness.StartOn(t, dir, "--save", "3600 1")
	if got := left(); !slices.Equal(got, want) {
		t.Errorf("%q are left, want %q", got, want)
	}
	next.Logs("removed the unfinished files of killed processes", goes[0], goes[1])
}

// TestPersistenceFilesNotRead puts the files of redis-server beside celld's. The log names those that are read, and the others.
func TestPersistenceFilesNotRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	redis := harness.Dial(t, celldtest.StartRedis(t, "--dir", dir, "--appendonly", "yes", "--appendfsync", "always"))
	redis.Do("SET", "theirs", fmt.Sprint(time.Now().Add(time.Hour).UnixNano()))
	redis.Do("SAVE")
	dir = copied(t, dir)
	const base, incr, manifest = "appendonlydir/appendonly.aof.1.base.rdb", "appendonlydir/appendonly.aof.1.incr.aof",
		"appendonlydir/appendonly.aof.manifest"
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
		srv := harness.StartOn(t, dir, celldtest.SplitQuoted(t, test.flags)...)
		srv.Logs(`"files":`+test.files, `"not_read":`+test.notRead)
		if got := celldtest.IntReply(harness.Dial(t, srv.Addr).Do("EXISTS", "theirs")); got != 1 {
			t.Errorf("%s: what redis-server had is not there", test.flags)
		}
		srv.Stop()
	}
	os.RemoveAll(filepath.Join(dir, "appendonlydir"))
	os.Remove(filepath.Join(dir, "dump.rdb"))
	srv := harness.StartOn(t, dir, "--appendonly", "yes")
	if srv.Logs(`"files":` + list("appendonly.aof")); strings.Contains(srv.Log.String(), "not_read") {
		t.Errorf("there is nothing else:\n%s", srv.Log)
	}
}
