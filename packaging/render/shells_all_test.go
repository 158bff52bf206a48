//go:build all

package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"celld/internal/celldtest"
)

// mandoc finds nothing to complain about, except that the pages are not installed.
func TestMandoc(t *testing.T) {
	dir := render(t)
	celldtest.Need(t, "mandoc")
	for _, page := range []string{"celld.1", "celld-commands.7"} {
		lint := exec.Command("mandoc", "-T", "lint", "-W", "all", filepath.Join(dir, "man", page))
		for line := range strings.Lines(string(output(t, lint))) {
			if !strings.Contains(line, "referenced manual not found") && !strings.Contains(line, "outdated mandoc.db") {
				t.Error(line)
			}
		}
	}
}

func output(t *testing.T, cmd *exec.Cmd) []byte {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		t.Fatal(err)
	}
	return out
}

// completions are what is typed, and words that each shell must offer.
var completions = []struct{ typed, want string }{
	{"celld --appendf", "--appendfilename --appendfsync"}, {"celld re", "ready"}, {"celld help ", "help ping ready version"},
	{"celld --appendfsync ", "always everysec no"}, {"celld ready --tls-c", "--tls-cert-file --tls-client-cert-file"},
}

// All shells complete flags, their values and subcommands.
func TestCompletions(t *testing.T) {
	dir := filepath.Join(render(t), "completions")
	for shell, script := range map[string]string{
		"bash": `source celld.bash; compopt() { :; }; read -ra COMP_WORDS <<<"$1"; case $1 in *' ') COMP_WORDS+=('') ;; esac
			COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _celld; echo "${COMPREPLY[@]}"`,
		"fish": `source celld.fish; complete -C "$argv[1]"`,
	} {
		celldtest.Need(t, shell)
		for _, c := range completions {
			args := []string{"-c", script, "celld", c.typed}
			if shell == "fish" {
				args = []string{"--no-config", "-c", script, c.typed}
			}
			cmd := exec.Command(shell, args...)
			cmd.Dir = dir
			got := strings.Fields(strings.ReplaceAll(string(output(t, cmd)), "\t", " "))
			for _, word := range strings.Fields(c.want) {
				if !strings.Contains(" "+strings.Join(got, " ")+" ", " "+word+" ") {
					t.Errorf("%s: %q offers %q, which lacks %s", shell, c.typed, got, word)
				}
			}
		}
	}
}

// zsh completes in a terminal only, so one is typed into, once its prompt shows that it reads keys: before that, a tab is a letter.
func TestZshCompletions(t *testing.T) {
	dir := filepath.Join(render(t), "completions")
	celldtest.Need(t, "zsh")
	const script = `
zmodload zsh/zpty
zpty -b z zsh -f -i
await() {
	local out= more i
	for i in {1..600}; do
		zpty -r -t z more && out+=$more || sleep 0.1
		[[ $out == *"$1"* ]] && break
	done
	print -r -- "$out"
}
zpty -w z "fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -D; zstyle ':completion:*' insert-tab false; PS1=READS; PS1+=KEYS"
await READSKEYS >/dev/null
zpty -w -n z "$2"$'\t'
await "$3"
zpty -d z`
	for typed, want := range map[string]string{
		"celld --appendfs": "--appendfsync", "celld rea": "ready", "celld --appendfsync=al": "always",
	} {
		zsh := exec.Command("zsh", "-f", "-c", script, "zsh", dir, typed, want)
		if got := string(output(t, zsh)); !strings.Contains(got, want) {
			t.Errorf("%q becomes %q, want %q", typed, got, want)
		}
	}
}
