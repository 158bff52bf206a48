package config

import (
	"strings"
	"testing"
)

func TestIdle(t *testing.T) {
	for settings, want := range map[string]string{
		"":                                  "",
		"appendfsync=always":                "--appendfsync does nothing without --appendonly yes",
		"appendfsync=always appendonly=yes": "",
		"door-tls=yes door-max-connections=2": "--door-tls does nothing without --door-bind; " +
			"--door-max-connections does nothing without --door-bind",
		"door-tls=yes door-bind=":       "--door-tls does nothing without --door-bind",
		"maxclients=5":                  "",
		"door-tls=yes door-bind=*:8081": "",
	} {
		cfg, given := given(t, strings.Fields(settings)...)
		if got := strings.Join(cfg.Idle(given), "; "); got != want {
			t.Errorf("%s: %q, want %q", settings, got, want)
		}
	}
}
