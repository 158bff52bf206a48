package redis

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"celld/integration_test/harness"
)

// The commands that Redis has too are compared with Redis: testdata/redis holds what to send, redis-server says what is
// right, and differences_test.go lists where celld may differ and why.

// TestRedis sends each script of testdata/redis to celld and to redis-server, in RESP2 and RESP3, and compares bytes.
func TestRedis(t *testing.T) {
	t.Parallel()
	harness.Need(t, "redis-server")
	files, err := filepath.Glob("testdata/redis/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var used sync.Map
	t.Cleanup(func() { // after the last file
		for line := range redisDifferences {
			if _, ok := used.Load(line); !ok && !strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
				t.Errorf("redisDifferences: %q has no line in testdata/redis, or no difference", line)
			}
		}
	})
	for _, file := range files {
		scripts := readScripts(t, file)
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			var flags []string
			switch filepath.Base(file) {
			case "auth.txt":
				flags = []string{"--requirepass", "sesame"}
			case "debug.txt", "latency.txt":
				flags = []string{"--enable-debug-command", "yes"}
			}
			p := &redisPair{t: t, celld: harness.Start(t, flags...).Addr, redis: harness.StartRedis(t, flags...), used: &used, differences: redisDifferences}
			for _, hello := range []string{"", "3"} {
				if slices.Contains(flags, "--requirepass") && hello != "" {
					continue // HELLO asks for the password, and there is nothing left to compare
				}
				for _, script := range scripts {
					p.compareAgain(hello, script)
				}
			}
		})
	}
}

// readScripts returns the paragraphs of a file, without comments.
func readScripts(t *testing.T, file string) (scripts [][]string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for paragraph := range strings.SplitSeq(string(text), "\n\n") {
		var script []string
		for line := range strings.Lines(paragraph) {
			if line = strings.TrimSuffix(line, "\n"); line != "" && line[0] != '#' {
				script = append(script, line)
			}
		}
		if len(script) > 0 {
			scripts = append(scripts, script)
		}
	}
	return scripts
}

// redisPair is the two servers to compare.
type redisPair struct {
	t            *testing.T
	celld, redis string
	differences  map[string]difference
	used         *sync.Map // lines of differences that were needed
}

// compareAgain runs a script, and again with more patience while something differs: a loaded machine is late at times.
func (p *redisPair) compareAgain(hello string, script []string) {
	p.t.Helper()
	var differences []string
	for _, quiet := range []time.Duration{30 * time.Millisecond, 500 * time.Millisecond, 5 * time.Second} {
		if differences = p.compare(hello, script, quiet); len(differences) == 0 {
			return
		}
	}
	for _, d := range differences {
		p.t.Error(d)
	}
}

// compare runs a script on new connections and empty keyspaces. quiet is how long redis-server must say nothing for
// its answer to raw bytes to be complete.
func (p *redisPair) compare(hello string, script []string, quiet time.Duration) (differences []string) {
	p.t.Helper()
	celld, redis := harness.Dial(p.t, p.celld), harness.Dial(p.t, p.redis)
	defer celld.Close()
	defer redis.Close()
	for _, c := range []*harness.Conn{celld, redis} {
		if hello != "" {
			c.Do("HELLO", hello)
		}
		c.Do("FLUSHALL")
	}
	for i, line := range script {
		var got, want string
		var gotErr, wantErr error
		if text, raw := strings.CutPrefix(line, "raw "); raw {
			words := harness.SplitQuoted(p.t, text)
			want, wantErr = sendRaw(redis, words[0], 0, quiet)
			got, gotErr = sendRaw(celld, words[0], len(want), min(quiet, 5*time.Millisecond))
		} else {
			words := harness.SplitQuoted(p.t, line)
			want, wantErr = redis.TryDo(words)
			got, gotErr = celld.TryDo(words)
		}
		if (got == want || harness.BothSoon(line, got, want)) && (gotErr == io.EOF) == (wantErr == io.EOF) {
			if wantErr == io.EOF {
				break
			}
			continue
		}
		if d, listed := p.differences[line]; listed && d.fits(got, want) {
			p.used.Store(line, true)
			if gotErr != nil || wantErr != nil {
				break
			}
			continue
		}
		differences = append(differences, fmt.Sprintf("HELLO %s; line %d of %q\n %s\ncelld %s\nredis %s", hello, i+1, script[0], line, shown(got, gotErr), shown(want, wantErr)))
		if gotErr != nil || wantErr != nil {
			break
		}
	}
	return differences
}

func shown(reply string, err error) string {
	if err != nil {
		return fmt.Sprintf("%.2000q, then %v", reply, err)
	}
	return fmt.Sprintf("%.2000q", reply)
}

// sendRaw sends bytes and reads until at least so many have come and the peer has been quiet for a while.
func sendRaw(c *harness.Conn, text string, atLeast int, quiet time.Duration) (string, error) {
	c.SetWriteDeadline(time.Now().Add(harness.ReplyTimeout))
	if _, err := c.Write([]byte(text)); err != nil {
		return "", io.EOF
	}
	var got []byte
	buf := make([]byte, 64<<10)
	for {
		wait := quiet
		if len(got) < atLeast {
			wait = max(quiet, 5*time.Second)
		}
		c.SetReadDeadline(time.Now().Add(wait))
		n, err := c.R.Read(buf)
		got = append(got, buf[:n]...)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return string(got), nil
		case err != nil:
			return string(got), io.EOF
		}
	}
}
