package persistence

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// crashLimit is how often a key passes. Some are used up soon, others never. Nothing flows back: the period is an hour, and
// longer where that would not do.
func crashLimit(i int) int {
	if i%2 == 0 {
		return 20
	}
	return 50_000
}

// crashCall returns a call of a key: CL.THROTTLE for some keys, INCREX, and CL.TAKE with each algorithm for others.
func crashCall(i int, quantity string) []string {
	key, limit := "key:"+strconv.Itoa(i), strconv.Itoa(crashLimit(i))
	algos := []string{"window", "slide", "slide,buckets=5", "log"}
	switch n := i / 2 % 10; {
	case n < 4:
		return []string{"CL.TAKE", key, limit + "/300d,algo=" + algos[n], "COST", quantity}
	case n < 6:
		return []string{"CL.TAKE", key, "1/1h,burst=" + limit, "COST", quantity}
	case n < 8:
		return []string{"INCREX", key, "BYINT", quantity, "UBOUND", limit, "EX", "3600", "ENX"}
	}
	return []string{"CL.THROTTLE", key, strconv.Itoa(crashLimit(i) - 1), "1", "3600", quantity}
}

// crashReply reads the start of a key's reply.
func crashReply(i int, raw string) (limited bool, remaining int, ok bool) {
	var value, added int
	if n, _ := fmt.Sscanf(raw, "*2\r\n:%d\r\n:%d\r\n", &value, &added); n == 2 {
		return added == 0, crashLimit(i) - value, true
	}
	var length, limitedInt, limit int
	n, _ := fmt.Sscanf(raw, "*%d\r\n:%d\r\n:%d\r\n:%d\r\n", &length, &limitedInt, &limit, &remaining)
	return limitedInt == 1, remaining, n == 4
}

// ledger is what clients know of one key.
type ledger struct {
	base   int // what the server had counted when it was last asked
	passed int // in all
	open   int // calls of the last round that were not answered
	acks   []time.Time
}

// crasher starts celld over and over on the same files and kills it while clients call.
type crasher struct {
	t     *testing.T
	rnd   *rand.Rand
	dir   string
	flags []string

	srv, before *harness.Server // the celld that runs, and the one before; nil: there was none

	mu     sync.Mutex
	keys   []ledger
	oldest time.Duration // how long before a kill a decision was answered that was forgotten
	stall  time.Duration // the longest that the machine kept this process or the server from running
}

// watchStalls notes for how long sleeps, the answers of the server, and its writing to the disk take longer than they should, until stop.
func (c *crasher) watchStalls(server *harness.Conn) (stop func()) {
	const nap = 10 * time.Millisecond
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		last, written := time.Now(), time.Now()
		for ; ; last = time.Now() {
			select {
			case <-done:
				return
			case <-time.After(nap):
				info, _ := server.TryDo([]string{"INFO", "persistence"})
				c.stall = max(c.stall, time.Since(last)-nap, time.Since(written)-2*nap)
				if harness.ContainsLine(info, "aof_buffer_length:0") {
					written = time.Now()
				}
			}
		}
	}()
	return func() { close(done); <-ended }
}

// round starts celld, compares what it has counted with what was answered, and has clients call until it is killed.
func (c *crasher) round(run time.Duration) {
	c.t.Helper()
	c.link()
	srv := harness.Spec{Binary: harness.StressBinary(c.t), Flags: c.flags, Dies: true}.Start(c.t)
	c.before, c.srv = c.srv, srv
	c.reckon(harness.Dial(c.t, srv.Addr))
	c.keys = append(c.keys, make([]ledger, 20)...)
	var clients sync.WaitGroup
	for range 4 {
		conn, rnd := harness.Dial(c.t, srv.Addr), rand.New(rand.NewPCG(c.rnd.Uint64(), 0))
		clients.Go(func() {
			for c.calls(conn, rnd) {
			}
		})
	}
	if c.rnd.IntN(3) == 0 { // files are replaced meanwhile
		conn := harness.Dial(c.t, srv.Addr)
		clients.Go(func() {
			for i := 0; ; i++ {
				if _, err := conn.TryDo([]string{[]string{"BGREWRITEAOF", "BGSAVE"}[i%2]}); err != nil {
					return
				}
			}
		})
	}
	stop := c.watchStalls(harness.Dial(c.t, srv.Addr))
	time.Sleep(run) // the kill may come at any instant, so nothing is awaited
	killed := time.Now()
	stop()
	srv.Cmd.Process.Kill()
	<-srv.Exited
	clients.Wait()
	if log := srv.Log.String(); strings.Contains(log, "DATA RACE") || strings.Contains(log, "panic") {
		c.t.Error(log)
	}
	for i := range c.keys { // the age of what was answered, as of the kill
		for j, at := range c.keys[i].acks {
			c.keys[i].acks[j] = time.Time{}.Add(killed.Sub(at))
		}
	}
}

// calls sends a few calls at once and reads the answers.
func (c *crasher) calls(conn *harness.Conn, rnd *rand.Rand) bool {
	var batch []byte
	keys := make([]int, 1+rnd.IntN(16))
	c.mu.Lock()
	for i := range keys {
		keys[i] = rnd.IntN(len(c.keys))
		c.keys[keys[i]].open++
	}
	c.mu.Unlock()
	for _, key := range keys {
		batch = append(batch, harness.Frame(crashCall(key, "1")...)...)
	}
	if _, err := conn.Write(batch); err != nil {
		return false
	}
	for _, key := range keys {
		raw, err := conn.TryReply(harness.ReplyTimeout)
		if err != nil {
			return false
		}
		limited, _, ok := crashReply(key, raw)
		c.mu.Lock()
		k := &c.keys[key]
		k.open--
		if ok && !limited {
			k.passed++
			k.acks = append(k.acks, time.Now())
		}
		c.mu.Unlock()
		if !ok {
			c.t.Errorf("%q: %q", crashCall(key, "1"), raw)
		}
	}
	return true
}

// linked is what the append-only file that the last celld has read, and added to, is called until the next start.
const linked = "appendonly.aof.read"

// link keeps the append-only file that the next celld reads, even after celld has replaced it, and that of the celld before.
func (c *crasher) link() {
	path := filepath.Join(c.dir, linked)
	_ = os.Remove(path + ".before") // a rename to another name of the same file does nothing
	_ = os.Rename(path, path+".before")
	if err := os.Link(filepath.Join(c.dir, "appendonly.aof"), path); err != nil && !errors.Is(err, os.ErrNotExist) {
		c.t.Fatal(err)
	}
}

// evidence keeps the files, and prints what they and the server say about a key that has lost a call.
func (c *crasher) evidence(i int) string {
	key := "key:" + strconv.Itoa(i)
	var b strings.Builder
	conn := harness.Dial(c.t, c.srv.Addr)
	for _, call := range [][]string{
		{"TIME"}, {"TYPE", key}, {"GET", key}, {"HGETALL", key}, {"PEXPIRETIME", key}, {"INFO", "stats"}, {"INFO", "persistence"},
	} {
		answer, err := conn.TryDo(call)
		fmt.Fprintf(&b, "%q: %q %v\n", call, answer, err)
	}
	kept, err := os.MkdirTemp("", "celld-kill-")
	if err == nil {
		err = os.CopyFS(kept, os.DirFS(c.dir))
	}
	fmt.Fprintf(&b, "the files are in %s %v\n", kept, err)
	for _, name := range []string{linked + ".before", linked, "appendonly.aof"} {
		text, err := os.ReadFile(filepath.Join(c.dir, name))
		last := strings.LastIndex(string(text), "\r\n"+key+"\r\n")
		fmt.Fprintf(&b, "%s has %d bytes, the key last at %d: %.300q %v\n", name, len(text), last, text[max(last-60, 0):], err)
	}
	fmt.Fprintf(&b, "the log of this celld:\n%s\nof the one before:\n%s\n", c.srv.Log, c.before.Log)
	return b.String()
}

// reckon asks what every key has left, after a restart.
func (c *crasher) reckon(conn *harness.Conn) {
	c.t.Helper()
	var calls []byte
	for i := range c.keys {
		calls = append(calls, harness.Frame(crashCall(i, "0")...)...)
	}
	conn.Send(calls)
	for i := range c.keys {
		k := &c.keys[i]
		raw := conn.Reply()
		_, remaining, ok := crashReply(i, raw)
		if !ok {
			c.t.Fatalf("%q: %q", crashCall(i, "0"), raw)
		}
		counted := crashLimit(i) - remaining
		if forgotten := k.base + len(k.acks) - counted; forgotten > len(k.acks) {
			c.t.Fatalf("%q: %d are counted, and %d were when it was started before, %d keys ago; %d have passed since and %d were not answered\n%s",
				crashCall(i, "0"), counted, k.base, len(c.keys)-i, len(k.acks), k.open, c.evidence(i))
		} else if forgotten > 0 {
			c.oldest = max(c.oldest, k.acks[len(k.acks)-forgotten].Sub(time.Time{}))
		} else if -forgotten > k.open {
			c.t.Errorf("key %d: %d are counted that nobody asked for", i, -forgotten-k.open)
		}
		*k = ledger{base: counted, passed: k.passed}
	}
}

// TestPersistenceKill kills celld 55 times while clients call. With always, no decision that was answered is forgotten; with everysec,
// none that is older than a second, and half a second more, or what a loaded machine takes from it. What this cannot show is a machine that
// loses power: what has been written survives the process, fsync or not.
func TestPersistenceKill(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		fsync          string
		worlds, rounds int
		longest        time.Duration // a round
		forgets        time.Duration
	}{
		{"always", 1, 50, 150 * time.Millisecond, 0},
		{"everysec", 1, 5, 3 * time.Second, 1500 * time.Millisecond},
	} {
		for world := range test.worlds {
			t.Run(fmt.Sprint(test.fsync, world), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				c := &crasher{t: t, rnd: celldtest.NewRand(t), dir: dir,
					flags: []string{"--dir", dir, "--appendonly", "yes", "--appendfsync", test.fsync, "--log-max", "50000"}}
				for range test.rounds {
					c.round(time.Duration(c.rnd.Int64N(int64(test.longest))))
				}
				c.link()
				srv := harness.StartOn(t, dir, c.flags[2:]...)
				c.before, c.srv = c.srv, srv
				c.reckon(harness.Dial(t, srv.Addr))
				checkFiles(t, dir)
				passed := 0
				for i, k := range c.keys {
					passed += k.passed
					if test.forgets == 0 && k.passed > crashLimit(i) {
						t.Errorf("key %d: %d calls passed, of %d", i, k.passed, crashLimit(i))
					}
				}
				t.Logf("%d keys, %d calls passed; the oldest that was forgotten was answered %v before the kill", len(c.keys),
					passed, c.oldest)
				if passed < 10*test.rounds {
					t.Error("too few to see anything")
				}
				if c.oldest > test.forgets && (test.forgets == 0 || c.oldest > test.forgets+2*c.stall) {
					t.Errorf("forgotten: what was answered %v before the kill; the machine stood still for %v", c.oldest, c.stall)
				}
			})
		}
	}
}
