package server

import (
	"debug/buildinfo"
	"os"
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

// The binary has only what it calls. If anything calls methods by names that are not constant, the linker keeps all methods of all types,
// among them 16,000 of the engine's client: the binary then has 12 MB more, and a fresh process 4 MB more resident. html/template does, and
// google.golang.org/grpc by it. To find who else does: go build -ldflags=-dumpdep . 2>&1 | grep MethodByName
func TestTheBinaryIsSmall(t *testing.T) {
	t.Parallel()
	info, err := os.Stat(harness.Binary(t))
	if err != nil {
		t.Fatal(err)
	}
	if most := int64(16 << 20); info.Size() > most {
		t.Errorf("the binary has %d bytes, want %d at most", info.Size(), most)
	}
}
