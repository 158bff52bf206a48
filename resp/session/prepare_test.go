package session

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"celld/resp/acl"
	"celld/resp/command/spec"
	"celld/resp/door"
	"celld/resp/session/sessiontest"
)

// newRestricted returns a peer whose user has many patterns of keys, in a world in which each look at the clock takes long.
func newRestricted(t *testing.T) (w *world, p *peer) {
	w = newWorld(t)
	rules := []string{"ACL", "SETUSER", "app", "on", ">secret", "+@all"}
	for i := range acl.MostOfAKind - 1 {
		rules = append(rules, fmt.Sprintf("~other%d:*", i))
	}
	w.connect().do(append(rules, "~key:*")...)
	p = w.connect()
	p.want("AUTH app secret", "+OK\r\n")
	w.Clock = func() int64 {
		w.nowNS += sliceNS / 10
		return w.nowNS
	}
	return w, p
}

func manyKeys(command string, keys ...string) string {
	return sessiontest.Frame(slices.Concat([]string{command}, slices.Repeat([]string{"key:1"}, 1000), keys)...)
}

// The rights to many keys are looked up in several turns, and others are served in between. What follows is answered after that.
func TestRightsToManyKeysTakeTurns(t *testing.T) {
	for _, c := range []struct{ call, want string }{
		{manyKeys("EXISTS"), ":0\r\n"},
		{manyKeys("EXISTS", "nobody's"), "-" + door.ErrNoPermKey + "\r\n"},
		{"CLIENT REPLY SKIP\r\n" + manyKeys("EXISTS"), ""},
		{"MULTI\r\n" + manyKeys("DEL") + "EXEC\r\n", "+OK\r\n+QUEUED\r\n*1\r\n:0\r\n"},
		{"MULTI\r\n" + manyKeys("DEL", "nobody's") + "EXEC\r\n", "+OK\r\n-" + door.ErrNoPermKey + "\r\n-" + errExecAbort + "\r\n"},
		{sessiontest.Frame("GET", "key:"+strings.Repeat("x", 60_000)), "$-1\r\n"},
		{sessiontest.Frame("CL.THROTTLE", "nobody's"+strings.Repeat("x", 60_000), "1", "1", "60"), "-" + door.ErrNoPermKey + "\r\n"},
	} {
		_, p := newRestricted(t)
		turns := 1
		for more := p.Serve([]byte(c.call + "ECHO behind\r\n")); more; more = p.Serve(nil) {
			turns++
		}
		if got := p.tr.Take(); got != c.want+"$6\r\nbehind\r\n" || turns < 3 {
			t.Errorf("%.30q: %q after %d turns, want %q", c.call, got, turns, c.want)
		}
	}
}

// Rights that change while they are looked up count from then on.
func TestRightsThatChangeMeanwhile(t *testing.T) {
	for rule, want := range map[string]string{
		"resetkeys": "-" + door.ErrNoPermKey + "\r\n",
		"allkeys":   ":0\r\n",
		"-exists":   "-" + formatError(door.ErrNoPermCommand, "exists") + "\r\n",
	} {
		w, p := newRestricted(t)
		if !p.Serve([]byte(manyKeys("EXISTS"))) {
			t.Fatal("it took one turn")
		}
		w.connect().do("ACL", "SETUSER", "app", rule)
		for p.Serve(nil) { //nolint:revive // until it has answered
		}
		if got := p.tr.Take(); got != want {
			t.Errorf("%s: %q, want %q", rule, got, want)
		}
	}
}

// A command that takes few arguments refuses very many before it looks at them.
func TestVeryManyArguments(t *testing.T) {
	p := newWorld(t).connect()
	more := slices.Repeat([]string{"GET"}, 2*spec.ShortList)
	for _, c := range []string{"PING", "SET k 1", "SCAN 0", "CL.TAKE k 1/1m", "HELLO 3", "CLIENT KILL"} {
		words := strings.Fields(c)
		got := p.do(append(words, more...)...)
		if !strings.HasPrefix(got, "-ERR wrong number of arguments for '"+strings.ToLower(words[0])) &&
			!strings.Contains(got, "at most 1000") {
			t.Errorf("%s: %q", c, got)
		}
	}
	set := slices.Repeat([][]byte{[]byte("KEEPTTL")}, 2*spec.ShortList)
	copy(set, [][]byte{[]byte("SET"), []byte("k"), []byte("1")})
	replay := p.srv.Replay()
	if err := replay(set); err == nil || replay(set[:4]) != nil {
		t.Errorf("in a file: %v", err)
	}
	if got := p.do(append([]string{"COMMAND", "GETKEYS", "DEL"}, more...)...); strings.Count(got, "$3\r\nGET\r\n") != 2*spec.ShortList {
		t.Errorf("COMMAND GETKEYS: %.100q", got)
	}
	if got := p.do(append([]string{"ACL", "DRYRUN", "default", "DEL"}, more...)...); got != "+OK\r\n" {
		t.Errorf("ACL DRYRUN: %q", got)
	}
}
