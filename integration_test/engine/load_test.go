package engine

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// kind is a way to take from a key. The limits are exact counters for 300 s: so long nothing flows back, and what remains tells
// how often a key was counted.
type kind struct {
	name    string
	limit   int64
	command string   // %[1]s is the key
	peeks   []string // each answers what is left
	rate    int64    // a second; 0: it is an exact counter
}

const most = 14_900

var (
	throttles = kind{"throttle", most, "CL.THROTTLE %[1]s 14899 1 300", []string{"CL.THROTTLE %[1]s 14899 1 300 0"}, 0}
	takes     = kind{"take", most, "CL.TAKE %[1]s 14900/4470000s", []string{"CL.TAKE %[1]s 14900/4470000s COST 0"}, 0}
	windows   = kind{"window", most, "CL.TAKE %[1]s 14900/4470000s,algo=window",
		[]string{"CL.TAKE %[1]s 14900/4470000s,algo=window COST 0"}, 0}
	pairs = kind{"pair", most, "CL.MTAKE 2 {%[1]s}l 14900/4470000s {%[1]s}r 14900/4470000s,algo=window",
		[]string{"CL.TAKE {%[1]s}l 14900/4470000s COST 0", "CL.TAKE {%[1]s}r 14900/4470000s,algo=window COST 0"}, 0}
	rates = kind{"rate", 50, "CL.THROTTLE %[1]s 49 100 1", nil, 100}

	kinds = []kind{throttles, takes, windows, pairs, rates}
)

// words are the command for a key.
func (k kind) words(key string) []string { return strings.Fields(fmt.Sprintf(k.command, key)) }

// outcome is what a reply says of a call.
type outcome uint8

const (
	passed outcome = iota
	denied
	perhaps // not known: counted once or not at all
	refused // not counted
	strange
)

func outcomeOf(raw string) outcome {
	_, first, _ := strings.Cut(strings.TrimPrefix(raw, "*3\r\n"), "\r\n") // CL.MTAKE says first what holds for all
	switch {
	case strings.HasPrefix(raw, "*") && strings.HasPrefix(first, ":0\r\n"):
		return passed
	case strings.HasPrefix(raw, "*") && strings.HasPrefix(first, ":1\r\n"):
		return denied
	case strings.HasPrefix(raw, "-STOREDOWN ") && strings.HasSuffix(raw, "; the call may have been counted\r\n"):
		return perhaps
	case strings.HasPrefix(raw, "-STOREDOWN "), strings.HasPrefix(raw, "-OOM "):
		return refused
	}
	return strange
}

// answer is when a call was sent and answered, by the client's clock.
type answer struct {
	sent, got time.Time
	outcome   outcome
}

// account is what clients know of a key.
type account struct {
	kind kind
	key  string

	mu      sync.Mutex
	first   time.Time // when the first call was sent
	answers []answer
}

func (a *account) note(is answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.first.IsZero() || is.sent.Before(a.first) {
		a.first = is.sent
	}
	a.answers = append(a.answers, is)
}

// count is how many calls had this outcome.
func (a *account) count(o outcome) (n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, is := range a.answers {
		if is.outcome == o {
			n++
		}
	}
	return n
}

// decided is when the first call that was sent after a moment was granted or denied.
func (a *account) decided(after time.Time) (at time.Time, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, is := range a.answers {
		if is.outcome <= denied && is.sent.After(after) && (!ok || is.got.Before(at)) {
			at, ok = is.got, true
		}
	}
	return at, ok
}

// load is clients that call all the time, every 5 ms or as soon as they are answered.
type load struct {
	clients  int // of each server
	keys     int // of each kind; 0: 3
	pipeline int // the longest; 0: 8

	t        *testing.T
	servers  []*harness.Server
	accounts []*account
	stopped  chan struct{}
	running  sync.WaitGroup

	mu    sync.Mutex
	texts map[string]int // errors
}

// start starts clients that call each server until stop, and waits until they are served.
func (l *load) start(t *testing.T, servers []*harness.Server, kinds ...kind) *load {
	t.Helper()
	l.t, l.servers, l.stopped, l.texts = t, servers, make(chan struct{}), map[string]int{}
	l.keys, l.pipeline = cmp.Or(l.keys, 3), cmp.Or(l.pipeline, 8)
	for _, k := range kinds {
		for i := range l.keys {
			l.accounts = append(l.accounts, &account{kind: k, key: fmt.Sprint(k.name, i)})
		}
	}
	rnd := celldtest.NewRand(t)
	for _, srv := range servers {
		for range l.clients {
			c, rnd := harness.Dial(t, srv.Addr), rand.New(rand.NewPCG(rnd.Uint64(), 0))
			l.running.Go(func() { l.call(c, rnd) })
		}
	}
	t.Cleanup(func() { // before the servers end
		l.stop()
		if t.Failed() {
			t.Logf("errors: %v", l.texts)
		}
	})
	for _, a := range l.accounts {
		celldtest.Eventually(t, a.key+" is served", func() bool { return a.count(passed) > 20 })
	}
	return l
}

func (l *load) stop() {
	select {
	case <-l.stopped:
	default:
		close(l.stopped)
	}
	l.running.Wait()
}

// call is one client. Every fourth time it sends a pipeline.
func (l *load) call(c *harness.Conn, rnd *rand.Rand) {
	pace := time.NewTicker(5 * time.Millisecond)
	defer pace.Stop()
	for {
		select {
		case <-l.stopped:
			return
		case <-pace.C:
		}
		asked := make([]*account, 1)
		if rnd.IntN(4) == 0 {
			asked = make([]*account, 2+rnd.IntN(l.pipeline-1))
		}
		var frames []byte
		for i := range asked {
			asked[i] = l.accounts[rnd.IntN(len(l.accounts))]
			frames = append(frames, harness.Frame(asked[i].kind.words(asked[i].key)...)...)
		}
		sent := time.Now()
		if _, err := c.Write(frames); err != nil {
			l.t.Errorf("send: %v", err)
			return
		}
		for _, a := range asked {
			raw, err := c.TryReply(harness.ReplyTimeout)
			if err != nil {
				l.t.Errorf("%s: %q, %v", a.key, raw, err)
				return
			}
			is := answer{sent, time.Now(), outcomeOf(raw)}
			a.note(is)
			if is.outcome >= perhaps {
				l.mu.Lock()
				l.texts[strings.TrimSpace(raw)]++
				l.mu.Unlock()
			}
		}
	}
}

// seen are the errors until now.
func (l *load) seen() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.texts)
}

// fails waits until calls have failed for a reason.
func (l *load) fails(text string) {
	l.t.Helper()
	celldtest.Eventually(l.t, "calls fail: "+text, func() bool {
		for is := range l.seen() {
			if strings.Contains(is, text) {
				return true
			}
		}
		return false
	})
}

// goesOn waits until every key is decided again, and returns how long after a moment that was.
func (l *load) goesOn(after time.Time) (took time.Duration) {
	l.t.Helper()
	for _, a := range l.accounts {
		celldtest.Eventually(l.t, a.key+" is decided again", func() bool {
			at, ok := a.decided(after)
			if ok {
				took = max(took, at.Sub(after))
			}
			return ok
		})
	}
	return took
}

// within fails the test if decisions did not go on soon enough after a moment. slack is for a loaded machine.
func (l *load) within(what string, after time.Time, promised time.Duration) {
	l.t.Helper()
	const slack = 20 * time.Second
	took := l.goesOn(after)
	l.t.Logf("decisions go on %v after %s", took.Round(time.Millisecond), what)
	if took > promised+slack {
		l.t.Errorf("decisions go on %v after %s, want %v", took, what, promised)
	}
}

// check ends the load and asks each key how often it was counted: once for each call that was granted, once at most for those
// whose fate is not known. forgotten is how many answered calls each key may have lost, by a failover.
func (l *load) check(forgotten int64) {
	l.t.Helper()
	l.stop()
	var all [strange + 1]int64
	var lost int64
	for _, a := range l.accounts {
		var n [strange + 1]int64
		for o := range n {
			n[o] = a.count(outcome(o))
			all[o] += n[o]
		}
		if a.kind.rate > 0 {
			a.mu.Lock()
			last := slices.MaxFunc(a.answers, func(a, b answer) int { return a.got.Compare(b.got) })
			seconds := last.got.Sub(a.first).Seconds()
			a.mu.Unlock()
			most := float64(a.kind.limit) + float64(a.kind.rate)*seconds
			if forgotten > 0 {
				most += float64(a.kind.limit)
			}
			if float64(n[passed]) > most {
				l.t.Errorf("%s: %d granted in %.3f s, at most %.1f may be", a.key, n[passed], seconds, most)
			}
			continue
		}
		for _, peek := range a.kind.peeks {
			counted := l.counted(a, peek)
			lost = max(lost, n[passed]-counted)
			if counted > n[passed]+n[perhaps] || counted < n[passed]-forgotten {
				l.t.Errorf("%s: counted %d times; %d calls were granted, of %d it is not known, %d may be forgotten", a.key, counted,
					n[passed], n[perhaps], forgotten)
			}
		}
	}
	l.t.Logf("granted %d, denied %d, not known %d, refused %d; a key forgot %d at most; errors: %v", all[passed], all[denied], all[perhaps],
		all[refused], lost, l.texts)
	if all[strange] > 0 {
		l.t.Errorf("%d strange answers", all[strange])
	}
}

// counted is how often a key was counted on the engine.
func (l *load) counted(a *account, peek string) int64 {
	l.t.Helper()
	c := harness.Dial(l.t, l.servers[0].Addr)
	defer c.Close()
	raw := ""
	celldtest.Eventually(l.t, a.key+" tells what is left", func() bool {
		raw = c.Do(strings.Fields(fmt.Sprintf(peek, a.key))...)
		return outcomeOf(raw) <= denied
	})
	var limited, limit, remaining int64
	_, err := fmt.Sscanf(raw[strings.Index(raw, "\r\n"):], "\r\n:%d\r\n:%d\r\n:%d\r\n", &limited, &limit, &remaining)
	if err != nil || limit != a.kind.limit {
		l.t.Fatalf("%s: %q, %v", a.key, raw, err)
	}
	return limit - remaining
}
