package redis

import (
	"flag"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"celld/integration_test/harness"
)

// People reach CL.THROTTLE by scripts, too. What they send is in testdata/scripts; redis-server with redis-cell in it says
// what is right, and scripts_differences_test.go lists where celld may differ and why.

// TestScripts sends each paragraph of testdata/scripts to celld and to redis-server, in RESP2 and RESP3, and compares bytes.
func TestScripts(t *testing.T) {
	t.Parallel()
	module := harness.ModulePath(t)
	files, err := filepath.Glob("testdata/scripts/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var used sync.Map
	t.Cleanup(func() { // after the last file
		for line := range scriptDifferences {
			if _, ok := used.Load(withDigests(line)); !ok && !strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
				t.Errorf("scriptDifferences: %q has no line in testdata/scripts, or no difference", line)
			}
		}
	})
	differences := map[string]difference{}
	for line, d := range scriptDifferences {
		differences[withDigests(line)] = d
	}
	for _, file := range files {
		paragraphs := readScripts(t, file)
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			p := &redisPair{t: t, celld: harness.Start(t).Addr, redis: harness.StartRedis(t, "--loadmodule", module), used: &used, differences: differences}
			for _, hello := range []string{"", "3"} {
				for _, paragraph := range paragraphs {
					for i := range paragraph {
						paragraph[i] = withDigests(paragraph[i])
					}
					p.compareAgain(hello, paragraph)
				}
			}
		})
	}
}

var digestOf = regexp.MustCompile(`sha1'([^']*)'`)

// withDigests puts the SHA-1 of a script, as EVALSHA wants it, for each sha1'script' in a line.
func withDigests(line string) string {
	return digestOf.ReplaceAllStringFunc(line, func(s string) string { return harness.Digest(s[len("sha1'") : len(s)-1]) })
}
