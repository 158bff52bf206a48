//go:build linux

package main

import (
	"strings"
	"testing"
	"time"
)

func TestAppendCommand(t *testing.T) {
	for _, test := range []struct {
		peer   string
		keyLen int
		want   string
	}{
		{"celld", 16, "*5 $11 CL.THROTTLE $16 key:000000000042 $2 15 $2 30 $2 60 "},
		{"throttlecrab", 20, "*5 $8 THROTTLE $20 key:0000000000000042 $2 15 $2 30 $2 60 "},
		{"ping", 16, "*1 $4 PING "},
		{"set", 16, "*5 $3 SET $16 key:000000000042 $2 15 $2 30 $2 60 "},
	} {
		for _, p := range allPeers {
			if p.name != test.peer {
				continue
			}
			l := load{server: &server{peer: p}, keyLen: test.keyLen}.withHead()
			got := string(l.appendCommand(nil, 42, fixedLimit(nil)))
			if want := strings.ReplaceAll(test.want, " ", "\r\n"); got != want {
				t.Errorf("%s: %q, want %q", test.peer, got, want)
			}
		}
	}
}

func TestUntilLimit(t *testing.T) {
	limit := untilLimit(time.Now().Add(time.Minute))(nil)
	if want := "$2\r\n15\r\n$4\r\n1000\r\n$5\r\n59"; !strings.HasPrefix(string(limit), want) {
		t.Errorf("%q", limit)
	}
	if past := string(untilLimit(time.Now())(nil)); !strings.HasSuffix(past, "$1\r\n1\r\n") {
		t.Errorf("%q", past)
	}
}

// TestSplitAtKey puts a key between the parts of a command.
func TestSplitAtKey(t *testing.T) {
	for _, p := range allPeers {
		want := map[string]string{
			"celld": "*3 $7 CL.TAKE $16 key:000000000042 $15 30/60s,burst=16 ",
			"lua":   "*7 $7 EVALSHA $40 " + shaOf(bucketScript) + " $1 1 $16 key:000000000042 $2 16 $2 30 $8 60000000 ",
		}[p.name]
		if want == "" {
			continue
		}
		head, tail := splitAtKey(perMinute.words(p))
		got := string(load{server: &server{peer: p}, keyLen: 16, head: head}.appendCommand(nil, 42, tail))
		if want := strings.ReplaceAll(want, " ", "\r\n"); got != want {
			t.Errorf("%s: %q, want %q", p.name, got, want)
		}
	}
}

func TestReplies(t *testing.T) {
	peers := map[string]*peer{}
	for _, p := range allPeers {
		peers[p.name] = p
	}
	for _, test := range []struct {
		peer, text string
		allowed    bool
		bad        bool
	}{
		{"celld", "*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n", true, false},
		{"celld", "*5\r\n:1\r\n:16\r\n:0\r\n:2\r\n:32\r\n", false, false},
		{"celld", "*7\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2000\r\n:1\r\n:0\r\n", true, false},
		{"celld", "*6\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2000\r\n:1\r\n", false, true},
		{"lua", "*5\r\n:1\r\n:16\r\n:0\r\n:1\r\n:1\r\n", false, false},
		{"throttlecrab", "*5\r\n:1\r\n:15\r\n:14\r\n:2\r\n:0\r\n", true, false},
		{"ping", "+PONG\r\n", true, false},
		{"ping", "-ERR no\r\n", false, true},
		{"set", "+OK\r\n", true, false},
		{"set", "-MISCONF no\r\n", false, true},
		{"celld", "-OOM command not allowed\r\n", false, true},
		{"celld", "*5\r\n:0\r\n-ERR\r\n", false, true},
		{"celld", "*5\r\n:0\r\n", false, true},
	} {
		allowed, err := newReplies(strings.NewReader(test.text), peers[test.peer]).next()
		if (err != nil) != test.bad || !test.bad && allowed != test.allowed {
			t.Errorf("%s %q: %v, %v", test.peer, test.text, allowed, err)
		}
	}
}
