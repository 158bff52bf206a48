package resp

import (
	"errors"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"celld/resp/acl"
	"celld/resp/command"
	"celld/resp/metrics"
	"celld/resp/session/sessiontest"
	"celld/store"
)

func readDoc(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestCommandsPage holds docs/reference/commands.md to the command table: it has each command and subcommand, and no other. Those that
// are celld's own have a line with usage and summary, the others are in the table of names.
func TestCommandsPage(t *testing.T) {
	var want []string
	line := func(name string, row *command.Row) {
		name = strings.ToUpper(name)
		if row.Categories()&acl.Celld != 0 || name == "INCREX" {
			name = "- `" + strings.TrimSpace(name+" "+row.Usage) + "`: " + row.Summary
		}
		want = append(want, name)
	}
	for _, row := range Commands(sessiontest.Settings(t)) {
		if row.Run != nil {
			line(row.Name, row)
		}
		for _, sub := range row.Sub {
			if sub.Name != "help" {
				line(row.Name+" "+sub.Name, sub)
			}
		}
	}
	page := readDoc(t, "reference/commands.md")
	got := regexp.MustCompile("(?m)^- `[A-Z].*$").FindAllString(page, -1)
	_, table, _ := strings.Cut(page, "\n| group | commands |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, row := range regexp.MustCompile("(?m)^\\| (?:[a-z]+|`([A-Z]+)`) \\| (.*) \\|$").FindAllStringSubmatch(table, -1) {
		for name := range strings.FieldsSeq(strings.ReplaceAll(row[2], "`", "")) {
			got = append(got, strings.TrimSpace(row[1]+" "+name))
		}
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("the page lacks\n%s", line)
		}
	}
	for i, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("the page has what is no command's:\n%s", line)
		} else if slices.Contains(got[:i], line) {
			t.Errorf("the page has this twice:\n%s", line)
		}
	}
}

// infoOnPage is the section of docs/reference/metrics.md about INFO.
func infoOnPage(t *testing.T) string {
	t.Helper()
	_, section, found := strings.Cut(readDoc(t, "reference/metrics.md"), "\n## INFO\n")
	if section, _, _ = strings.Cut(section, "\n## "); !found {
		t.Fatal("the page has no section about INFO")
	}
	return section
}

// engineFields are the fields of INFO's section Store.
func engineFields() (names []string) {
	all := store.Facts{Away: errors.New("it is away"), SlotsKnown: true, Version: "x", Eviction: "x", ClockKnown: true}
	for _, m := range metrics.New().Read(0, func(l *metrics.List) { metrics.Engine(l, all) }) {
		if m.Field != "" {
			names = append(names, m.Field)
		}
	}
	return names
}

// TestInfoFieldsOnPage holds the tables of INFO fields in docs/reference/metrics.md to INFO: each field is there, and each count of
// decisions is in the tables.
func TestInfoFieldsOnPage(t *testing.T) {
	fields := map[string]bool{}
	info := newWorld(t).connect().do("INFO", "everything")
	for _, field := range regexp.MustCompile("(?m)^([a-z0-9_]+):").FindAllStringSubmatch(info, -1) {
		fields[field[1]] = true
	}
	for _, name := range engineFields() {
		fields[name] = true
	}
	page := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`[a-z0-9_]+`.*?) \\|").FindAllStringSubmatch(infoOnPage(t), -1) {
		for _, name := range regexp.MustCompile("`([a-z0-9_]+)`").FindAllStringSubmatch(row[1], -1) {
			page[name[1]] = true
		}
	}
	for name := range maps.Keys(page) {
		if !fields[name] {
			t.Errorf("INFO has no field %s", name)
		}
	}
	for _, name := range []string{
		"throttle_allowed", "throttle_limited", "take_allowed", "take_limited", "rule_denied", "shadow_limited", "shadow_allowed",
	} {
		if !page[name] {
			t.Errorf("the page does not name %s", name)
		}
	}
}

// TestStoreFieldsOnPage holds the fields of INFO store to docs/reference/metrics.md.
func TestStoreFieldsOnPage(t *testing.T) {
	page := infoOnPage(t)
	for _, name := range engineFields() {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("the page does not name %s", name)
		}
	}
}
