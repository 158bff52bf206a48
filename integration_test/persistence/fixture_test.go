package persistence

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// The limits of celld on disk: across restarts, crashes and full disks, and between it and redis-server with redis-cell.

// step is what Play takes.
type step = harness.Step

// loaded waits until a server has read its files. redis-server, too, listens before that.
func loaded(c *harness.Conn) {
	c.T.Helper()
	celldtest.Eventually(c.T, "the server has loaded", func() bool { return c.Do("PING") == "+PONG\r\n" })
}

// infoField is a field of INFO persistence.
func infoField(c *harness.Conn, field string) string {
	c.T.Helper()
	return harness.InfoSections(c.Do("INFO", "persistence"))["Persistence"][field]
}

// keyState is what a server tells of a key.
type keyState struct {
	tat     string
	expires int64 // Unix ms, -1: never
}

func stateOf(c *harness.Conn, key string) keyState {
	c.T.Helper()
	text, _ := harness.Bulk(c.Do("GET", key))
	return keyState{text, celldtest.IntReply(c.Do("PEXPIRETIME", key))}
}

// statesOf is what a server tells of all its keys.
func statesOf(c *harness.Conn) map[string]keyState {
	c.T.Helper()
	keys := map[string]keyState{}
	for _, key := range harness.KeyList(c.Do("KEYS", "*")) {
		keys[key] = stateOf(c, key)
	}
	return keys
}

// same compares the TATs of all keys, and their expiries to the millisecond: in a file an expiry is rounded up to one, in
// redis-cell and in a reply down.
func same(t testing.TB, what string, got, want map[string]keyState) {
	t.Helper()
	for _, key := range slices.Sorted(maps.Keys(want)) {
		g, w := got[key], want[key]
		if apart := g.expires - w.expires; g.tat != w.tat || apart < -1 || apart > 1 || (g.expires < 0) != (w.expires < 0) {
			t.Errorf("%s: %.20q is %v, want %v", what, key, g, w)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s: %d keys, want %d", what, len(got), len(want))
	}
}

// copied is a copy of a directory, of these of its files if any are named.
func copied(t testing.TB, dir string, files ...string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "data")
	celldtest.Eventually(t, "copy of "+dir, func() bool { // after a rewrite, redis-server removes files in the background
		os.RemoveAll(to)
		err := os.CopyFS(to, os.DirFS(dir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return err == nil
	})
	for _, path := range glob(t, to, "*") {
		if len(files) > 0 && !slices.Contains(files, filepath.Base(path)) {
			os.RemoveAll(path)
		}
	}
	return to
}

func glob(t testing.TB, elem ...string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(elem...))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// checkFiles checks the files of a directory with Redis's own tools.
func checkFiles(t testing.TB, dir string) {
	t.Helper()
	for _, check := range []struct{ tool, file, says string }{
		{"redis-check-rdb", "dump.rdb", "RDB looks OK"},
		{"redis-check-aof", "appendonly.aof", "is valid"},
	} {
		path := filepath.Join(dir, check.file)
		if _, err := os.Stat(path); err != nil {
			continue
		}
		if out := harness.Tool(t, check.tool, path); !strings.Contains(out, check.says) {
			t.Errorf("%s: %s", check.tool, out)
		}
	}
}

// commands are commands as an append-only file has them, one for each line.
func commands(t testing.TB, format string, args ...any) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.SplitSeq(fmt.Sprintf(format, args...), "\n") {
		b.Write(harness.Frame(celldtest.SplitQuoted(t, line)...))
	}
	return b.String()
}
