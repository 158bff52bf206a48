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
		"store-timeout=1s store-prefix=x":   "--store-prefix does nothing without --store; --store-timeout does nothing without --store",
		"store-timeout=1s store=redis://h":  "",
		"maxclients=5":                      "",
		"envoy-headers=a,b,c":               "--envoy-headers does nothing without --envoy-bind",
		"envoy-quota=yes envoy-bind=*:8081": "",
	} {
		cfg, given := given(t, strings.Fields(settings)...)
		if got := strings.Join(cfg.Idle(given), "; "); got != want {
			t.Errorf("%s: %q, want %q", settings, got, want)
		}
	}
}
