package persistence

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// refuses starts celld on a directory, and sees it say why it does not serve and end with code 1. It returns the reason.
func refuses(t *testing.T, s harness.Spec) (reason string) {
	t.Helper()
	cmd := s.Command(t)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(harness.StopTimeout, func() { cmd.Process.Kill() })
	defer timer.Stop()
	cmd.Wait()
	for line := range strings.Lines(stderr.String()) { // among what it logs
		if text, ok := strings.CutPrefix(line, "celld: "); ok {
			reason = strings.TrimSuffix(text, "\n")
		}
	}
	if code := cmd.ProcessState.ExitCode(); code != 1 || reason == "" {
		t.Fatalf("code %d, want 1 and a line that says why:\n%s", code, stderr.String())
	}
	return reason
}

// someFiles is a directory with both files, of 100 keys, and the flags with which celld reads each.
func someFiles(t *testing.T) (dir string, flags map[string][]string) {
	t.Helper()
	dir = t.TempDir()
	srv := harness.StartOn(t, dir, "--appendonly", "yes", "--appendfsync", "always")
	c := harness.Dial(t, srv.Addr)
	for i := range 100 {
		c.Throttle(fmt.Sprint("key:", i), "9", "1", "86400")
	}
	c.Do("SAVE")
	srv.Stop()
	return dir, map[string][]string{"dump.rdb": {"--save", "3600 1"}, "appendonly.aof": {"--appendonly", "yes"}}
}

// TestPersistenceRefusesDirectories starts celld where it could not write.
func TestPersistenceRefusesDirectories(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	celldtest.WriteFile(t, "", dir, "file")
	locked, blocked := filepath.Join(dir, "locked"), filepath.Join(dir, "blocked")
	for _, path := range []string{locked, filepath.Join(blocked, "dump.rdb"), filepath.Join(blocked, "appendonly.aof")} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	os.Chmod(locked, 0o500)
	for _, flags := range [][]string{{"--appendonly", "yes"}, {"--save", "3600 1"}} {
		for _, test := range []struct{ dir, says string }{
			{filepath.Join(dir, "nosuch"), "no such file or directory"},
			{filepath.Join(dir, "file"), "not a directory"},
			{blocked, "is a directory"},
			{locked, "permission denied"},
		} {
			s := harness.Spec{Flags: append([]string{"--dir", test.dir}, flags...)}
			if test.dir == locked && os.Getuid() == 0 {
				s.Wrap = []string{celldtest.Need(t, "setpriv"), "--bounding-set=-dac_override"}
			}
			if reason := refuses(t, s); !strings.Contains(reason, test.dir) || !strings.Contains(reason, test.says) {
				t.Errorf("%q in %s: %s", flags, test.dir, reason)
			}
		}
	}
}

// TestPersistenceRefusesDamage changes bytes of the files. Nothing is written over, and what the message tells to do helps.
func TestPersistenceRefusesDamage(t *testing.T) {
	t.Parallel()
	whole, flags := someFiles(t)
	const key = "key:50\r\n"
	for _, test := range []struct {
		name, file string
		damage     func(text string) string
	}{
		{"a bit of a value", "dump.rdb", func(text string) string { return flip(text, len(text)/2) }},
		{"the checksum", "dump.rdb", func(text string) string { return flip(text, len(text)-1) }},
		{"the end", "dump.rdb", func(text string) string { return text[:len(text)/2] }},
		{"the start", "dump.rdb", func(text string) string { return flip(text, 0) }},
		{"nothing is there", "dump.rdb", func(string) string { return "" }},
		{"a length", "appendonly.aof", func(text string) string { return strings.Replace(text, "$6\r\n"+key, "$7\r\n"+key, 1) }},
		{"a word is missing", "appendonly.aof", func(text string) string { return strings.Replace(text, "$6\r\n"+key, "", 1) }},
		{"a mark", "appendonly.aof", func(text string) string { return strings.Replace(text, "$6\r\n"+key, "#6\r\n"+key, 1) }},
		{"a bit of a key", "appendonly.aof", func(text string) string { return strings.Replace(text, key, "kex:50\r\n", 1) }},
		{"zeros", "appendonly.aof", func(text string) string { return strings.Replace(text, key, "\x00\x00\x00\x00\x00\x00\r\n", 1) }},
	} {
		t.Run(test.file+" "+test.name, func(t *testing.T) {
			t.Parallel()
			dir := copied(t, whole)
			path := filepath.Join(dir, test.file)
			text := celldtest.ReadFile(t, path)
			damaged := test.damage(text)
			if damaged == text {
				t.Fatal("nothing is damaged")
			}
			celldtest.WriteFile(t, damaged, path)
			s := harness.Spec{Flags: append([]string{"--dir", dir}, flags[test.file]...)}
			reason := refuses(t, s)
			var at int
			_, place, _ := strings.Cut(reason, "damaged at byte ")
			if n, _ := fmt.Sscan(place, &at); n != 1 || !strings.HasPrefix(reason, path+": ") {
				t.Errorf("the reason has no file or position: %s", reason)
			}
			if celldtest.ReadFile(t, path) != damaged {
				t.Error("the file has changed")
			}
			if test.file == "dump.rdb" {
				return
			}
			if key := strings.Index(text, key); at > key || at < key-300 {
				t.Errorf("damaged near byte %d, and the reason says %d", key, at)
			}
			_, command, found := strings.Cut(reason, "To cut it off there: ")
			if !found {
				t.Fatalf("the reason does not say what to do: %s", reason)
			}
			fix := harness.Command(t, "sh", "-c", command)
			fix.Stdin = strings.NewReader("y\n")
			out, err := fix.CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %v, %s", command, err, out)
			}
			t.Logf("%s\n%s", reason, out)
			c := harness.Dial(t, harness.Spec{Flags: s.Flags}.Start(t).Addr)
			if got := celldtest.IntReply(c.Do("DBSIZE")); got < 48 || got > 50 {
				t.Errorf("%d keys, want those before the 50th", got)
			}
		})
	}
}

// flip changes a bit.
func flip(text string, at int) string {
	b := []byte(text)
	b[at] ^= 1
	return string(b)
}

// TestPersistenceTornTail cuts the append-only file short, as a crash may.
func TestPersistenceTornTail(t *testing.T) {
	t.Parallel()
	whole, _ := someFiles(t)
	text := celldtest.ReadFile(t, whole, "appendonly.aof")
	end := strings.LastIndex(text, "*5\r\n")
	for name, tail := range map[string]string{
		"cut": text[end : end+40], "zeros": strings.Repeat("\x00", 4096), "cut, and zeros": text[end:end+40] + strings.Repeat("\x00", 4096),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := copied(t, whole)
			celldtest.WriteFile(t, text[:end]+tail, dir, "appendonly.aof")
			s := harness.Spec{Flags: []string{"--dir", dir, "--appendonly", "yes", "--aof-load-truncated", "no"}}
			reason := refuses(t, s)
			if !strings.Contains(reason, fmt.Sprintf("damaged at byte %d", end)) || !strings.Contains(reason, "--aof-load-truncated yes") {
				t.Error(reason)
			}
			srv := harness.StartOn(t, dir, "--appendonly", "yes")
			srv.Logs(fmt.Sprintf(`"at":%d,"bytes_lost":%d`, end, len(tail)))
			c := harness.Dial(t, srv.Addr)
			if got := celldtest.IntReply(c.Do("DBSIZE")); got != 99 {
				t.Errorf("%d keys, want 99", got)
			}
			c.Throttle("more", "9", "1", "86400")
			srv.Stop()
			checkFiles(t, dir)
			if got := celldtest.IntReply(harness.Dial(t, harness.StartOn(t, dir, "--appendonly", "yes").Addr).Do("DBSIZE")); got != 100 {
				t.Errorf("%d keys after another restart, want 100", got)
			}
		})
	}
}
