package cli

import (
	"runtime/debug"
	"strings"
	"testing"
)

// A replaced module is named by what it was replaced with, and the commit is there if it is known.
func TestPrintBuild(t *testing.T) {
	var b strings.Builder
	printBuild(&b, &debug.BuildInfo{
		GoVersion: "go1.2", Main: debug.Module{Path: "celld", Version: "(devel)"},
		Settings: []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "abc"},
			{Key: "vcs.modified", Value: "true"}, {Key: "GOOS", Value: "plan9"}},
		Deps: []*debug.Module{
			{Path: "a", Version: "v1", Sum: "h1:x"},
			{Path: "b", Version: "v2", Replace: &debug.Module{Path: "c", Version: "v3", Sum: "h1:y"}},
		},
	})
	_, rest, _ := strings.Cut(b.String(), "\n")
	want := "main celld (devel)\nvcs.revision abc\nvcs.modified true\nmodule a v1 h1:x\nmodule c v3 h1:y\n"
	if !strings.HasPrefix(b.String(), "go go1.2 ") || rest != want {
		t.Errorf("%s", &b)
	}
}
