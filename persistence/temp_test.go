package persistence_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"celld/persistence"
)

// At the start, files of dead processes are removed. Files of other processes, and files with other names, stay.
func TestFilesLeftByKilledProcesses(t *testing.T) {
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	dead, own, living := ended.Process.Pid, os.Getpid(), os.Getppid()
	goes := []string{
		fmt.Sprintf("temp-%d.rdb", dead), fmt.Sprintf("temp-%d.aof", dead), fmt.Sprintf("temp-%d.check", dead),
		fmt.Sprintf("temp-%d.rdb", own), fmt.Sprintf("temp-%d.aof", own), fmt.Sprintf("temp-%d.rdb", math.MaxInt32),
	}
	stays := []string{
		fmt.Sprintf("temp-%d.rdb", living), fmt.Sprintf("temp-%d.aof", living), "temp-1.rdb",
		fmt.Sprintf("temp-rewriteaof-%d.aof", dead), fmt.Sprintf("temp-%d.rdb.bak", dead),
		fmt.Sprintf("my-temp-%d.rdb", dead), fmt.Sprintf("temp-%d.txt", dead),
		fmt.Sprintf("temp-0%d.rdb", dead), fmt.Sprintf("temp--%d.rdb", dead), "temp-0.rdb", "temp-.rdb", "temp-99999999999999999999.rdb",
		"temp-x.aof", "temp-1.rdb\n",
	}
	for name, set := range map[string]func(*persistence.Options){
		"snapshot": snapshots, "append-only": appendOnly, "off": func(*persistence.Options) {},
	} {
		w := newWorld(t, set)
		for _, name := range slices.Concat(goes, stays) {
			w.write(name, "x")
		}
		folder, link := fmt.Sprintf("temp-%d.aof", dead+1<<22), fmt.Sprintf("temp-%d.rdb", dead+1<<22)
		if err := errors.Join(os.Mkdir(w.path(folder), 0o755), os.Symlink(w.path(stays[0]), w.path(link))); err != nil {
			t.Fatal(err)
		}
		want := append(slices.Clone(stays), folder, link)
		if name == "off" {
			want = append(want, goes...)
		}
		w.mustOpen()
		var got []string
		entries, err := os.ReadDir(w.dir)
		for _, entry := range entries {
			if entry.Name() == lockName {
				continue
			}
			if filepath.Ext(entry.Name()) != ".aof" || strings.HasPrefix(entry.Name(), "temp") {
				got = append(got, entry.Name())
			}
		}
		slices.Sort(want)
		if !slices.Equal(got, want) || err != nil {
			t.Errorf("%s: %q are there, want %q, %v", name, got, want, err)
		}
		if told := strings.Count(w.log.String(), "the unfinished files"); told != 1 && name != "off" || told != 0 && name == "off" {
			t.Errorf("%s: it is told %d times: %s", name, told, w.log)
		}
		if err := w.close(); err != nil {
			t.Fatal(err)
		}
		if w.mustOpen(); strings.Contains(w.log.String(), "the unfinished files") {
			t.Errorf("%s: a start that has found none: %s", name, w.log)
		}
		w.m.Stop()
	}
}

// A start does not fail because it cannot remove a file.
func TestFilesThatCannotBeRemoved(t *testing.T) {
	for _, failing := range []string{"list", "remove"} {
		w, files := inMemory(t, appendOnly)
		left := fmt.Sprintf("temp-%d.aof", os.Getpid())
		files.put(w.path(left), []byte("x"))
		files.failing(func(call, name string) error {
			if call == failing && !strings.HasSuffix(name, ".check") {
				return syscall.EPERM
			}
			return nil
		})
		if w.mustOpen(); !strings.Contains(w.log.String(), "cannot remove the unfinished") {
			t.Errorf("%s: %s", failing, w.log)
		}
		w.m.Stop()
	}
}
