package session

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"celld/resp/decisions"
	"celld/resp/session/sessiontest"
	"celld/store"
)

// topOf is what CL.TOP answers, by key.
func topOf(srv *Service) map[string]int64 {
	counts := map[string]int64{}
	for _, d := range srv.Top.Most(decisions.ByDenied, decisions.Start, 100, decisions.Any) {
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
			b.WriteString(sessiontest.Frame("MULTI"))
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
			b.WriteString(sessiontest.Frame(call...))
			b.WriteString(sessiontest.Frame("CL.TAKE", key, limit, "PEEK"))
		}
		if inTx {
			b.WriteString(sessiontest.Frame("EXEC"))
		}
		p(b.String())
	}
	return keys, named, literal
}

// useUp returns calls that use up all keys of deny.
func useUp() string {
	b := sessiontest.Frame("CL.POLICY", "SET", "p", "1/1d")
	for i := range 10 {
		key := fmt.Sprint("l", i)
		b += sessiontest.Frame("CL.TAKE", key, "1/1d") + sessiontest.Frame("CL.TAKE", key, "@p") +
			sessiontest.Frame("CL.THROTTLE", "t"+key, "0", "1", "86400")
	}
	return b
}

// checkDenied compares CL.TOP and CL.STATS with exact counts.
func checkDenied(t *testing.T, srv *Service, keys map[string]int64, named, literal int64) {
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
	var literals, p decisions.Counts
	for _, d := range srv.Decisions.List() {
		switch d.Policy {
		case "":
			literals.Add(&d.Counts)
		case "p":
			p = d.Counts
		}
	}
	a, l := literals[decisions.ThrottleAllowed]+literals[decisions.TakeAllowed],
		literals[decisions.ThrottleLimited]+literals[decisions.TakeLimited]
	if a != 20 || l != literal {
		t.Errorf("literals: %+v, not 20 allowed and %d limited", literals, literal)
	}
	a, l = p[decisions.ThrottleAllowed]+p[decisions.TakeAllowed], p[decisions.ThrottleLimited]+p[decisions.TakeLimited]
	if a != 10 || l != named {
		t.Errorf("@p: %+v, not 10 allowed and %d limited", p, named)
	}
}

// Each denial counts once, for the key and the limit that bind, however it was asked for and by however many connections.
func TestDenialsAreCounted(t *testing.T) {
	check := func(t *testing.T, srv *Service, addr string) {
		c := sessiontest.Dial(t, addr)
		ask := func(c sessiontest.Client) func(string) {
			return func(text string) {
				c.Send(text + sessiontest.Frame("ECHO", "done"))
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
			conn := sessiontest.Dial(t, addr)
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
	t.Run("on a disk", func(t *testing.T) { eachCarrierOn(t, &sessiontest.Disk{}, check) })
}

// Calls that come alone all count for CL.TOP BY CALLS. Of a pipeline one is drawn for all, so the sum is right, and each key about.
func TestCallsAreDrawn(t *testing.T) {
	const keys, rounds = 8, 1000
	for _, of := range []struct {
		name string
		call func(key string) string
		near bool
	}{
		{"CL.TAKE", func(key string) string { return sessiontest.Frame("CL.TAKE", key, "9000000/1h") }, false},
		{"CL.THROTTLE", func(key string) string { return sessiontest.Frame("CL.THROTTLE", key, "9000000", "9000000", "60") }, false},
		{"denied", func(key string) string { return sessiontest.Frame("CL.TAKE", key, "1/1h") }, false},
		{"INCREX", func(key string) string { return sessiontest.Frame("INCREX", key, "UBOUND", "9000000") }, false},
		{"near", func(key string) string { return sessiontest.Frame("CL.TAKE", key, "10/1h", "COST", "9", "FORCE") }, true},
	} {
		for _, pipeline := range []int{1, 64, -1, -64} { // with a minus in a transaction on an engine
			w := newWorld(t)
			before, after := "", ""
			if pipeline < 0 {
				w, _ = engineWorld(t, false)
				pipeline, before, after = -pipeline, sessiontest.Frame("MULTI"), sessiontest.Frame("EXEC")
			}
			p := w.connect()
			for n := range rounds {
				text := ""
				for i := range pipeline {
					text += of.call(fmt.Sprint("k", (n+i)%keys))
				}
				p.Serve([]byte(before + text + after))
				p.tr.Take()
			}
			sum, mean := int64(0), int64(rounds*pipeline/keys)
			for _, k := range w.Top.Most(decisions.ByCalls, decisions.Start, 100, decisions.Any) {
				if sum += k.Count; pipeline == 1 && k.Count != mean || k.Count < mean/2 || k.Count > 2*mean {
					t.Errorf("%s, %d at a time: %s came %d times, and %d are counted", of.name, pipeline, k.Key, mean, k.Count)
				}
			}
			if sum != rounds*int64(pipeline) {
				t.Errorf("%s, %d at a time: %d of %d calls are counted", of.name, pipeline, sum, rounds*pipeline)
			}
			near := len(w.Top.Most(decisions.ByNear, decisions.Start, 100, decisions.Any))
			if (near == keys) != of.near || !of.near && near > 0 {
				t.Errorf("%s: %d keys are near", of.name, near)
			}
		}
	}
}

// An engine that answers later changes nothing of that, though the bytes of the calls have been overwritten by then.
func TestDenialsOnAnEngine(t *testing.T) {
	w, e := engineWorld(t, false)
	later := &laterLimiter{Engine: e}
	w.Limiter = later
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
		p.tr.Take()
	}
	send(useUp())
	keys, named, literal := deny(send, rand.New(rand.NewPCG(1, 1)), 60)
	checkDenied(t, w.Service, keys, named, literal)
	if later.calls == 0 {
		t.Error("nothing was answered later")
	}
}

// laterLimiter decides at once, and says so when a test has it.
type laterLimiter struct {
	*sessiontest.Engine
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

// A call whose key transaction conflicts with another's change counts once, also where INFO is asked in between.
func TestConflictsCountOnce(t *testing.T) {
	w, e := engineWorld(t, false)
	p := w.connect()
	p.do("CL.THROTTLE", "k", "0", "1", "3600")
	p.do("CL.TAKE", "l", "1/1h")
	e.Later = true
	p.send(sessiontest.Frame("MULTI") + sessiontest.Frame("CL.THROTTLE", "k", "0", "1", "3600") + sessiontest.Frame("CL.TAKE", "l",
		"1/1h") + sessiontest.Frame("INFO", "stats") + sessiontest.Frame("SETNX", "m", soon) + sessiontest.Frame("EXEC"))
	e.Answer()
	p.Serve(nil)
	setBehind(e, "m", "1790000800000000000")
	answerAll(e, p)
	if got := topOf(w.Service); len(got) != 2 || got["k"] != 1 || got["l"] != 1 {
		t.Errorf("CL.TOP %v", got)
	}
	if n := w.Decisions.LiteralsSinceReset(); n[decisions.ThrottleLimited] != 1 || n[decisions.TakeLimited] != 1 {
		t.Errorf("CL.STATS %v", n)
	}
}

// However many policies deny, the memory is bounded, each can be asked for, and those that are gone are forgotten.
func TestManyPoliciesDeny(t *testing.T) {
	w := newWorld(t)
	p := w.connect()
	const policies = 96 // 64 of which have a sketch of their own
	p.do("CL.RULE", "ADD", "DENY", "*")
	for i := range policies {
		name := fmt.Sprint("p", i)
		p.do("CL.POLICY", "SET", name, "1/1h")
		p.do("CL.TAKE", "shared", "@"+name)
		p.do("CL.TAKE", fmt.Sprint("k", i), "@"+name)
	}
	if got := topOf(w.Service)["shared"]; got != policies {
		t.Errorf("%d denials in all", got)
	}
	p.do("CL.TAKE", "l", "1/1h")
	p.want("CL.TOP literals", "*1\r\n*2\r\n$1\r\nl\r\n:1\r\n")
	for _, i := range []int{0, policies - 1} {
		p.want(fmt.Sprintf("CL.TOP 5 p%d", i),
			fmt.Sprintf("*2\r\n*2\r\n$%d\r\nk%d\r\n:1\r\n*2\r\n$6\r\nshared\r\n:1\r\n", len(fmt.Sprint("k", i)), i))
		p.do("CL.POLICY", "DEL", fmt.Sprint("p", i))
	}
	if got := topOf(w.Service); got["shared"] != policies-2 || got["k0"] != 0 || got[fmt.Sprint("k", policies-1)] != 0 {
		t.Errorf("with two policies gone: %v", got)
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
