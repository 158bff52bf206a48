package deploy

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

const unitFile = "../../examples/celld.service"

// unitSettings reads a unit file: section and name to values. Lines that are commented out are none.
func unitSettings(t *testing.T) map[string][]string {
	t.Helper()
	settings, section := map[string][]string{}, ""
	for line := range strings.Lines(celldtest.ReadFile(t, unitFile)) {
		line = strings.TrimSpace(line)
		name, value, assigns := strings.Cut(line, "=")
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			section = strings.Trim(line, "[]")
		case assigns:
			settings[section+"."+name] = append(settings[section+"."+name], value)
		default:
			t.Errorf("%s: %q", unitFile, line)
		}
	}
	return settings
}

// TestSystemdUnit holds examples/celld.service to what its celld needs and to what it must not get, and starts that celld.
func TestSystemdUnit(t *testing.T) {
	t.Parallel()
	settings := unitSettings(t)
	for name, want := range map[string]string{
		"Service.Type": "notify", "Service.ExecReload": "/bin/kill -HUP $MAINPID", "Service.TimeoutStartSec": "infinity",
		"Service.NoNewPrivileges": "yes", "Service.ProtectSystem": "strict", "Service.DynamicUser": "yes",
		"Service.StateDirectory": "celld", "Service.CapabilityBoundingSet": "", "Service.Restart": "on-failure",
		"Install.WantedBy": "multi-user.target",
	} {
		if got := settings[name]; !slices.Equal(got, []string{want}) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	number := func(name string) int {
		n, err := strconv.Atoi(strings.Join(settings["Service."+name], " "))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return n
	}
	if n := number("LimitNOFILE"); n < 10_000+32 {
		t.Errorf("LimitNOFILE=%d is too low for --maxclients 10000", n)
	}
	if n := number("TimeoutStopSec"); n <= 10 {
		t.Errorf("TimeoutStopSec=%d is not above --shutdown-timeout", n)
	}

	words := strings.Fields(strings.Join(settings["Service.ExecStart"], " "))
	if len(words) < 3 || words[0] != "/usr/local/bin/celld" || words[1] != "--dir" || words[2] != "/var/lib/celld" {
		t.Fatalf("ExecStart: %q", words)
	}
	words[2] = t.TempDir()
	harness.Dial(t, harness.Start(t, words[1:]...).Addr).Do("PING")
}

// TestSystemdVerify reads the unit files with systemd-analyze. It exits with 0 even after an unknown name, but prints it.
func TestSystemdVerify(t *testing.T) {
	t.Parallel()
	analyze := celldtest.Need(t, "systemd-analyze")
	path := filepath.Join(t.TempDir(), "celld.service")
	unit := strings.ReplaceAll(celldtest.ReadFile(t, unitFile), "/usr/local/bin/celld", harness.Binary(t))
	if err := os.Mkdir(path+".d", 0o700); err != nil {
		t.Fatal(err)
	}
	for i, edit := range blocks(celldtest.ReadFile(t, "../../docs/how-to/deploy.md"), "ini") { // what systemctl edit would write
		celldtest.WriteFile(t, strings.ReplaceAll(edit, "/usr/local/bin/celld", harness.Binary(t)), fmt.Sprintf("%s.d/%d.conf", path, i))
	}
	if err := os.WriteFile(path, []byte(unit), 0o600); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(filepath.Dir(path), "celld.socket")
	celldtest.WriteFile(t, celldtest.ReadFile(t, "../../examples/celld.socket"), socket)
	if out, err := harness.Command(t, analyze, "verify", path, socket).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}
