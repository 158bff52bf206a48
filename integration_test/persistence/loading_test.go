package persistence

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

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// largeFile makes a directory with an append-only file of so many keys.
func largeFile(t *testing.T, keys int) (dir string) {
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
	return dir
}

const loadingReply = "-LOADING Redis is loading the dataset in memory\r\n"

// TestPersistenceLoading asks a server that is reading a large file. A machine that keeps the test from asking until all is read shows
// nothing, so it is started again then.
func TestPersistenceLoading(t *testing.T) {
	t.Parallel()
	const keys = 1_000_000
	dir := largeFile(t, keys)
	flags := []string{"--dir", dir, "--appendonly", "yes", "--max-keys", "2000000", "--maxmemory", "0"}

	tells := func(t *testing.T, file string) string {
		info, err := os.Stat(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		size := info.Size()
		srv := harness.Spec{Flags: flags, Early: true}.Start(t)
		defer srv.Stop()
		c, other := harness.Dial(t, srv.Addr), harness.Dial(t, srv.Addr)
		for _, line := range []string{
			"PING", "CL.THROTTLE k 15 30 60", "GET key:000000", "SAVE", "BGSAVE", "BGREWRITEAOF", "DBSIZE", "DEL nosuch",
		} {
			if got := other.Do(strings.Fields(line)...); got != loadingReply && infoField(c, "loading") == "1" {
				t.Errorf("%s: %q", line, got)
			}
		}
		_, port := harness.HostPort(srv.Addr)
		alive, _, code := harness.RunToEnd(t, nil, "ping", "--port", port)
		notReady, why, notCode := harness.RunToEnd(t, nil, "ready", "--port", port)
		if infoField(c, "loading") == "1" && (alive != strings.TrimSpace(loadingReply)+"\n" || code != 0 || notReady != "" ||
			notCode != 1 || !strings.Contains(why, "LOADING")) {
			t.Errorf("celld ping: %d, %q; celld ready: %d, %q, %q", code, alive, notCode, notReady, why)
		}
		asked, last := 0, int64(0)
		celldtest.Eventually(t, "it has loaded", func() bool {
			info := harness.InfoSections(c.Do("INFO", "persistence"))["Persistence"]
			if info["loading"] == "0" {
				return true
			}
			loaded, err := strconv.ParseInt(info["loading_loaded_bytes"], 10, 64)
			if err != nil || loaded < last || loaded > size || info["loading"] != "1" || info["loading_total_bytes"] != fmt.Sprint(size) ||
				celldtest.IntReply(info["loading_eta_seconds"]) < 1 {
				t.Fatalf("INFO persistence, of %d bytes with %d loaded before: %v", size, last, info)
			}
			asked, last = asked+1, loaded
			return false
		})
		celldtest.Eventually(t, "it serves", func() bool { return other.Do("PING") == "+PONG\r\n" })
		if out, stderr, code := harness.RunToEnd(t, nil, "ready", "--port", port); code != 0 || out+stderr != "" {
			t.Errorf("celld ready: %d, %q, %q", code, out, stderr)
		}
		c.Do("DEL", "k") // of the time before
		if got := celldtest.IntReply(c.Do("DBSIZE")); got != keys {
			t.Errorf("%d keys, want %d", got, keys)
		}
		if got, want := stateOf(c, fmt.Sprintf("key:%06x", keys-1)), fmt.Sprintf("9000000000%09d", keys-1); got.tat != want {
			t.Errorf("the last key is %v, want %s", got, want)
		}
		if got := c.Throttle("k", "15", "30", "60"); got[2] != 15 {
			t.Errorf("CL.THROTTLE: %v", got)
		}
		saved(c)
		c.Do("SAVE") // for what follows
		log := srv.Log.String()
		for _, want := range []string{
			`"msg":"loading","addr":["` + srv.Addr, `"msg":"loaded"`, fmt.Sprintf(`"keys":%d`, keys/10), `"msg":"ready"`,
		} {
			if !strings.Contains(log, want) {
				t.Errorf("no %s in the log:\n%s", want, log)
			}
		}
		if asked < 3 || last == 0 {
			return fmt.Sprintf("it was asked %d times while it was loading, the last at byte %d: too few to see anything", asked, last)
		}
		return ""
	}
	if !t.Run("reads the append-only file", func(t *testing.T) {
		celldtest.Again(t, func(string) string { return tells(t, "appendonly.aof") })
	}) {
		return // without the snapshot for what follows
	}
	t.Run("reads the snapshot, writes the append-only file", func(t *testing.T) {
		celldtest.Again(t, func(string) string {
			os.Remove(filepath.Join(dir, "appendonly.aof"))
			return tells(t, "dump.rdb")
		})
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
	for name, end := range map[string]func(srv *harness.Server){
		"SIGTERM":         func(srv *harness.Server) { srv.Cmd.Process.Signal(syscall.SIGTERM) },
		"SHUTDOWN":        func(srv *harness.Server) { harness.Dial(srv.T, srv.Addr).Send(harness.Frame("SHUTDOWN")) },
		"SHUTDOWN SAVE":   func(srv *harness.Server) { harness.Dial(srv.T, srv.Addr).Send(harness.Frame("SHUTDOWN", "SAVE")) },
		"SHUTDOWN NOSAVE": func(srv *harness.Server) { harness.Dial(srv.T, srv.Addr).Send(harness.Frame("SHUTDOWN", "NOSAVE")) },
	} {
		for _, appendOnly := range []string{"yes", "no"} {
			ok := t.Run(fmt.Sprintf("is ended by %s, --appendonly %s", name, appendOnly), func(t *testing.T) {
				celldtest.Again(t, func(string) string {
					want := files()
					srv := harness.Spec{Flags: append(slices.Clone(flags), "--appendonly", appendOnly, "--save", "3600 1"),
						Early: true}.Start(t)
					end(srv)
					srv.Wait(0)
					if log := srv.Log.String(); strings.Contains(log, `"msg":"loaded"`) {
						return "it read all first:\n" + log
					}
					if got := files(); !slices.Equal(got, want) {
						t.Errorf("what was not read has changed: %q, was %q\n%s", got, want, srv.Log)
					}
					return ""
				})
			})
			if !ok {
				return // there may be nothing left to be read
			}
		}
	}
}
