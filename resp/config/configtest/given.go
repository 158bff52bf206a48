// Package configtest is what tests of settings share.
package configtest

import (
	"strings"
	"testing"

	"celld/resp/config"
)

// Given returns a configuration with a part, and with these settings, such as "http-bind=:80", and whether one is set.
func Given(t *testing.T, p config.Part, texts ...string) (cfg *config.Config, given func(name string) bool) {
	t.Helper()
	set := map[string]bool{}
	cfg = config.New(p)
	for _, text := range texts {
		name, value, _ := strings.Cut(text, "=")
		set[name] = true
		if err := cfg.Setting(name).Value.Set(value); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	return cfg, func(name string) bool { return set[name] }
}
