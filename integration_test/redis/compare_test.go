package redis

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// The files in resp/testdata hold what to send and what celld answers, redis-server says what is right, and the files of differences
// list where celld may answer something else and why. Package resp plays the same files.
//
//	go -C integration_test test ./redis -run 'TestRedis|TestScripts' -update   records the replies anew

// compareFolder sends each paragraph of each file to celld and to redis-server, in RESP2 and RESP3, and compares bytes. flags are
// those of the two servers for a file.
func compareFolder(t *testing.T, folder string, differences map[string]difference, flags func(file string) (celld, redis []string)) {
	t.Helper()
	var used sync.Map
	t.Cleanup(func() { // after the last file
		for line := range differences {
			if _, ok := used.Load(line); !ok && !strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
				t.Errorf("%q may differ, but has no line in %s, or no difference", line, folder)
			}
		}
	})
	for _, c := range celldtest.ReadConversations(t, folder) {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			celld, redis := flags(c.Name)
			p := &redisPair{t: t, celld: harness.Start(t, celld...).Addr, redis: celldtest.StartRedis(t, redis...), used: &used,
				differences: differences}
			for _, resp3 := range []bool{false, true} {
				if slices.Contains(celld, "--requirepass") && resp3 {
					continue // HELLO asks for the password, and there is nothing left to compare
				}
				for _, paragraph := range c.Paragraphs {
					p.compareAgain(resp3, paragraph)
				}
			}
			if *celldtest.Update && !t.Failed() {
				c.Write(t)
			}
		})
	}
}

// redisPair is the two servers to compare.
type redisPair struct {
	t            *testing.T
	celld, redis string
	differences  map[string]difference
	used         *sync.Map // lines of differences that were needed
}

// compareAgain plays a paragraph, and again with more patience while something differs: a loaded machine is late at times.
func (p *redisPair) compareAgain(resp3 bool, paragraph []*celldtest.Exchange) {
	p.t.Helper()
	var differences []string
	for _, quiet := range []time.Duration{30 * time.Millisecond, 500 * time.Millisecond, 5 * time.Second} {
		if differences = p.compare(resp3, paragraph, quiet); len(differences) == 0 {
			return
		}
	}
	for _, d := range differences {
		p.t.Error(d)
	}
}

// compare plays a paragraph on new connections and empty keyspaces. quiet is how long redis-server must say nothing for
// its answer to raw bytes to be complete.
func (p *redisPair) compare(resp3 bool, paragraph []*celldtest.Exchange, quiet time.Duration) (differences []string) {
	p.t.Helper()
	celld, redis := harness.Dial(p.t, p.celld), harness.Dial(p.t, p.redis)
	defer celld.Close()
	defer redis.Close()
	for _, c := range []*harness.Conn{celld, redis} {
		if resp3 {
			c.Do("HELLO", "3")
		}
		c.Do("FLUSHALL")
	}
	for i, x := range paragraph {
		var got, want string
		var gotErr, wantErr error
		words, raw := x.Words(p.t)
		if raw {
			want, wantErr = sendRaw(redis, words[0], 0, quiet)
			got, gotErr = sendRaw(celld, words[0], len(want), min(quiet, 5*time.Millisecond))
		} else {
			want, wantErr = redis.TryDo(words)
			got, gotErr = celld.TryDo(words)
		}
		fits := (got == want || celldtest.BothSoon(x.Command, got, want)) && (gotErr == io.EOF) == (wantErr == io.EOF)
		if d, listed := p.differences[x.Command]; !fits && listed && d.fits(got, want) {
			p.used.Store(x.Command, true)
			fits = true
		}
		end, now := gotErr == io.EOF, time.Now()
		if *celldtest.Update {
			x.Record(resp3, got, end, now)
		}
		if !fits || !x.Fits(resp3, got, end, now) {
			differences = append(differences, fmt.Sprintf("RESP3 %v; line %d of %q\n %s\ncelld %s\nredis %s\nrecorded %s",
				resp3, i+1, paragraph[0].Command, x.Command, shown(got, gotErr), shown(want, wantErr), x.Recorded(resp3)))
		}
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
