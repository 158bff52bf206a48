package integration_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// largeFile makes a directory with an append-only file of so many keys, and returns the file's size.
func largeFile(t *testing.T, keys int) (dir string, size int64) {
	t.Helper()
	dir = t.TempDir()
	f, err := os.Create(filepath.Join(dir, "appendonly.aof"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	for i := range keys {
		fmt.Fprintf(w, "*5\r\n$3\r\nSET\r\n$10\r\nkey:%06x\r\n$19\r\n9000000000%09d\r\n$4\r\nPXAT\r\n$13\r\n9000000000001\r\n", i, i)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return dir, info.Size()
}

const loadingReply = "-LOADING Redis is loading the dataset in memory\r\n"

// TestPersistenceLoading asks a server that is reading a large file.
func TestPersistenceLoading(t *testing.T) {
	t.Parallel()
	const keys = 1_000_000
	dir, size := largeFile(t, keys)
	flags := []string{"--dir", dir, "--appendonly", "yes", "--max-keys", "2000000", "--maxmemory", "0"}

	tells := func(t *testing.T, size int64) {
		srv := spec{flags: flags, early: true}.start(t)
		c, other := dial(t, srv.addr), dial(t, srv.addr)
		for _, line := range []string{"PING", "CL.THROTTLE k 15 30 60", "GET key:000000", "SAVE", "BGSAVE", "BGREWRITEAOF", "DBSIZE", "FLUSHALL"} {
			if got := other.do(strings.Fields(line)...); got != loadingReply {
				t.Errorf("%s: %q", line, got)
			}
		}
		_, port := hostPort(srv.addr)
		alive, _, code := runToEnd(t, nil, "ping", "--port", port)
		notReady, why, notCode := runToEnd(t, nil, "ready", "--port", port)
		if c.persistence("loading") == "1" && (alive != strings.TrimSpace(loadingReply)+"\n" || code != 0 || notReady != "" || notCode != 1 || !strings.Contains(why, "LOADING")) {
			t.Errorf("celld ping: %d, %q; celld ready: %d, %q, %q", code, alive, notCode, notReady, why)
		}
		asked, last := 0, int64(0)
		for deadline := time.Now().Add(replyTimeout); ; asked++ {
			info := infoSections(c.do("INFO", "persistence"))["Persistence"]
			if info["loading"] == "0" {
				break
			}
			loaded, err := strconv.ParseInt(info["loading_loaded_bytes"], 10, 64)
			if err != nil || loaded < last || loaded > size || info["loading"] != "1" || info["loading_total_bytes"] != itoa(size) || intReply(info["loading_eta_seconds"]) < 1 {
				t.Fatalf("INFO persistence, of %d bytes with %d loaded before: %v", size, last, info)
			}
			if last = loaded; time.Now().After(deadline) {
				t.Fatalf("not loaded after %v", replyTimeout)
			}
			time.Sleep(5 * time.Millisecond)
		}
		if asked < 3 || last == 0 {
			t.Errorf("it was asked %d times while it was loading, the last at byte %d: too few to see anything", asked, last)
		}
		eventually(t, "it serves", func() bool { return other.do("PING") == "+PONG\r\n" })
		if out, stderr, code := runToEnd(t, nil, "ready", "--port", port); code != 0 || out+stderr != "" {
			t.Errorf("celld ready: %d, %q, %q", code, out, stderr)
		}
		c.do("DEL", "k") // of the time before
		if got := intReply(c.do("DBSIZE")); got != keys {
			t.Errorf("%d keys, want %d", got, keys)
		}
		if got, want := c.state(fmt.Sprintf("key:%06x", keys-1)), fmt.Sprintf("9000000000%09d", keys-1); got.tat != want {
			t.Errorf("the last key is %v, want %s", got, want)
		}
		if got := c.throttle("k", "15", "30", "60"); got[2] != 15 {
			t.Errorf("CL.THROTTLE: %v", got)
		}
		c.do("SAVE") // for what follows
		log := srv.log.String()
		for _, want := range []string{`"msg":"loading","addr":["` + srv.addr, `"msg":"loaded"`, fmt.Sprintf(`"keys":%d`, keys/10), `"msg":"ready"`} {
			if !strings.Contains(log, want) {
				t.Errorf("no %s in the log:\n%s", want, log)
			}
		}
		srv.end()
	}
	if !t.Run("reads the append-only file", func(t *testing.T) { tells(t, size) }) {
		return // without the snapshot for what follows
	}
	t.Run("reads the snapshot, writes the append-only file", func(t *testing.T) {
		os.Remove(filepath.Join(dir, "appendonly.aof"))
		info, err := os.Stat(filepath.Join(dir, "dump.rdb"))
		if err != nil {
			t.Fatal(err)
		}
		tells(t, info.Size())
	})

	files := func() (list []string) {
		for _, f := range []string{"appendonly.aof", "dump.rdb"} {
			info, err := os.Stat(filepath.Join(dir, f))
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, fmt.Sprint(f, info.Size(), info.ModTime()))
		}
		return list
	}
	want := files()
	for name, end := range map[string]func(srv *server){
		"SIGTERM":         func(srv *server) { srv.cmd.Process.Signal(syscall.SIGTERM) },
		"SHUTDOWN":        func(srv *server) { dial(srv.t, srv.addr).send(frame("SHUTDOWN")) },
		"SHUTDOWN SAVE":   func(srv *server) { dial(srv.t, srv.addr).send(frame("SHUTDOWN", "SAVE")) },
		"SHUTDOWN NOSAVE": func(srv *server) { dial(srv.t, srv.addr).send(frame("SHUTDOWN", "NOSAVE")) },
	} {
		for _, appendOnly := range []string{"yes", "no"} {
			ok := t.Run(fmt.Sprintf("is ended by %s, --appendonly %s", name, appendOnly), func(t *testing.T) {
				srv := spec{flags: append(slices.Clone(flags), "--appendonly", appendOnly, "--save", "3600 1"), early: true}.start(t)
				end(srv)
				srv.wait(0)
				if log := srv.log.String(); strings.Contains(log, `"msg":"loaded"`) {
					t.Errorf("it read all first:\n%s", log)
				}
				if got := files(); !slices.Equal(got, want) {
					t.Errorf("what was not read has changed: %q, was %q\n%s", got, want, srv.log)
				}
			})
			if !ok {
				return // there may be nothing left to be read
			}
		}
	}
}
