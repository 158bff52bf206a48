package redis

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"celld/integration_test/harness"
)

// The files in testdata hold what to send, redis-server says what is right, and the files of differences list where celld may
// answer something else and why.

// compareFolder sends each paragraph of each file to celld and to redis-server, in RESP2 and RESP3, and compares bytes. flags are
// those of the two servers for a file.
func compareFolder(t *testing.T, folder string, differences map[string]difference, flags func(file string) (celld, redis []string)) {
	t.Helper()
	files, err := filepath.Glob(folder + "/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var used sync.Map
	t.Cleanup(func() { // after the last file
		for line := range differences {
			if _, ok := used.Load(line); !ok && !strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
				t.Errorf("%q may differ, but has no line in %s, or no difference", line, folder)
			}
		}
	})
	for _, file := range files {
		scripts, name := readScripts(t, file), strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			celld, redis := flags(name)
			p := &redisPair{t: t, celld: harness.Start(t, celld...).Addr, redis: harness.StartRedis(t, redis...), used: &used, differences: differences}
			for _, hello := range []string{"", "3"} {
				if slices.Contains(celld, "--requirepass") && hello != "" {
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
			words := harness.SplitQuoted(p.t, withDigests(line))
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

var digestOf = regexp.MustCompile(`sha1'([^']*)'`)

// withDigests puts the SHA-1 of a script, as EVALSHA wants it, for each sha1'script' in a line.
func withDigests(line string) string {
	return digestOf.ReplaceAllStringFunc(line, func(s string) string { return harness.Digest(s[len("sha1'") : len(s)-1]) })
}
