package config

import (
	"os"
	"path/filepath"
	"testing"
)

func TestValues(t *testing.T) {
	cfg := New()
	for _, c := range []struct{ name, text, want string }{
		{"maxmemory", "0", "0"}, {"maxmemory", "1k", "1000"}, {"maxmemory", "1KB", "1024"}, {"maxmemory", "2mb", "2097152"},
		{"maxmemory", "1g", "1000000000"}, {"maxmemory", "-1", ""}, {"maxmemory", "1.5gb", ""}, {"maxmemory", "99999999999gb", ""},
		{"maxmemory", "", ""}, {"maxmemory", "b", ""}, {"port", "65535", "65535"}, {"port", "65536", ""}, {"port", "-1", ""},
		{"port", "", ""}, {"protected-mode", "NO", "no"}, {"protected-mode", "maybe", ""},
		{"maxmemory-policy", "noeviction", "noeviction"}, {"maxmemory-policy", "volatile-lru", ""},
		{"unixsocketperm", "770", "770"}, {"unixsocketperm", "9", ""}, {"unixsocketperm", "7777", ""},
		{"port", "1_0", ""}, {"port", "0x10", ""}, {"port", "+5", ""}, {"port", "007", ""}, {"maxmemory", "1_0", ""},
		{"maxmemory", "0x10", ""}, {"maxmemory", "+1", ""}, {"slowlog-log-slower-than", "1e3", ""}, {"save", "1_0 1", ""},
		{"save", "inf 1", ""}, {"unixsocketperm", "0o7", ""}, {"unixsocketperm", "7_0", ""}, {"bind", "0.0.0.0, ::", "0.0.0.0 ::"},
		{"bind", " ", ""}, {"bind", "-", ""}, {"bind", "a,,b", ""}, {"bind", "::", ""}, {"bind", "-::", ""},
		{"bind", "fe80::1%eth0 -limiter-1.example_2", "0.0.0.0 :: fe80::1%eth0 -limiter-1.example_2"},

		// An empty text is none of these, rather than a setting that was not given: a script's variable is not set, say.
		{"unixsocketperm", "", ""}, {"requirepass-file", "", ""}, {"policies", "", ""}, {"dir", "", ""}, {"dbfilename", "", ""},
		{"appendfilename", "", ""}, {"maxmemory-policy", "", ""}, {"protected-mode", "", ""},

		{"dbfilename", "a.rdb", "a.rdb"}, {"dbfilename", ".", ""}, {"dbfilename", "..", ""}, {"dbfilename", "a/b", ""},
		{"dbfilename", "/a", ""}, {"dbfilename", "a/", ""},
	} {
		row := cfg.Setting(c.name)
		before := row.Value.String()
		err := row.Value.Set(c.text)
		if got := row.Value.String(); (err == nil) != (c.want != "") || err == nil && got != c.want || err != nil && got != before {
			t.Errorf("%s %q: %q, %v; want %q", c.name, c.text, got, err, c.want)
		}
	}
}

func TestPasswordFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "password")
	load := func(text string, given ...string) (string, error) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg := New()
		_ = cfg.Setting("requirepass-file").Value.Set(path)
		err := cfg.Load(func(name string) bool { return len(given) > 0 && given[0] == name })
		return cfg.RequirePass.Get(), err
	}
	if got, err := load("se cret\r\n"); got != "se cret" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := load("\n"); err == nil {
		t.Error("an empty file is taken for a password")
	}
	if _, err := load("x", "requirepass"); err == nil {
		t.Error("two passwords are taken")
	}
	cfg := New()
	_ = cfg.Setting("requirepass-file").Value.Set(filepath.Join(dir, "nosuch"))
	if err := cfg.Load(func(string) bool { return false }); err == nil {
		t.Error("a missing file is taken for no password")
	}
}
