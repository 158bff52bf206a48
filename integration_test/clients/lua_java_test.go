//go:build all

package clients

import (
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// javaScripts is what Spring's DefaultRedisScript, Lettuce's eval and Redisson's RScript get, each with the scripts flushed in
// between: the same as from redis-server with redis-cell.
const javaScripts = `first: [0, 16, 15, -1, 200]
remaining: 14
flushed: 13
read only: 1
in a transaction: [12, 11]
boolean: true
boolean: false
error: LIMITED later
`

// TestJavaScripts runs the script helpers of Java's clients. These send EVALSHA, and EVAL or SCRIPT LOAD if the script is not known.
// resp/testdata/scripts/forms.txt holds the same commands, so that a test needs no hundred megabytes of libraries.
func TestJavaScripts(t *testing.T) {
	t.Parallel()
	classes := harness.JavaClasses(t, "testdata/java-scripts")
	for _, client := range []string{"spring", "lettuce", "redisson"} {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			host, port := harness.HostPort(harness.Start(t).Addr)
			cmd := harness.Command(t, celldtest.Need(t, "java"), "-classpath", classes, "Scripts", client, host, port)
			var stderr strings.Builder
			cmd.Stderr = &stderr
			if got, err := cmd.Output(); err != nil || string(got) != javaScripts {
				t.Errorf("%v\n got %s\nwant %s\n%s", err, got, javaScripts, stderr.String())
			}
		})
	}
}
