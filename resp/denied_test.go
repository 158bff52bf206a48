package resp

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"celld/store"
	"celld/store/memory"
)

// topOf is what CL.TOP answers, by key.
func topOf(srv *Server) map[string]int64 {
	counts := map[string]int64{}
	for _, d := range srv.MostDenied(100) {
		counts[d.Key] = d.Count
	}
	return counts
}

// deny sends pipelines of calls, each of which is denied, in all the ways that there are. It counts them by key, and by whether they
// name a policy.
func deny(p func(string), rng *rand.Rand, rounds int) (keys map[string]int64, named, literal int64) {
	keys = map[string]int64{}
	for range rounds {
		var b strings.Builder
		inTx := rng.IntN(4) == 0
		if inTx {
			b.WriteString(frame("MULTI"))
		}
		for range 1 + rng.IntN(30) {
			key, byPolicy := fmt.Sprintf("l%d", rng.IntN(10)), rng.IntN(2) == 0
			limit := "1/1d"
			if byPolicy {
				limit = "@p"
				named++
			} else {
				literal++
			}
			call := []string{"CL.TAKE", key, limit}
			switch rng.IntN(4) {
			case 0:
				call = []string{"CL.MTAKE", "2", "free", "90/1d", key, limit}
			case 1:
				if byPolicy {
					call = []string{"CL.THROTTLE", key, limit}
				} else {
					key = "t" + key
					call = []string{"CL.THROTTLE", key, "0", "1", "86400"}
				}
			case 2:
				call = []string{"EVAL", "return redis.call('CL.TAKE', KEYS[1], ARGV[1])", "1", key, limit}
			}
			keys[key]++
			b.WriteString(frame(call...))
			b.WriteString(frame("CL.TAKE", key, limit, "PEEK"))
		}
		if inTx {
			b.WriteString(frame("EXEC"))
		}
		p(b.String())
	}
	return keys, named, literal
}

// useUp has all keys of deny used up.
func useUp() string {
	b := frame("CL.POLICY", "SET", "p", "1/1d")
	for i := range 10 {
		key := fmt.Sprint("l", i)
		b += frame("CL.TAKE", key, "1/1d") + frame("CL.TAKE", key, "@p") + frame("CL.THROTTLE", "t"+key, "0", "1", "86400")
	}
	return b
}

// checkDenied compares CL.TOP and CL.STATS with exact counts.
func checkDenied(t *testing.T, srv *Server, keys map[string]int64, named, literal int64) {
	t.Helper()
	got := topOf(srv)
	for key, n := range keys {
		if got[key] != n {
			t.Errorf("%s was denied %d times, CL.TOP says %d", key, n, got[key])
		}
	}
	if len(got) != len(keys) {
		t.Errorf("CL.TOP has %v, denied were %v", got, keys)
	}
	var literals, p decisions
	for _, d := range srv.decisions.list() {
		switch d.policy {
		case "":
			literals.add(&d.decisions)
		case "p":
			p = d.decisions
		}
	}
	if a, l := literals[throttleAllowed]+literals[takeAllowed], literals[throttleLimited]+literals[takeLimited]; a != 20 || l != literal {
		t.Errorf("literals: %+v, not 20 allowed and %d limited", literals, literal)
	}
	if a, l := p[throttleAllowed]+p[takeAllowed], p[throttleLimited]+p[takeLimited]; a != 10 || l != named {
		t.Errorf("@p: %+v, not 10 allowed and %d limited", p, named)
	}
}

// Each denial counts once, for the key and the limit that bind, however it was asked for and by however many connections.
func TestDenialsAreCounted(t *testing.T) {
	check := func(t *testing.T, srv *Server, addr string) {
		c := dialTest(t, addr)
		ask := func(c testConn) func(string) {
			return func(text string) {
				c.send(text + frame("ECHO", "done"))
				for {
					if line, err := c.ReadString('\n'); err != nil || strings.HasPrefix(line, "done") {
						return
					}
				}
			}
		}
		ask(c)(useUp())
		all, named, literal := map[string]int64{}, int64(0), int64(0)
		var mu sync.Mutex
		var wg sync.WaitGroup
		for seed := range uint64(4) {
			conn := dialTest(t, addr)
			wg.Go(func() {
				keys, n, l := deny(ask(conn), rand.New(rand.NewPCG(1, seed)), 30)
				mu.Lock()
				defer mu.Unlock()
				named, literal = named+n, literal+l
				for key, n := range keys {
					all[key] += n
				}
			})
		}
		wg.Wait()
		checkDenied(t, srv, all, named, literal)
	}
	t.Run("in memory", func(t *testing.T) { eachCarrier(t, check) })
	t.Run("on a disk", func(t *testing.T) { eachCarrierOn(t, &fullDisk{}, check) })
}

// An engine that answers later changes nothing of that, though the bytes of the calls have been overwritten by then.
func TestDenialsOnAnEngine(t *testing.T) {
	w, e := engineWorld(t, false)
	later := &laterLimiter{fakeEngine: e}
	w.limiter = later
	p := w.connect()
	buffer := make([]byte, 0, 64<<10)
	send := func(text string) {
		buffer = append(buffer[:0], text...)
		p.Serve(buffer)
		for i := range buffer {
			buffer[i] = 'x'
		}
		for p.waits != nil || p.unserved {
			if w := later.waker; w != nil {
				later.waker = nil
				w.Wake()
			}
			p.Serve(nil)
		}
		p.tr.take()
	}
	send(useUp())
	keys, named, literal := deny(send, rand.New(rand.NewPCG(1, 1)), 60)
	checkDenied(t, w.Server, keys, named, literal)
	if later.calls == 0 {
		t.Error("nothing was answered later")
	}
}

// laterLimiter decides at once, and says so when a test has it.
type laterLimiter struct {
	*fakeEngine
	calls int
	waker store.Waker
}

func (l *laterLimiter) ThrottleBatch(reqs []store.Request, a store.Access, w store.Waker) bool {
	l.Store.ThrottleBatch(reqs, a, nil)
	return l.says(w)
}

func (l *laterLimiter) TakeBatch(reqs []store.TakeRequest, a store.Access, w store.Waker) bool {
	l.Store.TakeBatch(reqs, a, nil)
	return l.says(w)
}

func (l *laterLimiter) says(w store.Waker) bool {
	l.calls++
	l.waker = w
	return w == nil
}

// A call whose visit conflicts with another's change counts once, also where INFO is asked in between.
func TestConflictsCountOnce(t *testing.T) {
	w, e := engineWorld(t, false)
	p := w.connect()
	p.do("CL.THROTTLE", "k", "0", "1", "3600")
	p.do("CL.TAKE", "l", "1/1h")
	e.later = true
	p.send(frame("MULTI") + frame("CL.THROTTLE", "k", "0", "1", "3600") + frame("CL.TAKE", "l", "1/1h") + frame("INFO", "stats") + frame("SETNX", "m", soon) + frame("EXEC"))
	e.answer()
	p.Serve(nil)
	e.setBehind("m", "1790000800000000000")
	e.answerAll(p)
	if got := topOf(w.Server); len(got) != 2 || got["k"] != 1 || got["l"] != 1 {
		t.Errorf("CL.TOP %v", got)
	}
	if n := w.decisions.literalsSinceReset(); n[throttleLimited] != 1 || n[takeLimited] != 1 {
		t.Errorf("CL.STATS %v", n)
	}
}

// However many policies deny, the memory is bounded, each can be asked for, and those that are gone are forgotten.
func TestManyPoliciesDeny(t *testing.T) {
	w := newWorld(t)
	p := w.connect()
	const policies = 3 * mostSketches / 2
	p.do("CL.RULE", "ADD", "DENY", "*")
	for i := range policies {
		name := fmt.Sprint("p", i)
		p.do("CL.POLICY", "SET", name, "1/1h")
		p.do("CL.TAKE", "shared", "@"+name)
		p.do("CL.TAKE", fmt.Sprint("k", i), "@"+name)
	}
	if got := topOf(w.Server)["shared"]; got != policies || len(w.denied.own) != mostSketches {
		t.Errorf("%d denials in all, %d sketches", got, len(w.denied.own))
	}
	p.do("CL.TAKE", "l", "1/1h")
	if p.want("CL.TOP literals", "*1\r\n*2\r\n$1\r\nl\r\n:1\r\n"); w.denied.own[0] == nil {
		t.Error("literals are not counted apart")
	}
	for _, i := range []int{0, policies - 1} {
		p.want(fmt.Sprintf("CL.TOP 5 p%d", i), fmt.Sprintf("*2\r\n*2\r\n$%d\r\nk%d\r\n:1\r\n*2\r\n$6\r\nshared\r\n:1\r\n", len(fmt.Sprint("k", i)), i))
		p.do("CL.POLICY", "DEL", fmt.Sprint("p", i))
	}
	if got := topOf(w.Server); got["shared"] != policies-2 || got["k0"] != 0 || got[fmt.Sprint("k", policies-1)] != 0 {
		t.Errorf("with two policies gone: %v", got)
	}
}

// Rows of policies that come and go are dropped. What they counted is not.
func TestRowsOfPoliciesThatGo(t *testing.T) {
	w := newWorld(t)
	p := w.connect()
	p.do("CL.POLICY", "SET", "stays", "9/1h")
	p.do("CL.TAKE", "k", "@stays")
	const others = 3 * manyRows
	for i := range mostPolicyNames - 1 + others {
		name := fmt.Sprint("p", i)
		p.send(frame("CL.POLICY", "SET", name, "9/1h") + frame("CL.TAKE", "k", "@"+name) + frame("CL.POLICY", "DEL", name))
	}
	if n := len(w.decisions.rows); n > manyRows {
		t.Errorf("%d rows", n)
	}
	counts := w.decisions.list()
	if len(counts) != 2+mostPolicyNames || counts[1].policy != "other" || counts[1].decisions[takeAllowed] != others || counts[2].policy != "stays" || counts[2].decisions[takeAllowed] != 1 {
		t.Errorf("%d: %+v", len(counts), counts[:3])
	}
}

// Keys that are long are told by their start and their length, and apart by all of them.
func TestTopOfLongKeys(t *testing.T) {
	w := newWorld(t)
	p := w.connect()
	long := strings.Repeat("x", 300)
	for _, key := range []string{long + "a", long + "b"} {
		p.do("CL.THROTTLE", key, "0", "1", "3600")
		p.do("CL.THROTTLE", key, "0", "1", "3600")
	}
	shown := long[:256] + "... (45 more bytes)"
	row := fmt.Sprintf("*2\r\n$%d\r\n%s\r\n:1\r\n", len(shown), shown)
	p.want("CL.TOP", "*2\r\n"+row+row)
}

// What was denied under a policy that is gone does not come back, however late it gets to the sketches.
func TestDenialsUnderAPolicyThatIsGone(t *testing.T) {
	w := newWorld(t)
	p := w.connect()
	p.send(frame("CL.POLICY", "SET", "p", "1/1d") + frame("CL.TAKE", "k", "@p") + frame("CL.TAKE", "k", "@p"))
	if got := topOf(w.Server); got["k"] != 1 {
		t.Fatalf("%v", got)
	}
	p.send(frame("CL.TAKE", "k", "@p") + frame("CL.POLICY", "DEL", "p"))
	w.denied.mu.Lock()
	w.denied.dropGone(w.store)
	w.denied.mu.Unlock()
	if got := topOf(w.Server); len(got) > 0 {
		t.Errorf("%v", got)
	}
}

// Keys that share a set count exactly, however many they are, and under whichever policies.
func TestDenialsOfOneSet(t *testing.T) {
	d, policies := newDenied(), memory.New(memory.Options{MaxKeys: 1})
	const keys, rounds = 3 * sumsOfSet, 100
	for range rounds {
		for i := range keys {
			hash := uint64(1+i)<<40 | 5
			d.add(policies, []denial{{hash: hash, key: []byte{byte(i)}}, {hash: hash, key: []byte{byte(i)}}})
		}
	}
	got := map[string]int64{}
	for _, item := range d.items(policies) {
		got[string(item.Key)] += item.Count
	}
	if len(got) != keys {
		t.Errorf("%d keys, want %d", len(got), keys)
	}
	for key, n := range got {
		if n != 2*rounds {
			t.Errorf("%q was denied %d times, counted are %d", key, 2*rounds, n)
		}
	}
}
