// Package engine tests celld with --store.
package engine

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/integration_test/harness/engines"
	"celld/internal/celldtest"
)

// TestConversations says to celld on each engine, alone, as a Cluster and with Sentinels, what resp/testdata has where no time
// passes. Its answers are those of
// celld in memory. A line of differences, and one that it refuses there, ends its paragraph.
func TestConversations(t *testing.T) {
	engines.EachFleet(t, func(t *testing.T, f *engines.Fleet) {
		t.Run("", func(t *testing.T) { // which ends with the last of them
			for _, folder := range []string{"redis", "scripts"} {
				for _, c := range celldtest.ReadConversations(t, "../../resp/testdata/"+folder) {
					if otherConversations[c.Name] == "" {
						t.Run(c.Name, func(t *testing.T) {
							if c.Name != "scan" { // whose cursors tell of all keys on the engine
								t.Parallel()
							}
							converse(t, f, c)
						})
					}
				}
			}
		})
		for _, n := range f.Nodes {
			for _, key := range harness.KeyList(n.Do("KEYS", "*")) {
				if !strings.Contains(key, "}[a]*:") {
					t.Errorf("%q is on the engine, without the prefix", key)
				}
			}
		}
	})
}

// converse plays a file on a celld of its own. Its prefix has all keys in one slot of a Cluster, and is no pattern.
func converse(t *testing.T, f *engines.Fleet, c *celldtest.Conversation) {
	celld := harness.Start(t, "--store", f.URL, "--store-prefix", "{"+c.Name+"}[a]*:", "--store-timeout", "20s")
	same := 0
	for _, paragraph := range c.Paragraphs {
		for _, resp3 := range []bool{false, true} {
			celldtest.Again(t, func(string) string { // as tokens flow back where the machine stands still for some seconds
				n, difference := play(t, celld.Addr, resp3, paragraph, len(f.Nodes) == 6)
				same += n
				return difference
			})
		}
	}
	if same == 0 {
		t.Error("nothing was answered as in memory")
	}
}

// play says a paragraph on a new connection, and returns how many lines were answered as recorded, and the first that was not.
func play(t *testing.T, addr string, resp3 bool, paragraph []*celldtest.Exchange, cluster bool) (same int, difference string) {
	t.Helper()
	c := harness.Dial(t, addr)
	defer c.Close()
	if resp3 {
		c.Do("HELLO", "3")
	}
	c.Do("FLUSHALL")
	for _, x := range paragraph {
		if differs(x.Command, cluster) {
			return same, ""
		}
		words, raw := x.Words(t)
		var got string
		var err error
		if raw {
			got, err = say(c, words[0], x, resp3)
		} else {
			got, err = c.TryDo(words)
		}
		switch {
		case strings.Contains(got, "with --store"):
			return same, ""
		case strings.HasPrefix(x.Command, "OBJECT IDLETIME"), strings.HasPrefix(x.Command, "MEMORY USAGE"): // of a table
		case !x.Fits(resp3, got, err == io.EOF, time.Now()):
			return same, fmt.Sprintf("RESP3 %v; %q\n %s\ncelld    %q, %v\nrecorded %s", resp3, paragraph[0].Command, x.Command, got, err,
				x.Recorded(resp3))
		default:
			same++
		}
		if err != nil {
			return same, ""
		}
	}
	return same, ""
}

// say sends bytes, and reads until what has come is what is recorded, or nothing comes for long.
func say(c *harness.Conn, text string, x *celldtest.Exchange, resp3 bool) (got string, err error) {
	c.Send([]byte(text))
	buf := make([]byte, 64<<10)
	for !x.Fits(resp3, got, false, time.Now()) {
		_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
		n, err := c.R.Read(buf)
		got += string(buf[:n])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return got, nil
		}
		if err != nil {
			return got, io.EOF
		}
	}
	return got, nil
}
