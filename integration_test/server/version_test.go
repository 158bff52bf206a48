package server

import (
	"debug/buildinfo"
	"runtime"
	"strings"
	"testing"

	"celld/integration_test/harness"
)

// celld version -v lists what Go has written into the binary, so that a scanner of vulnerabilities and an operator see the same.
func TestVersionListsModules(t *testing.T) {
	t.Parallel()
	info, err := buildinfo.ReadFile(harness.Binary(t))
	if err != nil {
		t.Fatal(err)
	}
	short, _, _ := harness.RunToEnd(t, nil, "version")
	want := []string{strings.TrimSuffix(short, "\n"), "go " + info.GoVersion + " " + runtime.GOOS + "/" + runtime.GOARCH,
		"main celld " + info.Main.Version}
	for _, module := range info.Deps {
		want = append(want, "module "+module.Path+" "+module.Version+" "+module.Sum)
	}
	if len(info.Deps) < 10 {
		t.Errorf("the binary has %d modules", len(info.Deps))
	}
	for _, args := range [][]string{{"version", "-v"}, {"-v", "version"}, {"version", "--verbose"}, {"--version", "-v"}} {
		stdout, stderr, code := harness.RunToEnd(t, nil, args...)
		if code != 0 || stderr != "" || stdout != strings.Join(want, "\n")+"\n" {
			t.Errorf("celld %q: %d, %q\n%s\nwant\n%s", args, code, stderr, stdout, strings.Join(want, "\n"))
		}
	}
}
