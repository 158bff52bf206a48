package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"celld/resp"
)

// TestSettingsPage holds docs/reference/settings.md to the settings: their names, defaults, and whether CONFIG SET changes them.
func TestSettingsPage(t *testing.T) {
	text, err := os.ReadFile("docs/reference/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	page := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `--([a-z0-9-]+)` \\|(.*?)\\|(.*?)\\|.+\\|$").FindAllStringSubmatch(string(text), -1) {
		page[row[1]] = []string{strings.TrimSpace(row[2]), strings.TrimSpace(row[3])}
	}
	for _, s := range resp.Settings(wings...).Settings() {
		fallback := s.Default
		if s.Name == "io-threads" {
			fallback = "half the CPUs"
		}
		row, ok := page[s.Name]
		switch {
		case !ok:
			t.Errorf("--%s is not on the page", s.Name)
		case row[0] != fallback:
			t.Errorf("--%s: the default is %q on the page, and %q", s.Name, row[0], fallback)
		case (row[1] != "") != s.Mutable:
			t.Errorf("--%s at run time: %q on the page, and %v", s.Name, row[1], s.Mutable)
		}
		delete(page, s.Name)
	}
	for name := range page {
		t.Errorf("the page has --%s, which is no setting", name)
	}
}
