package engine

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"celld/cell"
	"celld/integration_test/harness"
	"celld/integration_test/harness/engines"
	"celld/internal/celldtest"
	"celld/internal/enginetest"
	"celld/resp/wire"
	"celld/store"
	"celld/store/policy"
	"celld/store/remote"
)

// TestDifferential asks an Engine and redis-server the same, and compares replies byte for byte: what a Store sends while it passes the
// conformance suite; then its scripts with other arguments; and all commands with random arguments.
func TestDifferential(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	t.Run("store", b.store)
	t.Run("scripts", b.scripts)
	t.Run("commands", b.random)
	t.Run("all", b.all)
	t.Run("refused", b.refused)
	user := regexp.MustCompile(`ACL SETUSER celld .*\+eval.*`).FindString(celldtest.ReadFile(t, "../../../docs/how-to/share-limits.md"))
	words := regexp.MustCompile(`\+([a-z]+)`).FindAllStringSubmatch(user, -1)
	if len(words) < 30 {
		t.Fatal("docs/how-to/share-limits.md has no user")
	}
	allowed := map[string]bool{"hello": true, "auth": true}
	for _, word := range words {
		allowed[word[1]] = true
	}
	for name := range allowed {
		if b.compared[name] == 0 && name != "cluster" {
			t.Errorf("%s has not been compared", name)
		}
	}
	for name := range b.sim.Commands() {
		if !allowed[name] && name != "sentinel" {
			t.Errorf("docs/how-to/share-limits.md does not allow %s", name)
		}
	}
	t.Log(b.compared)
}

func (b *both) store(t *testing.T) {
	ticking := make(chan struct{})
	defer close(ticking)
	go func() { // the engine's clock goes on between commands
		for last := time.Now(); ; {
			select {
			case <-ticking:
				return
			case now := <-time.After(time.Millisecond):
				b.mu.Lock()
				b.at(b.nowNS + int64(now.Sub(last)))
				b.mu.Unlock()
				last = now
			}
		}
	}()
	o := remote.Options{URL: "redis://both", Dial: b.serve}
	engines.Conform(t, o)
	// A new key that is answered too late is decided again.
	o.Prefix, o.Policies, o.Timeout = "late:", &policy.Set{}, time.Minute
	o.Time = func() int64 { return 4_102_444_800_000_000_000 }
	late, err := remote.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	b.late.Store(int64(2 * store.CommitWithin))
	(&user{late, t}).leaves("new", 99)
	for _, request := range []store.Count{
		{Counter: cell.Counter{By: 5, Lower: -9, Upper: 9, Strict: true}},
		{Counter: cell.Counter{By: 5, Lower: -9, Upper: 9, Saturate: true}},
		{Counter: cell.Counter{By: -2, Lower: -9, Upper: 9}, Expire: store.ExpireIn, TimeNS: 60_000_000_000, IfNone: true},
		{Counter: cell.Counter{By: 1, Lower: -9, Upper: 9}, Only: store.IfPresent, Expire: store.NeverExpire},
	} {
		one := []store.CountRequest{{Key: []byte("count"), Count: request}}
		if w := make(waker, 1); !late.CountBatch(one, store.Access{}, w) {
			<-w
		}
		if one[0].Err != nil {
			t.Error(one[0].Err)
		}
	}
}

// thousands is how many random commands a test asks: a third of these in `make test`.
func thousands(n int) int {
	if celldtest.Thorough {
		return n * 1000
	}
	return n * 1000 / 3
}

// words are arguments that commands may misread. Scripts get none of the largest: C's Lua computes a % b as a - floor(a/b)*b, which is not
// exact from 2^53 on, and the interpreter of the simulation exactly.
var words = append([]string{"-9223372036854775808", "9223372036854775807", "9223372036854775808"}, ofScripts...)

var ofScripts = []string{
	"", "0", "1", "-1", "2", "10", "007", "+1", " 1", "1.5", "1e3", "x", "celld",
	"NX", "xx", "GET", "PX", "PXAT", "KEEPTTL", "MATCH", "COUNT", "TYPE", "\x00\r\n", "none", "string", "hash",
}

// scripts runs what a Store has run again, with some arguments replaced, and with keys that hold something else.
func (b *both) scripts(t *testing.T) {
	leaseWhileMoving(t, func(e *enginetest.Engine, ctx context.Context, to string) (net.Conn, error) { // the script for keys in two places
		conn, err := e.Dial(ctx, to)
		return &tapped{Conn: conn, both: b}, err
	})
	c, r := b.dial(), celldtest.NewRand(t)
	defer c.close()
	for _, sha := range slices.Sorted(maps.Keys(b.texts)) {
		c.do([]byte("EVAL"), b.texts[sha], []byte("0"))
	}
	made := 0 // in the source
	for _, file := range []string{"*.go", "*/*.go"} {
		paths, _ := filepath.Glob("../../../store/remote/" + file)
		for _, path := range paths {
			if !strings.HasSuffix(path, "_test.go") {
				made += strings.Count(celldtest.ReadFile(t, path), "NewScript(")
			}
		}
	}
	if made--; len(b.samples) != made { // one is NewScript itself
		t.Errorf("%d scripts have been run, of %d", len(b.samples), made)
	}
	shas := slices.Sorted(maps.Keys(b.samples))
	for range thousands(3) {
		all := b.samples[shas[r.IntN(len(shas))]]
		args := slices.Clone(all[r.IntN(len(all))])
		keys, _ := strconv.Atoi(string(args[2]))
		for range r.IntN(4) {
			if i := 3 + r.IntN(len(args)-3); r.IntN(3) == 0 || i < 3+keys {
				args[i] = []byte(pick(r, "k1", "k2", "k3"))
			} else {
				args[i] = []byte(ofScripts[r.IntN(len(ofScripts))])
			}
		}
		if r.IntN(4) == 0 {
			c.do(anyCommand(r)...)
		}
		b.pass(r)
		c.do(args...)
	}
}

func pick(r *rand.Rand, from ...string) string { return from[r.IntN(len(from))] }

// pass moves the clocks, by nothing or up to a second.
func (b *both) pass(r *rand.Rand) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.at(b.nowNS + pick64(r, 0, 1000, 1_000_000, r.Int64N(1e9)))
}

func pick64(r *rand.Rand, from ...int64) int64 { return from[r.IntN(len(from))] }

// forms are commands: k is a key, w any word, n a number, m some ms, and t an instant in ms.
var forms = []string{
	"DEL k", "DEL k k", "UNLINK k k", "EXISTS k k k", "TYPE k", "PEXPIRE k m", "PEXPIREAT k t", "PEXPIRETIME k", "PTTL k", "PERSIST k",
	"GET k", "SET k w", "SET k w NX GET PXAT t", "SET k w XX", "SET k w KEEPTTL", "SET k w PX m", "SET k w PXAT t", "SET k w w w w",
	"STRLEN k", "HGET k w", "HGETALL k", "HLEN k", "HSET k w w", "HSET k w w w w w w", "HSET k w w w", "HDEL k w", "HDEL k w w w",
	"LRANGE k n n", "RPUSH k w", "RPUSH k w w w", "LPOP k", "LREM k n w", "GET", "SET k", "HSET k w",
	"TIME", "PING", "PING w", "DISCARD", "SELECT n", "SELECT 0", "PUBLISH w w", "CLUSTER INFO", "INFO", "INFO w", "CONFIG GET save",
	"CONFIG GET maxmemory-policy", "ROLE", "AUTH w", "AUTH w w", "HELLO", "ASKING", "UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE",
	"EVAL w n k w", "EVALSHA w n k w",
}

// anyCommand is a random command for few keys, mostly one that makes sense.
func anyCommand(r *rand.Rand) [][]byte {
	key := func() string { return pick(r, "k1", "k2", "k3", "k4") }
	word := func() string { return pick(r, "a", "b", "c", words[r.IntN(len(words))]) }
	number := func() string { return pick(r, "0", "1", "-1", "2", "-2", "5", words[r.IntN(len(words))]) }
	ms := func() string { return pick(r, "0", "1", "100", "2000", "3600000", words[r.IntN(len(words))]) }
	at := func() string {
		return pick(r, "1800000000", "1800000000123", "1800000400000", "4102444800000", number())
	}
	args := [][]byte{}
	for arg := range strings.FieldsSeq(forms[r.IntN(len(forms))]) {
		switch arg {
		case "k":
			arg = key()
		case "w":
			arg = word()
		case "n":
			arg = number()
		case "m":
			arg = ms()
		case "t":
			arg = at()
		}
		args = append(args, []byte(arg))
	}
	if r.IntN(50) == 0 {
		args = append(args, []byte(word()))
	}
	if r.IntN(50) == 0 {
		args = args[:1+r.IntN(len(args))]
	}
	if unsimulated(args) {
		return anyCommand(r)
	}
	return args
}

func byScript(text string, args [][]byte) [][]byte {
	return append([][]byte{[]byte("EVAL"), []byte(text), []byte("0")}, args...)
}

// random runs random commands in both protocols, alone and from scripts.
func (b *both) random(t *testing.T) {
	r, data := celldtest.NewRand(t), b.sim.Commands()
	for _, hello := range []string{"2", "3"} {
		c := b.dial()
		defer c.close()
		c.do([]byte("HELLO"), []byte(hello))
		for range thousands(10) {
			args := anyCommand(r)
			name := strings.ToLower(string(args[0]))
			switch {
			case !data[name] && name != "time": // no script of celld calls it
			case r.IntN(4) == 0:
				args = byScript("return redis.pcall(unpack(ARGV))", args)
			case r.IntN(8) == 0 && name != "hgetall": // Lua's tables have an order of their own
				args = byScript("redis.setresp(3) return redis.call(unpack(ARGV))", args)
			}
			b.pass(r)
			c.do(args...)
		}
	}
}

// refused asks both while they refuse writes: because the memory is full, and as read-only replicas.
func (b *both) refused(t *testing.T) {
	r, n, data := celldtest.NewRand(t), b.sim.Nodes()[0], b.sim.Commands()
	rounds := func() {
		c := b.dial()
		defer c.close()
		for range 1000 {
			args := anyCommand(r)
			switch {
			case !data[strings.ToLower(string(args[0]))]:
				continue
			case r.IntN(3) == 0:
				args = byScript("return redis.call(unpack(ARGV))", args)
			case r.IntN(3) == 0: // a script that has written may go on
				args = byScript("redis.call('DEL', 'k1') return redis.pcall(unpack(ARGV))", args)
			}
			b.pass(r)
			c.do(args...)
		}
	}
	real := harness.Dial(t, b.addr)
	real.Do("CONFIG", "SET", "maxmemory", "1")
	n.OOM(true)
	rounds()
	real.Do("CONFIG", "SET", "maxmemory", "0")
	n.OOM(false)
	real.Do("REPLICAOF", "127.0.0.1", "1")
	n.ReadOnly(true)
	rounds()
	real.Do("REPLICAOF", "NO", "ONE")
	n.ReadOnly(false)
	rounds()
}

// unsimulated are forms that celld does not send, and the Engine answers with an error of its own.
func unsimulated(args [][]byte) bool {
	most := map[string]int{"LPOP": 2, "PEXPIRE": 3, "PEXPIREAT": 3, "CONFIG": 3, "CLUSTER": 2}[string(args[0])]
	return most > 0 && (len(args) > most || string(args[0]) == "CONFIG" && len(args) < 3)
}

// all compares what is not the same in both: keys in any order, and messages.
func (b *both) all(t *testing.T) {
	c := b.dial()
	defer c.close()
	do := func(line string) { c.line(line, 0) }
	for i := range 500 {
		do(fmt.Sprintf("SET {a}%d x PX %d", i, 1+i%2*1000))
		do(fmt.Sprintf("HSET {b}%d x y", i))
	}
	b.at(b.nowNS + 2e6)
	for _, options := range []string{
		"", "MATCH {a}*", "MATCH *7", "COUNT 1000", "TYPE hash", "TYPE list", "TYPE other", "COUNT 7 MATCH {b}?? TYPE hash",
	} {
		var found [2][]string
		for i, conn := range c.halves {
			for cursor := "0"; ; {
				reply := conn.ask(wire.AppendCommand(nil, strings.Fields("SCAN "+cursor+" "+options)...), 1)
				lines := strings.SplitN(reply, "\r\n", 4) // *2, $1, the cursor, and the rest
				cursor = lines[2]
				found[i] = append(found[i], harness.KeyList(lines[3])...)
				if cursor == "0" {
					break
				}
			}
			slices.Sort(found[i])
			found[i] = slices.Compact(found[i])
		}
		if !slices.Equal(found[0], found[1]) {
			t.Errorf("SCAN %s: %d keys, redis-server has %d", options, len(found[0]), len(found[1]))
		}
	}
	for _, line := range []string{
		"SCAN", "SCAN x", "SCAN 0 x", "SCAN 0 x y", "SCAN 0 COUNT 0", "SCAN 0 COUNT x", "SCAN 0 MATCH", "DBSIZE",
	} {
		do(line)
	}
	for i := range 500 {
		do(fmt.Sprintf("DEL {a}%d {b}%d", i, i))
	}
	for _, line := range []string{"SELECT 15", "RANDOMKEY", "SET only x", "RANDOMKEY", "DBSIZE", "HELLO 3", "RANDOMKEY"} {
		do(line)
	}
	listener := b.dial()
	defer listener.close()
	listener.line("HELLO 3", 0) // as celld's client says
	listener.line("SUBSCRIBE a b a", 2)
	do("PUBLISH a text")
	listener.line("PING", 1) // the message comes before the answer
	for _, what := range []string{"PUNSUBSCRIBE", "SUNSUBSCRIBE", "UNSUBSCRIBE a", "UNSUBSCRIBE", "UNSUBSCRIBE"} {
		listener.line(what, 0)
	}
	do("PUBLISH a text")
}
