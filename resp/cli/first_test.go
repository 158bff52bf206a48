package cli

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestFlagsOfFirst(t *testing.T) {
	for line, want := range map[string][]string{
		"/celld":             {},
		"/celld --port 7000": {"--port", "7000"},
		"/sbin/docker-init -- /celld --port 7000": {"--port", "7000"},
		"/usr/local/bin/celld --bind *":           {"--bind", "*"},
		"/pause":                                  nil,
		"/sbin/init splash":                       nil,
		"/celld-exporter --port 7000":             nil,
		"":                                        nil,
	} {
		proc := fstest.MapFS{"1/cmdline": {Data: []byte(strings.ReplaceAll(line, " ", "\x00") + "\x00")}}
		if got := flagsOfFirst(proc, "/celld"); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
	if got := flagsOfFirst(fstest.MapFS{}, "/celld"); got != nil {
		t.Errorf("without /proc: %q", got)
	}
}
