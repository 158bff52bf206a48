package main

import (
	"regexp"
	"strings"
	"testing"

	"celld/internal/celldtest"
	"celld/resp"
)

// render returns the folder that it has rendered to.
func render(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := run(dir, "1.2.3", "2026-11-28"); err != nil {
		t.Fatal(err)
	}
	return dir
}

// What is rendered has the settings of each wing of the program.
func TestWings(t *testing.T) {
	_, list, _ := strings.Cut(celldtest.ReadFile(t, "../../main.go"), "var wings = ")
	list, _, _ = strings.Cut(list, "\n}")
	_, own, _ := strings.Cut(celldtest.ReadFile(t, "main.go"), "resp.Settings(")
	wings := regexp.MustCompile(`\w+\.(Wing|Scripting)\(`).FindAllString(list, -1)
	if len(wings) < 2 {
		t.Errorf("%q", wings)
	}
	for _, wing := range wings {
		if !strings.Contains(own, wing) {
			t.Errorf("%s…) is not rendered", wing)
		}
	}
}

// The configuration has each setting once, commented out, and with a value that the setting takes.
func TestEnv(t *testing.T) {
	lines := regexp.MustCompile(`(?m)^#CELLD_([A-Z_0-9]+)=(.*)$`).FindAllStringSubmatch(celldtest.ReadFile(t, render(t), "env"), -1)
	if len(lines) != len(cfg.Settings()) {
		t.Errorf("%d variables for %d settings", len(lines), len(cfg.Settings()))
	}
	for _, line := range lines {
		s := cfg.Setting(strings.ToLower(strings.ReplaceAll(line[1], "_", "-")))
		if s == nil {
			t.Errorf("%s is no setting", line[0])
		} else if line[2] != "" && s.Value.Set(line[2]) != nil {
			t.Errorf("%s cannot be set", line[0])
		}
	}
	if text := regexp.MustCompile(`(?m)^[^#\n]`).FindString(celldtest.ReadFile(t, render(t), "env")); text != "" {
		t.Errorf("a line begins with %q and is in force", text)
	}
}

// The man pages have each setting and each command.
func TestManPages(t *testing.T) {
	dir := render(t)
	page := celldtest.ReadFile(t, dir, "man/celld.1")
	for _, s := range cfg.Settings() {
		name := strings.ReplaceAll(s.Name, "-", `\-`)
		if !strings.Contains(strings.ReplaceAll(page, `\&`, ""), "\n.It Fl \\-"+name+" Ar ") {
			t.Errorf("celld(1) lacks --%s", s.Name)
		}
	}
	page = celldtest.ReadFile(t, dir, "man/celld-commands.7")
	listed := strings.Count(page, "\n.It Ic ")
	for _, row := range resp.Commands(cfg) {
		if row.Run != nil {
			listed--
		}
		for _, sub := range row.Sub {
			if sub.Name != "help" {
				listed--
			}
		}
	}
	if listed != 0 {
		t.Errorf("celld-commands(7) has %d commands too many or too few", listed)
	}
}

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"One sentence. Another one.":     "One sentence.\nAnother one.",
		".5 is a number":                 `\&.5 is a number`,
		"as in it.\n\n 'this' is quoted": "as in it.\n\\&'this' is quoted",
		strings.Repeat("word ", 20):      strings.TrimSpace(strings.Repeat("word ", 15)) + "\n" + strings.TrimSpace(strings.Repeat("word ", 5)),
		`a\b --flag µs`:                  `a\eb \-\-flag \(mcs`,
		"":                               "",
	} {
		if got := mdoc(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := zsh("a: 'b' [c]"); got != `a\: '\''b'\'' \[c\]` {
		t.Error(got)
	}
	want := "# " + strings.TrimSpace(strings.Repeat("word ", 19)) + "\n# word word word word word word"
	if got := comment(strings.Repeat("word ", 25)); got != want {
		t.Errorf("%q", got)
	}
}
