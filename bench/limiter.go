//go:build linux

package main

import (
	"fmt"
	"strings"

	"celld/resp/wire"
)

// limiter is what a row about CL.TAKE asks of each key: limits, and of a redis-server the same in Lua.
type limiter struct {
	limits []string // CL.TAKE's, after the key, and its options
	plan   []string // a policy that is set before: its name and its limits
	script string   // empty: celld alone does the row
	args   []string // of the script
	before int      // how often each key is asked before anything is measured, 1 at least
	passes bool     // every call is to pass; else nearly none
	logs   int      // entries of each key's log before anything is measured
	wraps  bool     // the script calls CL.THROTTLE, and every server that has that runs it
}

// wrapper is how many libraries reach CL.THROTTLE, with what it is asked in the other rows.
var wrapper = limiter{script: "return redis.call('CL.THROTTLE', KEYS[1], ARGV[1], ARGV[2], ARGV[3])",
	args: []string{"15", "30", "60"}, wraps: true}

// perMinute is what CL.THROTTLE is asked in the other rows: 30 a minute, 16 at once.
var perMinute = limiter{limits: []string{"30/60s,burst=16"}, script: bucketScript, args: []string{"16", "30", "60000000"}}

func (l *limiter) fits(p *peer) bool {
	if l.wraps {
		return p.throttles()
	}
	return p.isCelld() || p.scripts() && l.script != ""
}

// sent says whether the peer is asked by the script.
func (l *limiter) sent(p *peer) bool { return l.wraps || p.scripts() }

func (l *limiter) words(p *peer) []string {
	if l.sent(p) {
		return append([]string{"EVALSHA", shaOf(l.script), "1", keyWord}, l.args...)
	}
	return append([]string{"CL.TAKE", keyWord}, l.limits...)
}

func (l *limiter) calls() int { return l.before }

// prepare asks about every key, so that memory is in place and each is in the state that the row is about.
func (l *limiter) prepare(b *bench, s *server, keys int) error {
	if l.sent(s.peer) {
		if err := loadScript(s, l.script); err != nil {
			return err
		}
	}
	if len(l.plan) > 0 {
		if reply, err := ask(s.addr, append([]string{"CL.POLICY", "SET"}, l.plan...)...); err != nil || reply != "1" {
			return fmt.Errorf("CL.POLICY SET: %q, %v", reply, err)
		}
	}
	for range max(l.before, 1) {
		if _, err := l.askAll(b, s, keys); err != nil {
			return err
		}
	}
	return l.checkLog(s)
}

// askAll asks about every key once, and returns how many calls passed.
func (l *limiter) askAll(b *bench, s *server, keys int) (passed int, err error) {
	head, tail := splitAtKey(l.words(s.peer))
	add := func(request []byte) []byte { return append(request, tail...) }
	err = load{server: s, keys: keys, keyLen: 16, head: head, limit: add, passed: &passed}.run(b.ctx)
	return passed, err
}

// check asks about every key once more: whether calls pass or not is what the row is about.
func (l *limiter) check(b *bench, s *server, keys int) error {
	passed, err := l.askAll(b, s, keys)
	if err == nil && !l.passes && passed > keys/2 {
		// A key gets a call back every 2 s: on a machine that stood still for so long each has one, which is now gone.
		passed, err = l.askAll(b, s, keys)
	}
	if err != nil {
		return err
	}
	// Of those that are denied some pass again, as it takes a while until they are asked.
	if l.passes && passed < keys || !l.passes && passed > keys/2 {
		return fmt.Errorf("of a call on each of %d keys %d pass", keys, passed)
	}
	return l.checkLog(s)
}

// checkLog counts the entries in the log of one key: HGETALL has them as calls=<time>:<cost>,+<ns>:<cost>, and so on.
func (l *limiter) checkLog(s *server) error {
	if l.logs == 0 {
		return nil
	}
	words, separator := []string{"HGETALL", "key:000000000001"}, ",+"
	if s.peer.scripts() {
		words, separator = []string{"ZRANGE", "key:000000000001", "0", "-1"}, "\n"
	}
	reply, err := ask(s.addr, words...)
	if err != nil {
		return err
	}
	n := strings.Count(reply, separator) + 1
	if l.passes && n < l.logs || !l.passes && n != l.logs {
		return fmt.Errorf("a log of %d entries, and not of %d", n, l.logs)
	}
	return nil
}

// splitAtKey returns what stands before a key's length in a command, and what after the key.
func splitAtKey(words []string) (head, tail []byte) {
	at := 0
	for words[at] != keyWord {
		at++
	}
	head = append(wire.AppendBulks(wire.AppendArray(nil, len(words)), words[:at]...), '$')
	return head, wire.AppendBulks(nil, words[at+1:]...)
}
