package cli

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"celld/resp"
)

// printVersion prints one line, and with verbose what the binary was built from.
func printVersion(w io.Writer, version string, verbose bool) {
	fmt.Fprintf(w, "celld %s (%s, replies of redis-cell 0.5.0 and Redis %s)\n", version, runtime.Version(), resp.RedisVersion)
	if info, ok := debug.ReadBuildInfo(); verbose && ok {
		printBuild(w, info)
	}
}

// printBuild prints the commit, if celld was built in a checkout, and each module, with its checksum in go.sum.
func printBuild(w io.Writer, info *debug.BuildInfo) {
	fmt.Fprintf(w, "go %s %s/%s\n", info.GoVersion, runtime.GOOS, runtime.GOARCH)
	fmt.Fprintln(w, "main", info.Main.Path, info.Main.Version)
	for _, s := range info.Settings {
		if strings.HasPrefix(s.Key, "vcs.") {
			fmt.Fprintln(w, s.Key, s.Value)
		}
	}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		fmt.Fprintln(w, "module", module.Path, module.Version, module.Sum)
	}
}
