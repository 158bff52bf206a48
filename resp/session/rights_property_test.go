package session

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Whatever users do, by commands, in transactions, in scripts and by going away, no key changes that they may not write, and they are told
// of none that they may not read. Who has the right to all keys that a command names, and to those that its leases lead to, is not refused.
func TestNobodyReachesKeysWithoutTheRight(t *testing.T) {
	t.Parallel()
	t.Run("in memory", func(t *testing.T) {
		w := &rightsWorld{world: newWorld(t), settle: func() {}}
		w.now, w.pass = func() int64 { return w.nowNS }, func(ns int64) { w.nowNS += ns }
		w.check(t)
	})
	t.Run("on redis", func(t *testing.T) {
		far := newRedisWorld(t, "p:")
		w := &rightsWorld{world: far.world, now: far.now.Load, pass: func(ns int64) { far.now.Add(ns) }}
		w.settle = func() {
			for _, key := range rightsKeys {
				w.admin.sayTo("CL.TAKE", key, "1/1s", "PEEK") // it is behind what was asked before
			}
		}
		w.check(t)
	})
}

// check draws again while it has not seen enough: 20 cases at times refuse only one key of a lease.
func (w *rightsWorld) check(t *testing.T) {
	for range 10 {
		rapid.Check(t, w.steps)
		if w.refused >= 5 {
			return
		}
	}
	t.Errorf("only %d were refused for a key that a lease leads to", w.refused)
}

func (w *rightsWorld) steps(rt *rapid.T) {
	w.start(rt)
	defer func() {
		for _, u := range w.users {
			u.peer.Closed()
		}
		w.settle()
		w.admin.Closed()
	}()
	for range 20 {
		w.step(rt)
	}
}

func (w *rightsWorld) step(rt *rapid.T) {
	before := w.before
	if before == nil {
		before = w.look()
	}
	w.before = nil
	user, p := (*rightsUser)(nil), w.admin
	if n := rapid.IntRange(-1, len(w.users)-1).Draw(rt, "user"); n >= 0 {
		user, p = w.users[n], w.users[n].peer
	}
	d := w.draw(rt, before)
	how, said := rapid.SampledFrom([]string{"", "", "", "MULTI", "EVAL", "goes", "time"}).Draw(rt, "how"), ""
	switch {
	case how == "time":
		w.pass(rapid.Int64Range(1, 30_000).Draw(rt, "ms") * 1e6)
		return
	case how == "goes" && user != nil:
		d = deed{words: []string{"it goes"}}
		p.Closed()
		w.login(user)
		w.settle()
	case how == "MULTI":
		said = p.sayTo("MULTI") + p.sayTo(d.words...) + p.sayTo("EXEC")
	case how == "EVAL":
		script := []string{"EVAL", "return redis.call(unpack(ARGV))", fmt.Sprint(len(d.named))}
		for i := range d.named {
			d.named[i].reads, d.named[i].writes = true, true
			script = append(script, d.named[i].key)
		}
		if len(d.named) > 0 {
			said = p.sayTo(append(script, d.words...)...)
		}
	default:
		said = p.sayTo(d.words...)
	}
	w.note(said)
	lacks := func(list []touch) bool {
		for _, t := range list {
			if !user.may(t.key, t.reads, t.writes) {
				return true
			}
		}
		return false
	}
	about := fmt.Sprintf("%s %q of %+v in %+v", how, d.words, user, before)
	lacksNamed, lacksLinked := lacks(d.named), lacks(d.linked)
	was := strings.Contains(said, "NOPERM") || strings.Contains(said, errScriptNoKey)
	if want := lacksNamed || lacksLinked; was != want && !d.unsure && !strings.Contains(said, "WRONGTYPE") {
		rt.Fatalf("%s: %q, want refused: %v", about, said, want)
	}
	if was && !lacksNamed {
		w.refused++
	}
	after := w.look()
	w.before = after
	for _, key := range rightsKeys {
		if !user.may(key, false, true) && after[key].text != before[key].text {
			rt.Fatalf("%s: %q: %s was\n%s\nand is\n%s", about, said, key, before[key].text, after[key].text)
		}
		if hidden := fmt.Sprintf("%02x%x", len(key)+1, key); !user.may(key, true, false) && strings.Contains(said,
			hidden[:min(len(hidden), 32)]) {
			rt.Fatalf("%s: %q tells of %s", about, said, key)
		}
	}
}

// note remembers the IDs of leases that a reply has.
func (w *rightsWorld) note(said string) {
	for line := range strings.SplitSeq(said, "\r\n") {
		if id, found := strings.CutPrefix(line, ":"); found && len(id) == 16 {
			var n int64
			_, _ = fmt.Sscan(id, &n)
			w.ids = append(w.ids, n)
		}
	}
}
