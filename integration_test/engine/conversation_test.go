// Package engine tests celld with --store.
package engine

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"celld/integration_test/harness"
)

// startEngine runs redis-server and a celld that keeps its keys there.
func startEngine(t *testing.T, flags ...string) (celld *harness.Server, redis string) {
	t.Helper()
	redis = harness.StartRedis(t)
	return harness.Start(t, append([]string{"--store", "unix://" + strings.TrimPrefix(redis, "unix:"), "--store-prefix", "[a]*:", "--store-timeout", "20s"}, flags...)...), redis
}

// What redis-server answers and celld in memory, celld with an engine answers, too. A line that it refuses there ends its paragraph.
func TestConversations(t *testing.T) {
	t.Parallel()
	for _, c := range harness.ReadConversations(t, "../../resp/testdata/redis") {
		if c.Name == "auth" || c.Name == "debug" || c.Name == "latency" { // with settings of their own
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			celld, redis := startEngine(t)
			same := 0
			for _, paragraph := range c.Paragraphs {
				for _, resp3 := range []bool{false, true} {
					same += play(t, celld.Addr, resp3, paragraph)
				}
			}
			if same == 0 {
				t.Error("nothing was answered as in memory")
			}
			for _, key := range harness.KeyList(harness.Dial(t, redis).Do("KEYS", "*")) {
				if !strings.HasPrefix(key, "[a]*:") {
					t.Errorf("%q is on the engine, without the prefix", key)
				}
			}
		})
	}
}

// play says a paragraph on a new connection, and returns how many lines were answered as recorded.
func play(t *testing.T, addr string, resp3 bool, paragraph []*harness.Exchange) (same int) {
	t.Helper()
	c := harness.Dial(t, addr)
	defer c.Close()
	if resp3 {
		c.Do("HELLO", "3")
	}
	c.Do("FLUSHALL")
	for _, x := range paragraph {
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
			return same
		case strings.HasPrefix(x.Command, "OBJECT IDLETIME"), strings.HasPrefix(x.Command, "MEMORY USAGE"): // of a table
		case !x.Fits(resp3, got, err == io.EOF, time.Now()):
			t.Errorf("RESP3 %v; %q\n %s\ncelld    %q, %v\nrecorded %s", resp3, paragraph[0].Command, x.Command, got, err, x.Recorded(resp3))
		default:
			same++
		}
		if err != nil {
			return same
		}
	}
	return same
}

// say sends bytes, and reads until what has come is what is recorded, or nothing comes for long.
func say(c *harness.Conn, text string, x *harness.Exchange, resp3 bool) (got string, err error) {
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
