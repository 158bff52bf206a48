package world

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// A guest is a user with keys of its own. It tries everything on the keys of others, and is refused. Its rights change while it asks, and
// each of its calls obeys the old or the new ones, as a whole.

const aclFile = "users"

// rights are those that the guest has in turn. Under guest:a it has a key in one half of them.
func rights(turn int) string {
	return fmt.Sprintf("user default on nopass ~* +@all\nuser guest on >guest ~guest:%c:* +@all -@admin -@dangerous +info\n", "ab"[turn%2])
}

func drawGuest(p *plan) { p.set("aclfile", p.folder+"/"+aclFile) }

// tries are what the guest does to K, the key of another, beside MINE, one of its own.
var tries = []string{
	"CL.TAKE K 5/1s", "CL.TAKE K 5/1s PEEK", "CL.THROTTLE K 1 1 1", "DEL K", "UNLINK MINE K", "GET K", "HGETALL K",
	"SET K 5", "TTL K", "PERSIST K", "EXPIRE K 1", "RENAME K MINE", "RENAME MINE K", "COPY K MINE", "COPY MINE K REPLACE", "EXISTS MINE K",
	"TYPE K",
	"CL.MTAKE 2 MINE 5/1s K 5/1s", "CL.RELEASE K 1", "CL.RENEW K 1 1000", "CL.SETTLE K 1 0", "CL.GIVE K 5/1s 1", "CL.RESET MINE K",
	"EVAL return(redis.call('DEL',KEYS[1])) 1 K", "EVAL return(redis.call('DEL','K')) 0", "OBJECT IDLETIME K", "MEMORY USAGE K",
	"ACL SETUSER guest ~*", "CONFIG SET maxmemory 1", "CL.POLICY SET plan 1/1s", "FLUSHALL", "SHUTDOWN NOSAVE", "ACL LOAD",
}

func runGuest(w *world) {
	var all sync.WaitGroup
	turns := &turns{w: w}
	turns.change(func() { w.write(aclFile, rights(0)) })
	for n := range 2 {
		c := w.caller(fmt.Sprintf("guest %d", n), 120+n)
		c.hello = []string{"AUTH", "guest", "guest"}
		all.Go(func() {
			for range c.rounds(w.plan.calls, w.plan.think+time.Millisecond) {
				if c.rnd.IntN(2) == 0 {
					c.trespass()
				} else {
					c.visit(turns)
				}
			}
		})
	}
	turns.until(&all, w.plan.chance("turns of the guest"), func(turn int) {
		if turn%3 == 0 {
			w.wrongFile(aclFile, rights(turn)+"user guest onn\n", rights(turn-1))
		}
		w.write(aclFile, rights(turn))
		if turn%4 == 3 { // celld looks at it every two seconds, and believes what it has seen twice
			time.Sleep(6 * time.Second)
			return
		}
		for _, m := range w.all {
			m.reload()
		}
	})
}

// trespass asks for the key of another.
func (c *caller) trespass() {
	k := c.w.plan.keys[c.rnd.IntN(len(c.w.plan.keys))]
	words := strings.Fields(oneOf(c.rnd, tries...))
	for i, word := range words {
		switch word {
		case "K":
			words[i] = k.name
		case "MINE":
			words[i] = "guest:" + oneOf(c.rnd, "a", "b") + ":1"
		}
		words[i] = strings.ReplaceAll(words[i], "'K'", "'"+k.name+"'")
	}
	a := c.do(words...)
	code, text, _ := strings.Cut(a.failed(), " ")
	refused := code == "NOPERM" || strings.Contains(text, "can't access at least one of the keys") // in a script
	if !a.none && !refused && !c.w.plan.mayFail(code) {
		c.w.wrong("%s: %q was answered %v", c.name, words, a.value)
	}
}

// visit asks for its own keys, of which it may have those of one turn: alone, or both at once, which never passes.
func (c *caller) visit(t *turns) {
	half := c.rnd.IntN(2)
	key := fmt.Sprintf("guest:%c:{g}", "ab"[half])
	other := fmt.Sprintf("guest:%c:{g}", "ba"[half])
	switch c.rnd.IntN(3) {
	case 0:
		a := c.do("CL.TAKE", key, "1000/1h")
		if refused := strings.HasPrefix(a.failed(), "NOPERM"); !a.none && (refused || a.failed() == "") {
			t.obeys(c, a, func(turn int) bool { return (turn%2 == half) != refused })
		}
	case 1:
		if a := c.do("CL.MTAKE", "2", key, "1000/1h", other, "1000/1h"); !a.none && a.failed() == "" {
			c.w.wrong("%s has taken from keys of which it never has both", c.name)
		}
	case 2:
		a := c.do("EVAL", `local one = redis.pcall('CL.TAKE', KEYS[1], '1000/1h')
			local other = redis.pcall('CL.TAKE', ARGV[1], '1000/1h')
			return {one.err or 'passes', other.err or 'passes'}`, "1", key, other)
		if pair, is := a.value.([]any); is && pair[0] == "passes" && pair[1] == "passes" {
			c.w.wrong("%s: a script has obeyed two configurations", c.name)
		}
	}
}
